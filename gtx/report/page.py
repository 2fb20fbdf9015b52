"""`report.html` of a model that predicts numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from gtx.report.context import Report
from gtx.report.gallery import Gallery
from gtx.report.headline import headline
from gtx.report.panels import MOST_PICTURED, data_panels, learning_panels
from gtx.report.rendering import render
from gtx.report.similarity import compared, nearest
from gtx.report.thresholds import thresholds
from gtx.report.words import PARTS, TITLES, titles

WORST = 12  # molecules drawn, shared by the targets


def write_report(path: str | os.PathLike[str], report: Report) -> list[str]:
    """Write the report of a training run as one HTML file: no script, no link that it needs, light or dark.

    Args:
        path: the file, usually `report.html`; it appears whole or not at all.
        report: what it says.

    Returns:
        A line for each reason why a picture could not be drawn; the page says so too, in the picture's place.
    """
    pictured, gallery = report.targets[:MOST_PICTURED], Gallery()
    near = cache(partial(nearest, report))  # the same for every target
    return render(
        path,
        "numbers.html",
        report,
        gallery,
        several=len(report.targets) > 1,
        metrics=titles(report.task.metrics),
        headline=headline(report),
        scores=list(_scores(report)),
        read=next((b["settings"]["inputs"] for b in report.baselines.values() if b.get("settings")), "Morgan counts"),
        predictions=[
            (
                name,
                gallery.panels(report.task.panels(report, t, near)),
                thresholds(report, t) if report.task.has_thresholds else [],
            )
            for t, name in enumerate(pictured)
        ],
        compared=compared(report),
        worst=list(_worst(report, gallery)),
        measured=[_measured(report, t) for t in range(len(report.targets))],
        data_panels=gallery.panels(data_panels(report)),
        learning_panels=gallery.panels(learning_panels(report)),
    )


def _scores(report: Report) -> Iterator[dict[str, Any]]:
    """By target: its unit, the scores of each method by part, the model's first, and who leads where it is judged."""
    methods = {"This model": report.scores}
    methods |= {f"Its {name} alone": scores for name, scores in report.alone.items()}
    methods |= {TITLES[name]: report.baselines[name] for name in reversed(TITLES) if name in report.baselines}
    kinds, several = report.task.metrics.values(), len(report.targets) > 1
    names = report.targets if any(kind.in_units for kind in kinds) or not several else [None, *report.targets]
    for name in names:  # None is all targets, which values in units of their own do not have
        table = {
            method: {part: scores[part]["per_target"][name] if name else scores[part] for part in PARTS}
            for method, scores in methods.items()
        }
        judged = {method: scores[report.judged] for method, scores in table.items()}
        best = {
            metric: _best([scores[metric] for scores in judged.values()], kind.lower)
            for metric, kind in report.task.metrics.items()
        }
        every = "All" if any(kind.summed for kind in kinds) else "Mean of"
        title = name or f"{every} {len(report.targets)} targets"
        yield {"target": title, "unit": report.units.get(name, ""), "methods": table, "best": best}


def _best(values: list[float | None], lower: bool) -> float | None:
    defined = [value for value in values if value is not None]
    return (min if lower else max)(defined, default=None)


def _worst(report: Report, gallery: Gallery) -> Iterator[dict[str, Any]]:
    """The judged molecules that are furthest off, as many for each target."""
    for t, name in enumerate(report.targets[:MOST_PICTURED]):
        rows = report.measured(report.judged, t)
        y, prediction = report.y[rows, t], report.predicted(rows, t)
        errors = report.task.errors(y, prediction)
        for i in np.argsort(-np.abs(errors), kind="stable")[: max(1, WORST // len(report.targets))]:
            row = rows[i]
            number = report.row_number(row)
            yield {
                "target": name,
                "unit": report.units.get(name, ""),
                "row": number,
                "smiles": report.smiles[row],
                "picture": gallery.molecule(report.smiles[row], f"The molecule of row {number}"),
                "measured": report.task.value_text(t, y[i]),
                "predicted": report.task.prediction_text(t, prediction[i]),
                "error": errors[i],
            }


def _measured(report: Report, t: int) -> dict[str, Any]:
    """What is measured of a target: how often in each part, blanks, and how the values lie."""
    target = report.targets[t]
    counts = {part: len(report.measured(part, t)) for part in PARTS}
    used = np.concatenate([report.split[part] for part in PARTS])
    values = report.y[used, t]
    values = values[~np.isnan(values)]
    summary = report.task.summary(t, values)
    bounds = sum(report.scores[part]["per_target"][target].get("bounds", 0) for part in PARTS)
    blanks = int(np.isnan(report.y[:, t]).sum()) - bounds  # of all that could be read, in a part or not
    return {
        "target": target,
        "unit": report.units.get(target, ""),
        "counts": counts,
        "blanks": blanks,
        "summary": summary,
    }
