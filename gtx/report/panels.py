"""Panels: the pictures of a report, each with its sentence, drawn from arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator
from scipy.stats import binned_statistic
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from gtx.data.rows import in_unit, percent, plural
from gtx.report.context import Attainable, NumericReport, RunReport
from gtx.report.gallery import COLOURS, FAINT, INK, LETTERS, SMALL, Gallery, figure_of
from gtx.report.kinds import PARTS, number, score, sentence, signed, titles
from gtx.tasks.uncertainty import LEVEL

MOST_PICTURED = 12
"""Targets with pictures of their own; the tables have them all."""
MOST_VECTORS = 400  # points drawn one by one; more become one image inside the picture
MOST_POINTS = 5_000  # more become a density
MOLECULES_A_BIN = 20  # or more, whose mean error is shown
MOST_GROUPS = 10  # of molecules with similar standard deviations
MOST_CELLS, MOST_NAMES = 6, 8  # classes whose counts and whose names a confusion matrix has room for
MOST_SHARES = 30  # classes whose shares are bars
MOST_LETTERS = 12  # of the name of a class
MOST_INTERVALS = 150  # error bars that can be told apart

Columns = Mapping[str, np.ndarray]
"""One array per part of the split."""

# --- The predictions of a target.


@dataclass(frozen=True, kw_only=True)
class TargetPredictions:
    """Predictions of one target, by part of the split: the parts where anything was measured.

    Attributes:
        name, unit: name and unit of the target.
        level: what a row is: "molecule", "atom" or "bond".
        y, prediction: measured and predicted values, `[m]`; for more than two classes, probabilities `[m, C]`.
        scores: scores of the target, by metric.
        titles: names for readers of the metrics that a parity plot lists.
        std: predicted standard deviations, `[m]`; empty without.
        low, high: limits of the prediction intervals, `[m]`; empty without.
        coverage: share of true values meant to be inside the intervals.
        keys: what the page calls the molecule of each row; empty where a row is none.
        error: function of predicted and measured values `[m]`, their signed errors.
    """

    name: str
    y: Columns
    prediction: Columns
    unit: str = ""
    level: str = "molecule"
    scores: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    std: Columns = field(default_factory=dict)
    low: Columns = field(default_factory=dict)
    high: Columns = field(default_factory=dict)
    coverage: float = LEVEL
    keys: Mapping[str, Sequence[str]] = field(default_factory=dict)
    error: Callable[[np.ndarray, np.ndarray], np.ndarray] = np.subtract

    @property
    def errors(self) -> Columns:
        """Signed errors of the predictions."""
        return {part: self.error(self.prediction[part], y) for part, y in self.y.items()}

    def inside(self, part: str) -> np.ndarray:
        """Tell for each value whether it is inside its interval, bool `[m]`."""
        return (self.low[part] <= self.y[part]) & (self.y[part] <= self.high[part])

    @classmethod
    def of(cls, report: NumericReport, t: int, rows: Columns) -> Self:
        """Collect the predictions of target t for some rows of each part."""

        def columns(values: np.ndarray | None) -> Columns:
            return {} if values is None else {part: values[index, t] for part, index in rows.items()}

        name, numeric = report.targets[t], not report.task.discrete
        low, high = report.low, report.high
        if low is not None and high is not None:  # an interval that is empty or infinite cannot be drawn
            centre, width = report.prediction[:, t], high[:, t] - low[:, t]
            if not ((low[:, t] < centre) & (centre < high[:, t]) & np.isfinite(width)).all():
                low = high = None
        return cls(
            name=name,
            y=columns(report.y),
            prediction={part: report.predicted(index, t) for part, index in rows.items()},
            unit=report.units.get(name, ""),
            level=report.level,
            scores={part: report.scores[part]["per_target"][name] for part in rows},
            titles=titles(report.task.metrics),
            std=columns(report.std if numeric and report.std is not None and (report.std[:, t] > 0).all() else None),
            low=columns(low),
            high=columns(high),
            coverage=getattr(report.task, "coverage", LEVEL),
            keys={part: [f"{row}.{t}" for row in index] for part, index in rows.items() if report.level == "molecule"},
            error=report.task.errors,
        )


def target_panels(gallery: Gallery, report: NumericReport, t: int) -> None:
    """Draw the predictions of a target for validation and test rows."""
    name, judged = report.targets[t], report.judged
    measured = {part: report.measured(part, t) for part in (report.held_out, "test")}
    rows = {part: index for part, index in measured.items() if len(index)}
    if not rows:
        return
    target = TargetPredictions.of(report, t, rows)
    similarity, near = np.empty(0), None  # of the judged rows that are compared with training molecules
    if judged in rows and report.has_similarity and report.level == "molecule":
        compared = np.isin(report.nearest.rows, rows[judged])
        similarity = report.nearest.similarity[compared]
        near = TargetPredictions.of(report, t, {judged: report.nearest.rows[compared]})
    if report.task.discrete:
        quantity = "share of wrong classes"
        if all(p.ndim == 1 for p in target.prediction.values()):
            curve_panels(gallery, target)
        if judged in rows:
            confusion(gallery, target, judged, report.kind.likeliest(target.prediction[judged]), report.kind.labels(t))
        if near is not None:
            wrong = (report.kind.likeliest(near.prediction[judged]) != near.y[judged]).astype(float)
            by_similarity(gallery, name, similarity, wrong, quantity, judged, report.compared)
    else:
        leading = next(metric for metric in report.task.metrics.values() if metric.lower)
        quantity = leading.title + (in_unit(target.unit) if leading.in_units else "")
        for part in target.y:
            parity(gallery, target, part)
        error_histogram(gallery, target)
        if target.low and len(target.y) == 2:
            coverage(gallery, target)
        if target.std:
            spread_reliability(gallery, target)
        if near is not None:
            if near.low:
                coverage_by_similarity(gallery, near, judged, similarity)
            error = f"absolute error{in_unit(target.unit)}"
            by_similarity(gallery, name, similarity, np.abs(near.errors[judged]), error, judged, report.compared)
        limits, rmse = report.attainable.get(name), target.scores.get(judged, {}).get("rmse")
        if limits is not None and limits.curve is not None and rmse:
            attainable(gallery, limits, rmse, judged, name, target.unit)
    errors = {
        part: {band: (molecules[t], error[t]) for band, (molecules, error) in bands.items()}
        for part, bands in report.domain.items()
    }
    if any(error is not None for bands in errors.values() for _, error in bands.values()):
        by_band(gallery, errors, name, quantity)


def parity(gallery: Gallery, target: TargetPredictions, part: str) -> None:
    """Plot predicted against measured values, with the line where they are equal.

    Intervals are vertical lines if there are few points. By its key the page knows the molecule of each point; of very
    many points, only of those with the largest errors.
    """
    y, prediction, scores = target.y[part], target.prediction[part], target.scores.get(part, {})
    remarks = [plural(len(y), target.level)]
    if bounds := scores.get("bounds"):
        remarks.append(f"{percent(scores['bounds_kept'])} of {plural(bounds, 'bound')} kept")
    whose = f"{PARTS[part]} molecules" if target.level == "molecule" else f"{target.level}s of {PARTS[part]} molecules"
    caption = f"Predicted vs. measured {target.name} of {whose}; on the line they agree."
    if target.low:
        remarks.append(f"{percent(target.inside(part).mean())} in {100 * target.coverage:g}% intervals")
        caption += f" Vertical lines: {100 * target.coverage:g}% prediction intervals."
    label, quantity = f"Predicted against measured {target.name}, {PARTS[part]}", target.name + in_unit(target.unit)
    labels = PARTS[part].capitalize(), f"measured {quantity}", f"predicted {quantity}"
    with gallery.panel(label, caption, *labels, square=True) as axes:
        colour, keys = COLOURS[part], target.keys.get(part)
        if target.low and len(y) <= MOST_INTERVALS:
            axes.vlines(y, target.low[part], target.high[part], colors=colour, alpha=0.25, linewidth=1)
        if len(y) > MOST_POINTS:
            fade = _fade(colour, 0.12, 1.0)  # so that the page shows through
            axes.hexbin(y, prediction, gridsize=70, bins="log", cmap=fade, linewidths=0, rasterized=True)
        else:
            faint = float(np.clip(8 / np.sqrt(len(y) + 1), 0.25, 0.75))
            rasterized = len(y) > MOST_VECTORS
            (dots,) = axes.plot(y, prediction, "o", color=colour, alpha=faint, ms=3.4, mew=0, rasterized=rasterized)
        if keys is not None:
            if len(y) > MOST_VECTORS:  # one image, on which the furthest off lie unseen
                far = np.sort(np.argsort(-np.abs(target.errors[part]), kind="stable")[: MOST_VECTORS // 2])
                (dots,) = axes.plot(y[far], prediction[far], "o", color=colour, alpha=0, ms=3.4, mew=0)
                keys = [keys[i] for i in far]
            dots.set_gid("points " + " ".join(keys))  # of which `svg_content` marks each with its key
        _agreement(axes, _range(y, prediction))
        words: dict[str, Any] = {"transform": axes.transAxes, "fontsize": SMALL, "linespacing": 1.4}
        lines = [f"{title} {score(scores[metric], metric)}" for metric, title in target.titles.items()]
        axes.text(0.04, 0.97, "\n".join(lines), va="top", **words)
        axes.text(0.97, 0.03, "\n".join(remarks), ha="right", **words)


def error_histogram(gallery: Gallery, target: TargetPredictions) -> None:
    """Plot the distribution of the signed errors in each part of the split, with its mean."""
    caption, x = "Distribution of the errors, above 0 where predicted too high.", f"error{in_unit(target.unit)}"
    labels = "Errors", x, f"share of {target.level}s"
    with gallery.panel(f"Errors of {target.name}", caption, *labels, height=3) as axes:
        widest = np.percentile(np.abs(np.concatenate([*target.errors.values(), [0.0]])), 99.5) or 1.0
        edges = np.linspace(-widest, widest, 36)
        for part, error in target.errors.items():
            _steps(axes, np.clip(error, -widest, widest), edges, part, f"{PARTS[part]}, mean {signed(error.mean())}")
        axes.axvline(0, ymax=1 / 1.3, color=INK, linewidth=0.8)
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend
        axes.legend(loc="upper left", handlelength=1)


def coverage(gallery: Gallery, target: TargetPredictions) -> None:
    """Plot the share of test molecules inside intervals of every level, with widths set by the validation molecules.

    The model's own level is marked; an interval of another level is a scaled interval of the model.
    """
    ratios = {}
    for part, error in target.errors.items():
        below, above = target.prediction[part] - target.low[part], target.high[part] - target.prediction[part]
        ratios[part] = np.sort(np.abs(error) / np.where(error > 0, below, above))
    (held_out,) = (part for part in ratios if part != "test")
    n, m = len(ratios[held_out]), len(ratios["test"])
    levels = np.linspace(0, 1, 101)
    places = np.ceil(levels * (n + 1)).astype(int) - 1  # the finite-sample quantile of split conformal prediction
    widths = np.concatenate([ratios[held_out], [np.inf]])[np.clip(places, 0, n)]
    inside = np.where(levels > 0, np.searchsorted(ratios["test"], widths, side="right") / m, 0)
    caption = (
        f"Share of test molecules inside intervals of every level, calibrated on the {PARTS[held_out]} molecules. Grey "
        "band: range expected by chance."
    )
    labels = "Coverage of intervals", "level of the intervals", "share of test molecules inside"
    with gallery.panel(f"Coverage of the intervals of {target.name}", caption, *labels, square=True) as axes:
        spread = 1.96 * np.sqrt(levels * (1 - levels) / m)
        axes.fill_between(levels, levels - spread, levels + spread, color=FAINT, alpha=0.7, linewidth=0)
        axes.plot(levels, inside, color=COLOURS["test"], drawstyle="steps-post")
        held = (ratios["test"] <= 1).mean()
        axes.plot([target.coverage], [held], "o", color=COLOURS["test"], ms=5)
        words = f"{percent(held)} in the {100 * target.coverage:g}% intervals"
        axes.annotate(words, (target.coverage, held), (0.96, 0.06), ha="right", fontsize=SMALL)
        _agreement(axes, (0, 1))


def spread_reliability(gallery: Gallery, target: TargetPredictions) -> None:
    """Plot the root mean square error of molecules of similar predicted standard deviation against that deviation."""
    caption = "Error of molecules with similar predicted standard deviation; on the line both are equal."
    unit = in_unit(target.unit)
    labels = "Calibration", f"standard deviation{unit}", f"root mean square error{unit}"
    with gallery.panel(f"Calibration of {target.name}", caption, *labels, square=True) as axes:
        top = 0.0
        for part, own in target.std.items():
            groups = _groups(own, MOST_GROUPS)
            predicted, observed = (
                np.array([np.sqrt(np.mean(values[rows] ** 2)) for rows in groups])
                for values in (own, target.errors[part])
            )
            reach = observed / np.sqrt(2 * len(own) / len(groups))  # the standard error of a root mean square
            look: dict[str, Any] = {"ms": 3.5, "linewidth": 1.2, "color": COLOURS[part], "label": PARTS[part]}
            axes.errorbar(predicted, observed, reach, fmt="o-", **look)
            top = max(top, predicted.max(), (observed + reach).max())
        axes.axline((0, 0), (1, 1), color=INK, linewidth=0.8, zorder=1.5)
        axes.set(xlim=(0, 1.08 * top or 1), ylim=(0, 1.08 * top or 1))
        axes.legend(loc="upper left")


def coverage_by_similarity(gallery: Gallery, target: TargetPredictions, part: str, similarity: np.ndarray) -> None:
    """Plot the share of molecules of a part inside their intervals by similarity `[m]` to the training molecules, with
    the range of chance about the level; below, the mean width of the intervals.
    """
    groups, level = _groups(similarity, 5), target.coverage
    columns = similarity, target.inside(part), target.high[part] - target.low[part]
    place, share, wide = (np.array([values[rows].mean() for rows in groups]) for values in columns)
    chance = 1.96 * np.sqrt(level * (1 - level) / min(map(len, groups)))
    caption = (
        f"Share of molecules inside their {100 * level:g}% interval, by similarity to the nearest training molecule. "
        "Grey band: range expected by chance."
    )
    labels = "Coverage by similarity", "similarity to training molecules", "share inside its interval"
    with gallery.panel(f"Coverage of {target.name} by similarity", caption, *labels, square=True) as axes:
        axes.fill_between([-0.04, 1.04], level - chance, level + chance, color=FAINT, alpha=0.7, linewidth=0)
        axes.axhline(level, color=INK, linewidth=0.8)
        axes.plot(place, share, "o-", color=COLOURS[part], ms=4)
        for x, mean in zip(place, wide, strict=True):
            axes.text(x, 0.03, number(float(mean)), ha="center", fontsize=SMALL, rotation=90)
        axes.set(xlim=(-0.04, 1.04), ylim=(0, 1.04), aspect="auto")
        axes.text(0.02, 0.26, f"mean width{in_unit(target.unit)}:", fontsize=SMALL)


def by_similarity(
    gallery: Gallery, name: str, similarity: np.ndarray, errors: np.ndarray, quantity: str, part: str, compared: str
) -> None:
    """Plot the mean error of molecules by their similarity to the training molecules, with its standard error."""
    bins = int(np.clip(len(errors) // MOLECULES_A_BIN, 1, 6))
    edges = np.unique(np.quantile(similarity, np.linspace(0, 1, bins + 1)))
    if len(edges) == 1:
        edges = edges[0] + np.array([-0.02, 0.02])
    mean, sd, size = (binned_statistic(similarity, errors, how, edges)[0] for how in ("mean", "std", "count"))
    place, reach = binned_statistic(similarity, similarity, "mean", edges)[0], sd / np.sqrt(size)
    caption = (
        f"{sentence(quantity.partition(' (')[0])[:-1]} by Tanimoto similarity (Morgan counts) to the nearest training "
        f"molecule: mean and standard error of molecules of like similarity. {sentence(compared)}"
    )
    labels = "Error by similarity", "similarity to training molecules", quantity
    with gallery.panel(f"Error of {name} by similarity", caption, *labels, square=True) as axes:
        colour, top = COLOURS[part], np.nan_to_num(mean + reach).max()
        if len(np.unique(errors)) > 2:  # a right class and a wrong one would be two rows of points
            top, rasterized = errors.max(), len(errors) > MOST_VECTORS
            axes.plot(similarity, errors, "o", color=colour, alpha=0.2, ms=2.6, mew=0, rasterized=rasterized)
        axes.stairs(mean, edges, baseline=None, color=colour, linewidth=1.8)
        axes.errorbar(place, mean, reach, fmt="o", color=colour, ms=4, linewidth=1.2)
        axes.set(xlim=(-0.04, 1.04), ylim=(0, 1.15 * top or 1), aspect="auto")


def attainable(gallery: Gallery, limits: Attainable, error: float, part: str, name: str, unit: str) -> None:
    """Plot the RMSE of a model by number of training rows: the kernel's learning curve, and the forecast."""
    caption = (
        "Dots: the kernel’s leave-one-out error on random samples of the training molecules, scaled to this model’s "
        "error. Line and band: the forecast for more rows of the same kind, and its 90% interval."
    )
    if limits.noise is not None:
        caption += " Dashed: standard deviation of repeated measurements."
    labels = "RMSE with more molecules", "training molecules", f"RMSE{in_unit(unit)}"
    with gallery.panel(f"RMSE of {name} by training rows", caption, *labels) as axes:
        curve, colour = limits.curve, COLOURS[part]
        if curve is None:
            raise ValueError("expected a learning curve, got None")
        now = curve.rows[-1]
        more = [limits.forecast(error, times) for times in np.geomspace(1, 2, 13)]
        rows = [now + each.rows for each in more]
        low, high = [each.low for each in more], [each.high for each in more]
        axes.fill_between(rows, low, high, color=colour, alpha=0.15, linewidth=0)
        axes.plot(rows, [each.error for each in more], color=colour, linewidth=1.3)
        axes.plot(curve.rows, [error * each / curve.errors[-1] for each in curve.errors], "o", color=colour, ms=4)
        if limits.noise is not None:
            axes.axhline(limits.noise.sd, color=INK, linewidth=0.8, linestyle="--")
        axes.set_xscale("log")
        axes.set_xticks([*curve.rows, 2 * now], [f"{rows:,}" for rows in [*curve.rows, 2 * now]])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        axes.set_xlim(0.9 * curve.rows[0], 2.2 * now)  # room for the first dot


def by_band(
    gallery: Gallery, errors: Mapping[str, Mapping[str, tuple[int, float | None]]], name: str, quantity: str
) -> None:
    """Plot the error in each band of the domain, with the number of molecules; a band of too few (None) has no bar."""
    caption = (
        "Error by similarity to the training molecules, with the number of molecules. If asked for the domain, "
        "predictions have the error of a molecule's band as domain_error. No bar: too few molecules."
    )
    with gallery.panel(f"Error of {name} by domain", caption, "Error by domain", "", quantity) as axes:
        width, names = 0.8 / len(errors), list(next(iter(errors.values())))
        for i, (part, bands) in enumerate(errors.items()):
            place = np.arange(len(names)) + (i - (len(errors) - 1) / 2) * width
            heights = [error or 0 for _, error in bands.values()]
            bars = axes.bar(place, heights, width * 0.9, color=COLOURS[part], label=PARTS[part])
            axes.bar_label(bars, [f"{rows:,}" for rows, _ in bands.values()], padding=2, fontsize=SMALL)
        axes.set_xticks(np.arange(len(names)), names)
        axes.margins(y=0.15)
        axes.grid(visible=False, axis="x")
        _legend_above(axes)


def curve_panels(gallery: Gallery, target: TargetPredictions) -> None:
    """Plot the probability of the second of two classes, for the parts with both: ROC, precision and recall with the
    precision of guessing, and the share of the second class by predicted probability.
    """
    name, y, probability = target.name, target.y, target.prediction
    parts = [part for part, classes in y.items() if len(np.unique(classes)) == 2]

    def label(part: str, metric: str) -> str:
        return f"{PARTS[part]} {score(target.scores[part][metric], metric)}"

    caption = "Receiver operating characteristic; the line is chance."
    labels = "ROC", "false positives", "true positives"
    with gallery.panel(f"ROC curves of {name}", caption, *labels, square=True) as axes:
        for part in parts:
            x, up, _ = roc_curve(y[part], probability[part])
            axes.plot(x, up, color=COLOURS[part], label=label(part, "roc_auc"))
        _agreement(axes, (0, 1))
        _legend(axes, "lower right")

    caption = "Precision and recall; dotted: the precision of guessing."
    labels = "Precision and recall", "recall", "precision"
    with gallery.panel(f"Precision and recall of {name}", caption, *labels, square=True) as axes:
        for part in parts:
            precision, recall, _ = precision_recall_curve(y[part], probability[part], drop_intermediate=True)
            axes.plot(recall, precision, color=COLOURS[part], label=label(part, "pr_auc"))
            axes.axhline(y[part].mean(), color=COLOURS[part], linewidth=0.8, linestyle=":")
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
        _legend(axes, "lower left")

    caption = "Observed share of class 1 by predicted probability; on the line both are equal."
    labels = "Calibration", "predicted probability of 1", "share of 1"
    with gallery.panel(f"Calibration of {name}", caption, *labels, square=True) as axes:
        for part in parts:
            bins = int(np.clip(len(y[part]) // 20, 3, 10))
            share, mean = calibration_curve(y[part], probability[part], n_bins=bins, strategy="quantile")
            axes.plot(mean, share, "o-", color=COLOURS[part], ms=3.5, label=PARTS[part])
        _agreement(axes, (0, 1))
        _legend(axes, "lower right")


def confusion(
    gallery: Gallery, target: TargetPredictions, part: str, predicted: np.ndarray, classes: Sequence[str]
) -> None:
    """Plot the confusion matrix: numbers by true and predicted class, and their share of the true class."""
    caption = (
        f"{target.level.capitalize()}s by measured class (rows) and predicted class (columns); shade: share of the row."
    )
    labels = "Confusion", "predicted class", "measured class"
    with gallery.panel(f"Confusion of {target.name}", caption, *labels, square=True) as axes:
        counts = confusion_matrix(target.y[part], predicted, labels=range(len(classes)))
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        places, fade = np.arange(len(classes)), _fade(COLOURS["test"], 0.0, 0.55)
        axes.pcolormesh(places, places, shares, cmap=fade, vmin=0, vmax=1, rasterized=shares.size > MOST_VECTORS)
        if len(classes) <= MOST_CELLS:
            for (row, column), cell in np.ndenumerate(counts):
                share = f"\n{percent(shares[row, column])}" if len(classes) < 4 else ""
                axes.text(column, row, f"{cell:,}{share}", ha="center", va="center", fontsize=SMALL)
        axes.invert_yaxis()
        step = -(-len(classes) // MOST_NAMES)
        names = [_short(each) for each in classes][::step]
        upright = sum(map(len, names)) > LETTERS / 2
        axes.set_xticks(places[::step], names, rotation=90 if upright else 0)
        axes.set_yticks(places[::step], names)
        axes.grid(visible=False)


# --- The data and the training.


def data_panels(gallery: Gallery, report: NumericReport) -> None:
    """Draw the measured values and the sizes of molecules, by part of the split."""
    parts = [part for part in report.parts if part != "folds" and len(report.split[part])]
    shares: dict[str, list[float]] = {part: [] for part in parts}
    for t, name in enumerate(report.targets[:MOST_PICTURED] if report.level == "molecule" else ()):
        measured = {part: report.y[report.measured(part, t), t] for part in parts}
        if report.task.discrete:
            for part, y in measured.items():
                shares[part] += [float((y == k).mean()) if len(y) else np.nan for k in report.kind.classes_shown(t)]
        elif values := {part: y for part, y in measured.items() if len(y)}:  # no bounds, which have no value
            value_histogram(gallery, values, name, report.units.get(name, ""))
    if report.task.discrete and report.level == "molecule":
        pictured = range(min(len(report.targets), MOST_PICTURED))
        class_shares(gallery, shares, [name for t in pictured for name in report.kind.classes_shown(t).values()])
    size_panel(gallery, report)


def value_histogram(gallery: Gallery, values: Columns, name: str, unit: str = "") -> None:
    """Plot the distribution of the measured values of a target in each part of the split."""
    label, caption = f"Measured {name} in each part", f"Distribution of the measured values of {name}."
    with gallery.panel(label, caption, "", name + in_unit(unit), "share of molecules") as axes:
        edges = np.unique(np.linspace(*_range(*values.values()), 37))  # equal numbers, where there are few between
        for part, column in values.items():
            _steps(axes, column, edges, part, PARTS[part])
        axes.xaxis.set_major_locator(MaxNLocator(5))
        _legend_above(axes)


def class_shares(gallery: Gallery, shares: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    """Plot the share of each class among the measured molecules of each part; of many classes the first."""
    names, label = names[:MOST_SHARES], "Shares of the classes in each part"
    with gallery.panel(label, "Classes in each part.", "", "share of the molecules", "") as axes:
        figure_of(axes).set_figheight(1.1 + 0.34 * len(names))
        height = 0.8 / len(shares)
        for i, (part, share) in enumerate(shares.items()):
            place = np.arange(len(names)) + i * height
            axes.barh(place, share[:MOST_SHARES], height * 0.9, color=COLOURS[part], label=PARTS[part])
        axes.set_yticks(np.arange(len(names)) + 0.8 / 2 - height / 2, [_short(name) for name in names])
        axes.grid(visible=False, axis="y")
        axes.invert_yaxis()
        _legend_above(axes)


def size_panel(gallery: Gallery, report: RunReport) -> None:
    """Plot the distribution of the number of atoms per molecule in each part."""
    caption = "Size of the molecules, as the model reads them."
    labels = "", "atoms in a molecule", "share of molecules"
    with gallery.panel("Atoms in a molecule in each part", caption, *labels) as axes:
        num_atoms = {part: report.num_atoms[rows] for part, rows in report.split.items() if len(rows)}
        sizes = np.concatenate(list(num_atoms.values()))
        step = max(1, int(np.ceil((sizes.max() - sizes.min() + 1) / 40)))
        edges = np.arange(sizes.min(), sizes.max() + step + 1, step) - 0.5
        for part, column in num_atoms.items():
            _steps(axes, column, edges, part, PARTS[part])
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        _legend_above(axes)


def learning_panels(gallery: Gallery, report: NumericReport) -> None:
    """Draw losses, the leading validation score and the learning rate, epoch by epoch; in place of the leading score
    that which chose the epoch, if the user named it.
    """
    named, kept_by = titles(report.task.metrics), report.settings.get("training", {}).get("keep_by")
    leading, metric = next(iter(report.task.metrics.items()))
    if kept_by in named:
        leading = kept_by
    elif metric.in_units and len(report.targets) > 1:
        leading = "score"  # units of their own have no mean RMSE
    title = f"Validation {named[leading]}" if leading in named else "Mean validation score"
    learning_curves(gallery, report, LOSS | {title: {f"val_{leading}": "val"}} | RATE)


LOSS, RATE = {"Loss": {"train_loss": "train", "val_loss": "val"}}, {"Learning rate": {"lr": "train"}}


def learning_curves(gallery: Gallery, report: RunReport, curves: Mapping[str, Mapping[str, str]]) -> None:
    """Plot logged values epoch by epoch, a line for each network and part; the best epochs are marked.

    `curves` has, by title of a panel, the part of the split whose colour each column has.
    """
    histories = [rows for rows in report.histories if rows]
    logged = {column for rows in histories for row in rows for column in row}
    kept = " Dotted: the epoch whose weights are kept." if report.best_epochs else ""
    for title, columns in curves.items():
        columns = {column: part for column, part in columns.items() if column in logged}
        if not columns:
            continue
        with gallery.panel(f"{title} by epoch", f"{title} by epoch.{kept}", title, "epoch", "") as axes:
            for column, part in columns.items():
                for i, rows in enumerate(histories):
                    points = [(row["epoch"], row[column]) for row in rows if np.isfinite(row.get(column, np.nan))]
                    label = PARTS[part] if not i else None
                    axes.plot(*zip(*points, strict=True), color=COLOURS[part], linewidth=1.3, label=label)
            for epoch in report.best_epochs:
                axes.axvline(epoch, color=INK, linewidth=0.8, linestyle=":")
            if title == "Loss" and axes.dataLim.y0 > 0:  # that of a likelihood may be negative
                axes.set_yscale("log")
                axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axes.yaxis.set_major_formatter("{x:g}")
                axes.yaxis.set_minor_formatter(NullFormatter())
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            if len(columns) > 1:
                axes.legend()


# --- What several panels have.


def _steps(axes: Axes, values: np.ndarray, edges: np.ndarray, part: str, label: str) -> None:
    shares = np.histogram(values, edges)[0] / max(len(values), 1)
    colour = COLOURS[part]
    if part == "train":
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
    axes.stairs(shares, edges, color=colour, linewidth=1.3, label=label)


def _fade(colour: str, low: float, high: float) -> LinearSegmentedColormap:
    """Make a scale of one colour, from one opacity to another."""
    return LinearSegmentedColormap.from_list("fade", [(*to_rgb(colour), low), (*to_rgb(colour), high)])


def _short(name: str) -> str:
    """Shorten the name of a class for a small panel."""
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def _legend_above(axes: Axes) -> None:
    figure_of(axes).legend(loc="outside upper left", ncols=3, handlelength=1.1, columnspacing=1)


def _legend(axes: Axes, place: str) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc=place)  # type: ignore[call-overload]


def _agreement(axes: Axes, limits: tuple[float, float]) -> None:
    """Draw the line where both values are equal, with both axes alike."""
    axes.axline((limits[0], limits[0]), (limits[1], limits[1]), color=INK, linewidth=0.8, zorder=1.5)
    margin = 0.04 * (limits[1] - limits[0])
    axes.set(xlim=(limits[0] - margin, limits[1] + margin), ylim=(limits[0] - margin, limits[1] + margin))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _range(*arrays: np.ndarray) -> tuple[float, float]:
    low, high = min(map(np.min, arrays)), max(map(np.max, arrays))
    margin = max(1.0, 1e-6 * abs(low))  # 1 is nothing beside 1e17
    return (low, high) if high > low else (low - margin, high + margin)


def _groups(values: np.ndarray, most: int) -> list[np.ndarray]:
    """Split the rows, ascending by value, into groups of `MOLECULES_A_BIN` or more, at most so many."""
    return np.array_split(np.argsort(values, kind="stable"), int(np.clip(len(values) // MOLECULES_A_BIN, 1, most)))
