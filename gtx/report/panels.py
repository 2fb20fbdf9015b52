"""Which pictures a report has, cut from its arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from gtx.report import figures
from gtx.report.context import Report, RunReport
from gtx.report.gallery import Panel
from gtx.report.similarity import Nearest
from gtx.report.words import METRICS, PARTS, count, in_unit, score

MOST_PICTURED = 12
"""Targets with pictures of their own; the tables have them all."""


def prediction_panels(report: Report, t: int, near: Callable[[], Nearest]) -> Iterator[Panel]:
    """Regression: parity, errors, coverage of intervals. Classification: ROC, precision and recall, calibration,
    confusion. Both: the error by similarity to the training molecules, which are `near`.
    """
    name = report.targets[t]
    rows = {part: report.measured(part, t) for part in ("val", "test")}
    rows = {part: index for part, index in rows.items() if len(index)}
    if not rows:
        return
    y = {part: report.y[index, t] for part, index in rows.items()}
    prediction = {part: report.prediction[index, t] for part, index in rows.items()}
    scores = {part: report.scores[part]["per_target"][name] for part in rows}
    if report.task == "classification":
        roc_auc, pr_auc = ({part: score(scores[part][m], m) for part in rows} for m in ("roc_auc", "pr_auc"))
        yield Panel(f"ROC curves of {name}", partial(figures.roc, y, prediction, roc_auc))
        yield Panel(f"Precision and recall of {name}", partial(figures.precision_recall, y, prediction, pr_auc))
        yield Panel(f"Calibration of {name}", partial(figures.reliability, y, prediction))
        if report.judged in rows:
            judged, at_half = y[report.judged], prediction[report.judged] > 0.5
            yield Panel(f"Confusion of {name}", partial(figures.confusion, judged, at_half))
            yield Panel(f"Error of {name} by similarity", partial(_by_similarity, report, t, near))
        return
    unit = report.units.get(name, "")
    half = _half_widths(report, t)
    for part, index in rows.items():
        lines = [f"{title} {score(scores[part][m], m)}" for m, title in METRICS["regression"].items()]
        remarks = [count(len(index), "molecule")]
        low, high = (None, None) if half is None else (report.low[index, t], report.high[index, t])
        if half is not None:
            held = np.mean((low <= y[part]) & (y[part] <= high))
            remarks.append(f"{held:.0%} in {report.level:.0%} intervals")
        yield Panel(
            f"Predicted against measured {name}, {PARTS[part]}",
            partial(figures.parity, y[part], prediction[part], part, name + in_unit(unit), lines, remarks, low, high),
        )
    error = {part: prediction[part] - y[part] for part in rows}
    yield Panel(f"Errors of {name}", partial(figures.error_histogram, error, unit))
    if half is not None and len(rows) == 2:
        widths = {part: half[index] for part, index in rows.items()}
        yield Panel(f"Coverage of the intervals of {name}", partial(figures.coverage, widths, error, report.level))
    if report.judged in rows:
        yield Panel(f"Error of {name} by similarity", partial(_by_similarity, report, t, near))


def _by_similarity(report: Report, t: int, near: Callable[[], Nearest]) -> Figure:
    nearest = near()
    measured = np.isin(nearest.rows, report.measured(report.judged, t))
    rows, similarity = nearest.rows[measured], nearest.similarity[measured]
    y, prediction = report.y[rows, t], report.prediction[rows, t]
    if report.task == "classification":
        errors, quantity = (prediction > 0.5) != y, "share of wrong classes"
    else:
        errors, quantity = np.abs(prediction - y), f"absolute error{in_unit(report.units.get(report.targets[t], ''))}"
    return figures.by_similarity(similarity, errors.astype(float), quantity, report.judged)


def data_panels(report: Report) -> Iterator[Panel]:
    """What is measured, and how large the molecules are, part by part."""
    parts = [part for part in PARTS if len(report.split[part])]
    pictured = report.targets[:MOST_PICTURED]
    if report.task == "regression":
        for t, name in enumerate(pictured):
            values = {part: report.y[report.measured(part, t), t] for part in parts}
            quantity = name + in_unit(report.units.get(name, ""))
            yield Panel(f"Measured {name} in each part", partial(figures.value_histogram, values, quantity))
    else:
        shares = {part: [_share(report, part, t) for t in range(len(pictured))] for part in parts}
        yield Panel("Share of class 1 in each part", partial(figures.class_shares, shares, pictured))
    yield size_panel(report)


def size_panel(report: RunReport) -> Panel:
    """How large the molecules are, part by part."""
    sizes = {part: report.data.num_atoms[rows] for part, rows in report.split.items() if len(rows)}
    return Panel("Atoms in a molecule in each part", partial(figures.size_histogram, sizes))


def learning_panels(report: Report) -> Iterator[Panel]:
    """Losses, the leading score of the validation molecules, and the learning rate, epoch by epoch."""
    if report.task == "regression" and len(report.targets) > 1:
        leading = ("Validation score, mean over targets", {"val_score": "val"})  # units of their own have no mean RMSE
    else:
        metric, title = next(iter(METRICS[report.task].items()))
        leading = (f"Validation {title}", {f"val_{metric}": "val"})
    return curves(
        report, [("Loss", {"train_loss": "train", "val_loss": "val"}), leading, ("Learning rate", {"lr": "train"})]
    )


def curves(report: RunReport, panels: Sequence[tuple[str, dict[str, str]]]) -> Iterator[Panel]:
    """What was logged, epoch by epoch; a panel is its title and the part of each column."""
    histories = [rows for rows in report.histories if rows]
    logged = {column for rows in histories for row in rows for column in row}
    for title, columns in panels:
        columns = {column: part for column, part in columns.items() if column in logged}
        if columns:
            log = title == "Loss"
            draw = partial(figures.learning_curve, histories, columns, title, report.best_epochs, log=log)
            yield Panel(f"{title} by epoch", draw)


def _half_widths(report: Report, t: int) -> np.ndarray | None:
    """`[n]`, or None where a target has no intervals."""
    if report.low is None or report.high is None:
        return None
    half = (report.high[:, t] - report.low[:, t]) / 2
    return half if np.isfinite(half).all() and (half > 0).all() else None


def _share(report: Report, part: str, t: int) -> float:
    rows = report.measured(part, t)
    return report.y[rows, t].mean() if len(rows) else np.nan
