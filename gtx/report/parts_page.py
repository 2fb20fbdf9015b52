"""`report.html` of a model that predicts numbers of atoms or bonds."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from gtx.report import figures
from gtx.report.context import PartReport
from gtx.report.gallery import Gallery, Panel
from gtx.report.panels import MOST_PICTURED, curves, size_panel
from gtx.report.rendering import render
from gtx.report.words import PARTS, TITLES, count, in_unit, number, score, titles

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
    leading = next(iter(report.metrics))
    return render(
        path,
        "parts.html",
        report,
        gallery,
        metrics=titles(report.metrics),
        methods={"This model": report.scores} | {TITLES[name]: report.baselines[name] for name in report.baselines},
        leading=leading,
        counts=[{part: len(_known(report, part, t)[0]) for part in PARTS} for t in range(len(report.targets))],
        predictions=[
            (name, gallery.panels(_panels(report, t)), list(_by_kind(report, t)))
            for t, name in enumerate(report.targets[:MOST_PICTURED])
        ],
        worst=list(_worst(report, gallery)),
        data_panels=gallery.panels([size_panel(report)]),
        learning_panels=gallery.panels(curves(report, CURVES)),
    )


def _known(report: PartReport, part: str, t: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Measured values, predictions and kinds of the atoms or bonds of one part of the split, blanks left out."""
    rows = report.split[part]
    y, prediction = (
        np.concatenate([np.empty(0), *(lists[i][:, t] for i in rows)]) for lists in (report.truth, report.prediction)
    )
    kinds = np.concatenate([np.empty(0, object), *(report.kinds[i] for i in rows)])
    known = ~np.isnan(y)
    return y[known], prediction[known], kinds[known]


def _panels(report: PartReport, t: int) -> Iterator[Panel]:
    """Parity of validation and test atoms or bonds, and how errors lie."""
    name, unit = report.targets[t], report.units.get(report.targets[t], "")
    errors = {}
    for part in ("val", "test"):
        y, prediction, _ = _known(report, part, t)
        if not len(y):
            continue
        scores = report.scores[part]["per_target"][name]
        lines = [f"{title} {score(scores[metric], metric)}" for metric, title in titles(report.metrics).items()]
        remarks = [count(len(y), report.part)]
        yield Panel(
            f"Predicted against measured {name}, {PARTS[part]}",
            partial(figures.parity, y, prediction, part, name + in_unit(unit), lines, remarks),
        )
        errors[part] = prediction - y
    if errors:
        yield Panel(f"Errors of {name}", partial(figures.error_histogram, errors, unit, report.part))


def _by_kind(report: PartReport, t: int) -> Iterator[dict[str, Any]]:
    """The error of the judged atoms or bonds of each kind, the commonest first."""
    y, prediction, kinds = _known(report, report.judged, t)
    found, at = np.unique(kinds.astype(str), return_inverse=True)
    sizes = np.bincount(at, minlength=len(found))
    for k in np.argsort(-sizes, kind="stable"):
        error = (prediction - y)[at == k]
        yield {
            "kind": found[k],
            "count": int(sizes[k]),
            "mean": number(float(y[at == k].mean())),
            "rmse": number(float(np.sqrt(np.square(error).mean()))),
            "bias": number(float(error.mean())),
        }


def _worst(report: PartReport, gallery: Gallery) -> Iterator[dict[str, Any]]:
    """The judged molecules with the largest error of an atom or bond, as many for each target."""
    for t, name in enumerate(report.targets[:MOST_PICTURED]):
        found = []
        for i in report.split[report.judged]:
            error = report.prediction[i][:, t] - report.truth[i][:, t]
            if not np.isnan(error).all():
                at = int(np.nanargmax(np.abs(error)))
                found.append((abs(error[at]), i, at))
        for _, i, at in sorted(found, key=lambda one: -one[0])[: max(1, WORST // len(report.targets))]:
            row, y, prediction = report.row_number(i), report.truth[i][at, t], report.prediction[i][at, t]
            yield {
                "target": name,
                "unit": report.units.get(name, ""),
                "row": row,
                "smiles": report.smiles[i],
                "place": f"{at}, {report.kinds[i][at]}",
                "picture": gallery.molecule(report.smiles[i], f"The molecule of row {row}"),
                "measured": number(float(y)),
                "predicted": number(float(prediction)),
                "error": float(prediction - y),
            }
