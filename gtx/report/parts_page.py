"""`report.html` of a model that predicts targets of atoms or bonds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from gtx.report.context import PartReport
from gtx.report.gallery import Gallery
from gtx.report.panels import MOST_PICTURED, curves, size_panel
from gtx.report.rendering import render
from gtx.report.words import PARTS, TITLES, titles

WORST = 12  # molecules drawn, shared by the targets
CURVES = [
    ("Loss", {"train_loss": "train", "val_loss": "val"}),
    ("Validation score, mean over targets", {"val_score": "val"}),
    ("Learning rate", {"lr": "train"}),
]


def write_part_report(path: str | os.PathLike[str], report: PartReport) -> list[str]:
    """Write the report of a training run as one HTML file.

    Args:
        path: the file, usually `report.html`; it appears whole or not at all.
        report: what it says.

    Returns:
        A line for each reason why a picture could not be drawn; the page says so too, in the picture's place.
    """
    gallery = Gallery()
    leading = next(iter(report.task.metrics))
    return render(
        path,
        "parts.html",
        report,
        gallery,
        metrics=titles(report.task.metrics),
        methods={"This model": report.scores} | {TITLES[name]: report.baselines[name] for name in report.baselines},
        leading=leading,
        counts=[{part: len(report.known(part, t)[0]) for part in PARTS} for t in range(len(report.targets))],
        predictions=[
            (name, gallery.panels(report.task.panels(report, t)), list(_by_kind(report, t)))
            for t, name in enumerate(report.targets[:MOST_PICTURED])
        ],
        worst=list(_worst(report, gallery)),
        data_panels=gallery.panels([size_panel(report)]),
        learning_panels=gallery.panels(curves(report, CURVES)),
    )


def _by_kind(report: PartReport, t: int) -> Iterator[dict[str, Any]]:
    """How good predictions are for the judged atoms or bonds of each kind, the commonest first."""
    y, prediction, kinds = report.known(report.judged, t)
    found, at = np.unique(kinds.astype(str), return_inverse=True)
    sizes = np.bincount(at, minlength=len(found))
    for k in np.argsort(-sizes, kind="stable"):
        said = report.task.summary(t, y[at == k], prediction[at == k])
        yield {"kind": found[k], "count": int(sizes[k]), "said": said}


def _worst(report: PartReport, gallery: Gallery) -> Iterator[dict[str, Any]]:
    """The judged molecules with the largest error of an atom or bond, as many for each target."""
    for t, name in enumerate(report.targets[:MOST_PICTURED]):
        found = []
        for i in report.split[report.judged]:
            error = report.task.errors(t, report.truth[i][:, t], report.predicted([i], t))
            if not np.isnan(error).all():
                at = int(np.nanargmax(np.abs(error)))
                found.append((abs(error[at]), error[at], i, at))
        for _, error, i, at in sorted(found, key=lambda one: -one[0])[: max(1, WORST // len(report.targets))]:
            row = report.row_number(i)
            yield {
                "target": name,
                "unit": report.units.get(name, ""),
                "row": row,
                "smiles": report.smiles[i],
                "place": f"{at}, {report.kinds[i][at]}",
                "picture": gallery.molecule(report.smiles[i], f"The molecule of row {row}"),
                "measured": report.task.value_text(t, report.truth[i][at, t]),
                "predicted": report.task.prediction_text(t, report.predicted([i], t)[at]),
                "error": float(error),
            }
