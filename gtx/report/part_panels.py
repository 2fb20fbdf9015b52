"""The pictures of predictions of atoms or bonds, each with the arrays that it shows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from gtx.report import figures
from gtx.report.context import PartReport
from gtx.report.gallery import Panel
from gtx.report.words import PARTS, count, in_unit, score, titles


def number_panels(report: PartReport, t: int) -> Iterator[Panel]:
    """Of numbers: parity of validation and test atoms or bonds, and how errors lie."""
    name, unit = report.targets[t], report.units.get(report.targets[t], "")
    errors = {}
    for part, (y, prediction) in _parts(report, t).items():
        scores = report.scores[part]["per_target"][name]
        lines = [f"{title} {score(scores[metric], metric)}" for metric, title in titles(report.task.metrics).items()]
        remarks = [count(len(y), report.part)]
        yield Panel(
            f"Predicted against measured {name}, {PARTS[part]}",
            partial(figures.parity, y, prediction, part, name + in_unit(unit), lines, remarks),
        )
        errors[part] = prediction - y
    if errors:
        yield Panel(f"Errors of {name}", partial(figures.error_histogram, errors, unit, report.part))


def class_panels(report: PartReport, t: int, labels: tuple[str, ...]) -> Iterator[Panel]:
    """Of classes: the confusion matrix of the judged atoms or bonds; of a probability of the second of two classes ROC,
    precision and recall, and calibration before it."""
    name, found = report.targets[t], _parts(report, t)
    if not found:
        return
    y, p = ({part: each[k] for part, each in found.items()} for k in range(2))
    if all(each.ndim == 1 for each in p.values()):
        scores = {part: report.scores[part]["per_target"][name] for part in found}
        roc_auc, pr_auc = ({part: score(scores[part][m], m) for part in found} for m in ("roc_auc", "pr_auc"))
        yield Panel(f"ROC curves of {name}", partial(figures.roc, y, p, roc_auc))
        yield Panel(f"Precision and recall of {name}", partial(figures.precision_recall, y, p, pr_auc))
        yield Panel(f"Calibration of {name}", partial(figures.reliability, y, p))
    if (judged := report.judged) in found:
        predicted = (p[judged] > 0.5).astype(int) if p[judged].ndim == 1 else p[judged].argmax(1)
        yield Panel(f"Confusion of {name}", partial(figures.confusion, y[judged], predicted, labels))


def _parts(report: PartReport, t: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Measured values and predictions of validation and test atoms or bonds, where anything was measured."""
    found = {part: report.known(part, t)[:2] for part in ("val", "test")}
    return {part: each for part, each in found.items() if len(each[0])}
