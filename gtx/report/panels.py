"""The list of pictures of a report, each with the arrays that it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from gtx.report import figures, spread_figures
from gtx.report.context import Report, RunReport
from gtx.report.gallery import Panel
from gtx.report.similarity import Nearest
from gtx.report.words import PARTS, count, in_unit, score, titles

MOST_PICTURED = 12
"""Targets with pictures of their own; the tables have them all."""


Near = Callable[[], Nearest]


def value_panels(report: Report, t: int, near: Near) -> Iterator[Panel]:
    """Of numbers: parity, errors, coverage of intervals, calibration of standard deviations, and coverage and error by
    similarity to the training molecules."""
    name, unit = report.targets[t], report.units.get(report.targets[t], "")
    rows, y, prediction, scores = _parts(report, t)
    if not rows:
        return
    reach = _reach(report, t)
    for part, index in rows.items():
        lines = [f"{title} {score(scores[part][m], m)}" for m, title in titles(report.task.metrics).items()]
        remarks = [count(len(index), "molecule")]
        if given := scores[part].get("bounds"):
            remarks.append(f"{scores[part]['bounds_kept']:.0%} of {count(given, 'bound')} kept")
        low, high = (None, None) if reach is None else (report.low[index, t], report.high[index, t])
        if reach is not None:
            held = np.mean((low <= y[part]) & (y[part] <= high))
            remarks.append(f"{held:.0%} in {100 * report.task.level:g}% intervals")
        yield Panel(
            f"Predicted against measured {name}, {PARTS[part]}",
            partial(figures.parity, y[part], prediction[part], part, name + in_unit(unit), lines, remarks, low, high),
        )
    error = {part: prediction[part] - y[part] for part in rows}
    yield Panel(f"Errors of {name}", partial(figures.error_histogram, error, unit))
    if reach is not None and len(rows) == 2:
        sides = {part: np.where(error[part] > 0, reach[0][index], reach[1][index]) for part, index in rows.items()}
        yield Panel(f"Coverage of the intervals of {name}", partial(figures.coverage, sides, error, report.task.level))
    if report.std is not None and (report.std[:, t] > 0).all():
        std = {part: report.std[index, t] for part, index in rows.items()}
        yield Panel(f"Calibration of {name}", partial(spread_figures.spread_reliability, std, error, unit))
    if reach is not None and report.judged in rows:
        yield Panel(f"Coverage of {name} by similarity", partial(_coverage_by_similarity, report, t, near, unit))
    if report.judged in rows:
        quantity = f"absolute error{in_unit(unit)}"
        yield Panel(f"Error of {name} by similarity", partial(_by_similarity, report, t, near, quantity))


def probability_panels(report: Report, t: int, near: Near) -> Iterator[Panel]:
    """Of the probability of one of two classes: ROC, precision and recall, calibration, and `label_panels`."""
    name = report.targets[t]
    rows, y, prediction, scores = _parts(report, t)
    if not rows:
        return
    roc_auc, pr_auc = ({part: score(scores[part][m], m) for part in rows} for m in ("roc_auc", "pr_auc"))
    yield Panel(f"ROC curves of {name}", partial(figures.roc, y, prediction, roc_auc))
    yield Panel(f"Precision and recall of {name}", partial(figures.precision_recall, y, prediction, pr_auc))
    yield Panel(f"Calibration of {name}", partial(figures.reliability, y, prediction))
    yield from label_panels(report, t, near)


def label_panels(report: Report, t: int, near: Near) -> Iterator[Panel]:
    """Of classes: the confusion matrix, and the share of wrong ones by similarity to the training molecules."""
    name = report.targets[t]
    rows, y, prediction, _ = _parts(report, t)
    if report.judged in rows:
        judged, labels = report.judged, report.task.labels(t)
        predicted = report.task.likeliest(prediction[judged])
        yield Panel(f"Confusion of {name}", partial(figures.confusion, y[judged], predicted, labels))
        wrong = "share of wrong classes"
        yield Panel(f"Error of {name} by similarity", partial(_by_similarity, report, t, near, wrong))


def _parts(report: Report, t: int) -> tuple[dict, dict, dict, dict]:
    """Rows, measured values, predictions and scores of validation and test molecules, where anything was measured."""
    rows = {part: report.measured(part, t) for part in ("val", "test")}
    rows = {part: index for part, index in rows.items() if len(index)}
    y = {part: report.y[index, t] for part, index in rows.items()}
    prediction = {part: report.predicted(index, t) for part, index in rows.items()}
    return rows, y, prediction, {part: report.scores[part]["per_target"][report.targets[t]] for part in rows}


def _by_similarity(report: Report, t: int, near: Near, quantity: str) -> Figure:
    nearest = near()
    measured = np.isin(nearest.rows, report.measured(report.judged, t))
    rows, similarity = nearest.rows[measured], nearest.similarity[measured]
    y, prediction = report.y[rows, t], report.predicted(rows, t)
    wrong = report.task.likeliest(prediction) != y if report.task.discrete else np.abs(prediction - y)
    return figures.by_similarity(similarity, wrong.astype(float), quantity, report.judged)


def _coverage_by_similarity(report: Report, t: int, near: Near, unit: str) -> Figure:
    nearest = near()
    measured = np.isin(nearest.rows, report.measured(report.judged, t))
    rows, similarity = nearest.rows[measured], nearest.similarity[measured]
    low, y, high = report.low[rows, t], report.y[rows, t], report.high[rows, t]
    told = (low <= y) & (y <= high), high - low, report.task.level, report.judged
    return spread_figures.coverage_by_similarity(similarity, *told, unit)


def data_panels(report: Report) -> Iterator[Panel]:
    """What is measured, and how large the molecules are, part by part."""
    parts = [part for part in PARTS if len(report.split[part])]
    pictured = report.targets[:MOST_PICTURED]
    if not report.task.discrete:
        for t, name in enumerate(pictured):
            values = {part: report.y[report.measured(part, t), t] for part in parts}
            values = {part: column for part, column in values.items() if len(column)}  # no bounds, which have no value
            if not values:
                continue
            quantity = name + in_unit(report.units.get(name, ""))
            yield Panel(f"Measured {name} in each part", partial(figures.value_histogram, values, quantity))
    else:
        names = [name for t in range(len(pictured)) for name in report.task.share_names(t)]
        shares = {part: [s for t in range(len(pictured)) for s in _shares(report, part, t)] for part in parts}
        yield Panel("Shares of the classes in each part", partial(figures.class_shares, shares, names))
    yield size_panel(report)


def size_panel(report: RunReport) -> Panel:
    """How large the molecules are, part by part."""
    sizes = {part: report.data.num_atoms[rows] for part, rows in report.split.items() if len(rows)}
    return Panel("Atoms in a molecule in each part", partial(figures.size_histogram, sizes))


def learning_panels(report: Report) -> Iterator[Panel]:
    """Losses, the leading score of the validation molecules, and the learning rate, epoch by epoch; in place of the
    leading score that which chose the epoch, if the user named it."""
    named, kept_by = titles(report.task.metrics), report.settings.get("training", {}).get("keep_by")
    if kept_by in named:
        leading = (f"Validation {named[kept_by]}", {f"val_{kept_by}": "val"})
    elif next(iter(report.task.metrics.values())).in_units and len(report.targets) > 1:
        leading = ("Validation score, mean over targets", {"val_score": "val"})  # units of their own have no mean RMSE
    else:
        metric, title = next(iter(named.items()))
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


def _reach(report: Report, t: int) -> tuple[np.ndarray, np.ndarray] | None:
    """How far intervals reach below and above predictions, `[n]` each, or None where a target has no intervals."""
    if report.low is None or report.high is None:
        return None
    prediction = report.prediction[:, t]
    reach = prediction - report.low[:, t], report.high[:, t] - prediction
    return reach if all(np.isfinite(each).all() and (each > 0).all() for each in reach) else None


def _shares(report: Report, part: str, t: int) -> list[float]:
    """Of the classes that `share_names` names, among the measured molecules."""
    y, labels = report.y[report.measured(part, t), t], report.task.labels(t)
    shown = range(1, 2) if len(report.task.share_names(t)) == 1 else range(len(labels))
    return [float((y == k).mean()) if len(y) else np.nan for k in shown]
