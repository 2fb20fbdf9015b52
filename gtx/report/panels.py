"""Panels: the blocks of a report, by kind of target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    precision_recall_curve,
    precision_score,
    recall_score,
    roc_curve,
)

from gtx.report import figures
from gtx.report.context import AtomBondReport, NumericReport, RunReport
from gtx.report.kinds import PARTS, Labels, Probabilities, count, coverage_of, in_unit, score, sentence, titles
from gtx.report.molecules import Panel, compared

# --- Probabilities become classes at a threshold: the scores at several thresholds.

FIXED = (0.3, 0.5, 0.7)
METRICS: dict[str, Callable[..., float]] = {
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


def thresholds(report: NumericReport, t: int) -> list[Threshold]:
    """List fixed thresholds, and the best for the validation molecules; none if one class alone is judged.

    A molecule belongs to class 1 if its probability is above the threshold.
    """
    y, probability = _measured(report, report.judged, t)
    if len(np.unique(y)) < 2 or not np.isfinite(probability).all():
        return []
    rows = [*(("fixed", value) for value in FIXED), *_chosen(*_measured(report, report.held_out, t))]
    return [Threshold(why, value, _scores(y, probability > value)) for why, value in rows]


def _measured(report: NumericReport, part: str, t: int) -> tuple[np.ndarray, np.ndarray]:
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
    yield "highest F1", _below(levels[np.argmax(f1[:-1])], probability)
    false, true, levels = roc_curve(y, probability)
    best = min(levels[np.argmax(true - false)], 1.0)  # infinite, where no molecule is best put into class 1
    yield "highest Youden index", _below(best, probability)


def _below(level: float, probability: np.ndarray) -> float:
    """Halfway from a probability that is to be class 1 to the next lower one."""
    lower = probability[probability < level]
    return float((level + lower.max(initial=0.0)) / 2)


# --- The list of pictures of a report, each with the arrays that it shows.

MOST_PICTURED = 12
"""Targets with pictures of their own; the tables have them all."""


ROC = "Receiver operating characteristic; the line is chance."
RECALL = "Precision and recall; dotted: the precision of guessing."
RELIABILITY = "Observed share of class 1 by predicted probability; on the line both are equal."
CONFUSION = "Molecules by measured class (rows) and predicted class (columns); shade: share of the row."
BY_SIMILARITY = (
    "by Tanimoto similarity (Morgan counts) to the nearest training molecule: mean and standard error of molecules of "
    "like similarity."
)
"""Captions."""


def target_panels(report: NumericReport, t: int) -> Iterator[Panel]:
    """Choose the panels of a target's predictions."""
    of = {Probabilities: probability_panels, Labels: label_panels}
    return of.get(type(report.kind), value_panels)(report, t)


def value_panels(report: NumericReport, t: int) -> Iterator[Panel]:
    """Yield the panels of numbers: parity, errors, coverage of intervals, calibration of standard deviations, and
    coverage and error by similarity to the training molecules.
    """
    name, unit = report.targets[t], report.units.get(report.targets[t], "")
    rows, y, prediction, scores = _parts(report, t)
    if not rows:
        return
    reach, percent = _reach(report, t), f"{100 * coverage_of(report.task):g}%"
    for part, index in rows.items():
        lines = [f"{title} {score(scores[part][m], m)}" for m, title in titles(report.task.metrics).items()]
        remarks = [count(len(index), "molecule")]
        if bounds := scores[part].get("bounds"):
            remarks.append(f"{scores[part]['bounds_kept']:.0%} of {count(bounds, 'bound')} kept")
        low = high = None
        if reach is not None and report.low is not None and report.high is not None:
            low, high = report.low[index, t], report.high[index, t]
            covered = np.mean((low <= y[part]) & (y[part] <= high))
            remarks.append(f"{covered:.0%} in {percent} intervals")
        yield Panel(
            f"Predicted against measured {name}, {PARTS[part]}",
            partial(
                figures.parity,
                y[part],
                prediction[part],
                part,
                name + in_unit(unit),
                lines,
                remarks,
                low,
                high,
                points=[f"{row}.{t}" for row in index],
            ),
            f"Predicted vs. measured {name} of {PARTS[part]} molecules; on the line they agree."
            + (f" Vertical lines: {percent} prediction intervals." if reach is not None else ""),
        )
    error = {part: prediction[part] - y[part] for part in rows}
    yield Panel(f"Errors of {name}", partial(figures.error_histogram, error, unit), "Distribution of the errors.")
    if reach is not None and len(rows) == 2:
        sides = {part: np.where(error[part] > 0, reach[0][index], reach[1][index]) for part, index in rows.items()}
        yield Panel(
            f"Coverage of the intervals of {name}",
            partial(figures.coverage, sides, error, coverage_of(report.task)),
            "Share of test molecules inside intervals of every level, calibrated on the "
            f"{report.parts[report.held_out]} molecules. Grey band: range expected by chance.",
        )
    if report.std is not None and (report.std[:, t] > 0).all():
        std = {part: report.std[index, t] for part, index in rows.items()}
        yield Panel(
            f"Calibration of {name}",
            partial(figures.spread_reliability, std, error, unit),
            "Error of molecules with similar predicted standard deviation; on the line both are equal.",
        )
    if reach is not None and report.judged in rows and report.has_similarity:
        yield Panel(
            f"Coverage of {name} by similarity",
            partial(_coverage_by_similarity, report, t, unit),
            f"Share of molecules inside their {percent} interval, by similarity to the nearest training molecule. Grey "
            "band: range expected by chance.",
        )
    if report.judged in rows and report.has_similarity:
        quantity = f"absolute error{in_unit(unit)}"
        yield Panel(
            f"Error of {name} by similarity",
            partial(_by_similarity, report, t, quantity),
            f"Absolute error {BY_SIMILARITY} {sentence(compared(report))}",
        )
    limits, error = report.attainable.get(name), scores.get(report.judged, {}).get("rmse")
    if limits is not None and limits.curve is not None and error:
        yield Panel(
            f"RMSE of {name} by training rows",
            partial(figures.attainable, limits, error, report.judged, unit),
            "Dots: the kernel’s leave-one-out error on random samples of the training molecules, scaled to this "
            "model’s error. Line and band: the forecast for more rows of the same kind, and its 90% interval."
            + (" Dashed: standard deviation of repeated measurements." if limits.noise is not None else ""),
        )
    leading = next(metric for name, metric in report.task.metrics.items() if metric.lower)
    yield from domain_panels(report, t, leading.title + (in_unit(unit) if leading.in_units else ""))


def probability_panels(report: NumericReport, t: int) -> Iterator[Panel]:
    """Yield the panels of the probability of one of two classes: ROC, precision and recall, calibration, and
    `label_panels`.
    """
    name = report.targets[t]
    rows, y, prediction, scores = _parts(report, t)
    if not rows:
        return
    yield from curve_panels(name, y, prediction, scores)
    yield from label_panels(report, t)


def curve_panels(
    name: str, y: figures.Columns, probability: figures.Columns, scores: Mapping[str, Any]
) -> Iterator[Panel]:
    """Yield the panels of a probability of one of two classes: ROC, precision and recall, and calibration."""
    roc_auc, pr_auc = ({part: score(scores[part][m], m) for part in y} for m in ("roc_auc", "pr_auc"))
    yield Panel(f"ROC curves of {name}", partial(figures.roc, y, probability, roc_auc), ROC)
    yield Panel(f"Precision and recall of {name}", partial(figures.precision_recall, y, probability, pr_auc), RECALL)
    yield Panel(f"Calibration of {name}", partial(figures.reliability, y, probability), RELIABILITY)


def label_panels(report: NumericReport, t: int) -> Iterator[Panel]:
    """Yield the panels of classes: the confusion matrix, and the share of wrong predictions by similarity to the
    training molecules.
    """
    name = report.targets[t]
    rows, y, prediction, _ = _parts(report, t)
    if report.judged in rows:
        judged, labels = report.judged, report.kind.labels(t)
        predicted = report.kind.likeliest(prediction[judged])
        yield Panel(f"Confusion of {name}", partial(figures.confusion, y[judged], predicted, labels), CONFUSION)
        wrong = "share of wrong classes"
        if report.has_similarity:
            yield Panel(
                f"Error of {name} by similarity",
                partial(_by_similarity, report, t, wrong),
                f"Share of wrong classes {BY_SIMILARITY} {sentence(compared(report))}",
            )
        yield from domain_panels(report, t, wrong)


def domain_panels(report: NumericReport, t: int, quantity: str) -> Iterator[Panel]:
    """Yield the panel of the error in each band of the domain, if the model has one."""
    if report.domain:
        errors = {
            part: {band: (rows[t], found[t]) for band, (rows, found) in bands.items()}
            for part, bands in report.domain.items()
        }
        yield Panel(
            f"Error of {report.targets[t]} by domain",
            partial(figures.by_band, errors, quantity),
            "Error by similarity to the training molecules, with the number of molecules. If asked for the domain, "
            "gtx predict writes the error of a molecule's band as domain_error. No bar: too few molecules.",
        )


def _parts(report: NumericReport, t: int) -> tuple[dict, dict, dict, dict]:
    """Rows, measured values, predictions and scores of validation and test molecules, where anything was measured."""
    rows = {part: report.measured(part, t) for part in (report.held_out, "test")}
    rows = {part: index for part, index in rows.items() if len(index)}
    y = {part: report.y[index, t] for part, index in rows.items()}
    prediction = {part: report.predicted(index, t) for part, index in rows.items()}
    return rows, y, prediction, {part: report.scores[part]["per_target"][report.targets[t]] for part in rows}


def _judged(report: NumericReport, t: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the judged molecules with a value of a target, and how similar each is to a training molecule."""
    nearest = report.nearest
    measured = np.isin(nearest.rows, report.measured(report.judged, t))
    return nearest.rows[measured], nearest.similarity[measured]


def _by_similarity(report: NumericReport, t: int, quantity: str) -> Figure:
    rows, similarity = _judged(report, t)
    y, prediction = report.y[rows, t], report.predicted(rows, t)
    wrong = report.kind.likeliest(prediction) != y if report.task.discrete else np.abs(prediction - y)
    return figures.by_similarity(similarity, wrong.astype(float), quantity, report.judged)


def _coverage_by_similarity(report: NumericReport, t: int, unit: str) -> Figure:
    rows, similarity = _judged(report, t)
    if report.low is None or report.high is None:
        raise ValueError("expected intervals")
    low, y, high = report.low[rows, t], report.y[rows, t], report.high[rows, t]
    inside = (low <= y) & (y <= high)
    return figures.coverage_by_similarity(similarity, inside, high - low, coverage_of(report.task), report.judged, unit)


def data_panels(report: NumericReport) -> Iterator[Panel]:
    """Yield the panels of measured values and of the sizes of molecules, by part of the split."""
    parts = [part for part in report.parts if part != "folds" and len(report.split[part])]
    pictured = report.targets[:MOST_PICTURED]
    if not report.task.discrete:
        for t, name in enumerate(pictured):
            values = {part: report.y[report.measured(part, t), t] for part in parts}
            values = {part: column for part, column in values.items() if len(column)}  # no bounds, which have no value
            if not values:
                continue
            quantity = name + in_unit(report.units.get(name, ""))
            yield Panel(
                f"Measured {name} in each part",
                partial(figures.value_histogram, values, quantity),
                f"Distribution of the measured values of {name}.",
            )
    else:
        names = [name for t in range(len(pictured)) for name in report.kind.share_names(t)]
        shares = {part: [s for t in range(len(pictured)) for s in _shares(report, part, t)] for part in parts}
        yield Panel(
            "Shares of the classes in each part", partial(figures.class_shares, shares, names), "Classes in each part."
        )
    yield size_panel(report)


def size_panel(report: RunReport) -> Panel:
    """Plot the sizes of molecules, by part of the split."""
    sizes = {part: report.data.num_atoms[rows] for part, rows in report.split.items() if len(rows)}
    return Panel(
        "Atoms in a molecule in each part",
        partial(figures.size_histogram, sizes),
        "Size of the molecules, as the model reads them.",
    )


def learning_panels(report: NumericReport) -> Iterator[Panel]:
    """Losses, the leading score of the validation molecules, and the learning rate, epoch by epoch; in place of the
    leading score that which chose the epoch, if the user named it.
    """
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
    """Plot the logged values by epoch; a panel is its title and the part of each column."""
    histories = [rows for rows in report.histories if rows]
    logged = {column for rows in histories for row in rows for column in row}
    for title, columns in panels:
        columns = {column: part for column, part in columns.items() if column in logged}
        if columns:
            log = title == "Loss"
            draw = partial(figures.learning_curve, histories, columns, title, report.best_epochs, log=log)
            kept = " Dotted: the epoch whose weights are kept." if report.best_epochs else ""
            yield Panel(f"{title} by epoch", draw, f"{title} by epoch.{kept}")


def _reach(report: NumericReport, t: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the distances from predictions to the lower and upper ends of intervals, `[n]` each; None for a target
    without intervals.
    """
    if report.low is None or report.high is None:
        return None
    prediction = report.prediction[:, t]
    reach = prediction - report.low[:, t], report.high[:, t] - prediction
    return reach if all(np.isfinite(each).all() and (each > 0).all() for each in reach) else None


def _shares(report: NumericReport, part: str, t: int) -> list[float]:
    """Compute the share of each class of `share_names` among the measured molecules."""
    y, labels = report.y[report.measured(part, t), t], report.kind.labels(t)
    shown = range(1, 2) if len(report.kind.share_names(t)) == 1 else range(len(labels))
    return [float((y == k).mean()) if len(y) else np.nan for k in shown]


# --- The pictures of predictions of atoms or bonds, each with the arrays that it shows.


def level_panels(report: AtomBondReport, t: int) -> Iterator[Panel]:
    """Choose the panels of a target's predictions."""
    if isinstance(report.kind, Labels):
        return class_panels(report, t, report.kind.labels(t))
    return number_panels(report, t)


def number_panels(report: AtomBondReport, t: int) -> Iterator[Panel]:
    """Yield the panels of numbers of atoms or bonds: parity on validation and test rows, and the distribution of
    errors.
    """
    name, unit = report.targets[t], report.units.get(report.targets[t], "")
    errors = {}
    for part, (y, prediction) in _level_parts(report, t).items():
        scores = report.scores[part]["per_target"][name]
        lines = [f"{title} {score(scores[metric], metric)}" for metric, title in titles(report.task.metrics).items()]
        remarks = [count(len(y), report.level)]
        yield Panel(
            f"Predicted against measured {name}, {PARTS[part]}",
            partial(figures.parity, y, prediction, part, name + in_unit(unit), lines, remarks),
            f"Predicted vs. measured {name} of {report.level}s of {PARTS[part]} molecules; on the line they agree.",
        )
        errors[part] = prediction - y
    if errors:
        yield Panel(
            f"Errors of {name}",
            partial(figures.error_histogram, errors, unit, report.level),
            "Distribution of the errors.",
        )


def class_panels(report: AtomBondReport, t: int, labels: tuple[str, ...]) -> Iterator[Panel]:
    """Yield the panels of classes of atoms or bonds: the confusion matrix; for a probability of the second of two
    classes first ROC, precision and recall, and calibration.
    """
    name, found = report.targets[t], _level_parts(report, t)
    if not found:
        return
    y, p = ({part: each[k] for part, each in found.items()} for k in range(2))
    if all(each.ndim == 1 for each in p.values()):
        yield from curve_panels(name, y, p, {part: report.scores[part]["per_target"][name] for part in found})
    if (judged := report.judged) in found:
        predicted = (p[judged] > 0.5).astype(int) if p[judged].ndim == 1 else p[judged].argmax(1)
        yield Panel(
            f"Confusion of {name}",
            partial(figures.confusion, y[judged], predicted, labels),
            CONFUSION.replace("Molecules", f"{report.level.capitalize()}s"),
        )


def _level_parts(report: AtomBondReport, t: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Measured values and predictions of validation and test atoms or bonds, where anything was measured."""
    found = {part: report.known(part, t)[:2] for part in (report.held_out, "test")}
    return {part: each for part, each in found.items() if len(each[0])}
