"""Probabilities become classes at a threshold: the scores at several thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    precision_recall_curve,
    precision_score,
    recall_score,
    roc_curve,
)

from gtx.report.context import Report

FIXED = (0.3, 0.5, 0.7)
METRICS = {
    "precision": precision_score,
    "recall": recall_score,
    "F1": f1_score,
    "balanced accuracy": balanced_accuracy_score,
}


class Threshold(NamedTuple):
    """A threshold of one target, why it stands here, and the scores of the judged molecules by name."""

    why: str
    value: float
    scores: dict[str, float]


def thresholds(report: Report, t: int) -> list[Threshold]:
    """Fixed thresholds, and those that are best for the validation molecules; none where one class alone is judged.

    A molecule belongs to class 1 if its probability is above the threshold.
    """
    y, probability = _measured(report, report.judged, t)
    if len(np.unique(y)) < 2 or not np.isfinite(probability).all():
        return []
    rows = [*(("fixed", value) for value in FIXED), *_chosen(*_measured(report, "val", t))]
    return [Threshold(why, value, _scores(y, probability > value)) for why, value in rows]


def _measured(report: Report, part: str, t: int) -> tuple[np.ndarray, np.ndarray]:
    rows = report.measured(part, t)
    return report.y[rows, t], report.prediction[rows, t]


def _scores(y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    more = {"precision": {"zero_division": np.nan}}  # of no molecule in class 1
    return {name: float(metric(y, predicted, **more.get(name, {}))) for name, metric in METRICS.items()}


def _chosen(y: np.ndarray, probability: np.ndarray) -> Iterator[tuple[str, float]]:
    if len(np.unique(y)) < 2 or not np.isfinite(probability).all():
        return
    precision, recall, levels = precision_recall_curve(y, probability)
    with np.errstate(invalid="ignore"):
        f1 = np.nan_to_num(2 * precision * recall / (precision + recall))
    yield "highest F1 in validation", _below(levels[np.argmax(f1[:-1])], probability)
    false, true, levels = roc_curve(y, probability)
    best = min(levels[np.argmax(true - false)], 1.0)  # infinite, where no molecule is best put into class 1
    yield "highest Youden index in validation", _below(best, probability)


def _below(level: float, probability: np.ndarray) -> float:
    """Halfway from a probability that is to be class 1 to the next lower one."""
    lower = probability[probability < level]
    return float((level + lower.max(initial=0.0)) / 2)
