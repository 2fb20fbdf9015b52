"""Figures: measured against predicted values, learning curves, calibration, tuning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, NullLocator
from scipy.stats import binned_statistic
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from gtx.report.context import Attainable
from gtx.report.kinds import PARTS, in_unit, number, signed
from gtx.report.molecules import COLOURS, FAINT, INK, LETTERS, SMALL, STYLE, figure_of, panel, pointed

# --- The pictures of a report, each a matplotlib figure of one panel, drawn without pyplot.

MOST_VECTORS = 400  # points drawn one by one; more become one image inside the picture
MOST_POINTS = 5_000  # more become a density
MOLECULES_A_BIN = 20  # or more, whose mean error is shown
MOST_CELLS, MOST_NAMES = 6, 8  # classes whose counts and whose names a confusion matrix has room for
MOST_SHARES = 30  # classes whose shares are bars
MOST_LETTERS = 12  # of the name of a class
MOST_INTERVALS = 150  # error bars that can be told apart

Columns = Mapping[str, np.ndarray]
"""One array per part of the split."""


def parity(
    y: np.ndarray,
    prediction: np.ndarray,
    part: str,
    quantity: str,
    scores: Sequence[str] = (),
    remarks: Sequence[str] = (),
    low: np.ndarray | None = None,
    high: np.ndarray | None = None,
    points: Sequence[str] | None = None,
) -> Figure:
    """Plot predicted against measured values of one target, with the line where they are equal.

    Args:
        y, prediction: `[n]` in the target's unit, no blanks.
        part: of the split.
        quantity: name of the target with its unit, for the axes.
        scores: lines of text for the upper left corner.
        remarks: lines of text for the lower right corner.
        low, high: limits of intervals, `[n]`, drawn as error bars if there are few points.
        points: information that the page shows for each point, see `gtx.report.molecules.pointed`; for very many
            points, only for those with the largest errors.
    """
    with panel(PARTS[part].capitalize(), f"measured {quantity}", f"predicted {quantity}", square=True) as axes:
        colour = COLOURS[part]
        if low is not None and high is not None and len(y) <= MOST_INTERVALS:
            axes.vlines(y, low, high, colors=colour, alpha=0.25, linewidth=1)
        if len(y) > MOST_POINTS:
            # from nearly clear to the colour, so that the page shows through
            fade = LinearSegmentedColormap.from_list("fade", [(*to_rgb(colour), 0.12), (*to_rgb(colour), 1.0)])
            axes.hexbin(y, prediction, gridsize=70, bins="log", cmap=fade, linewidths=0, rasterized=True)
        else:
            faint = float(np.clip(8 / np.sqrt(len(y) + 1), 0.25, 0.75))
            rasterized = len(y) > MOST_VECTORS
            (dots,) = axes.plot(y, prediction, "o", color=colour, alpha=faint, ms=3.4, mew=0, rasterized=rasterized)
        if points is not None:
            if len(y) > MOST_VECTORS:  # one image, on which the furthest off lie unseen
                far = np.sort(np.argsort(-np.abs(prediction - y), kind="stable")[: MOST_VECTORS // 2])
                (dots,) = axes.plot(y[far], prediction[far], "o", color=colour, alpha=0, ms=3.4, mew=0)
                points = [points[i] for i in far]
            dots.set_gid(pointed(points))
        _agreement(axes, _range(y, prediction))
        words: dict[str, Any] = {"transform": axes.transAxes, "fontsize": SMALL, "linespacing": 1.4}
        axes.text(0.04, 0.97, "\n".join(scores), va="top", **words)
        axes.text(0.97, 0.03, "\n".join(remarks), ha="right", **words)
    return figure_of(axes)


def error_histogram(errors: Columns, unit: str, of: str = "molecule") -> Figure:
    """Plot the distribution of predicted minus measured values in each part of the split, with its mean.

    Args:
        errors: predicted minus measured.
        unit: unit of the errors.
        of: name of what the errors belong to, such as molecules.
    """
    with panel("Errors", f"predicted − measured{in_unit(unit)}", f"share of {of}s", height=3) as axes:
        widest = np.percentile(np.abs(np.concatenate([*errors.values(), [0.0]])), 99.5) or 1.0
        edges = np.linspace(-widest, widest, 36)
        for part, error in errors.items():
            _steps(axes, np.clip(error, -widest, widest), edges, part, f"{PARTS[part]}, mean {signed(error.mean())}")
        axes.axvline(0, ymax=1 / 1.3, color=INK, linewidth=0.8)
        axes.set_ylim(0, 1.3 * axes.get_ylim()[1])  # room for the legend
        _legend(axes, loc="upper left", handlelength=1)
    return figure_of(axes)


def coverage(halfwidths: Columns, errors: Columns, level: float) -> Figure:
    """Plot the share of test molecules inside intervals of every level, with widths set by the validation molecules.

    Args:
        halfwidths: half-widths of the intervals of the model for validation molecules (`val` or `folds`) and `test`; an
            interval of another level is a scaled interval of the model.
        errors: predicted minus measured values for the same parts.
        level: level of the intervals of the model, which is marked.
    """
    ratios = {part: np.sort(np.abs(errors[part]) / halfwidths[part]) for part in errors}
    (held_out,) = (part for part in errors if part != "test")
    n, m = len(ratios[held_out]), len(ratios["test"])
    levels = np.linspace(0, 1, 101)
    places = np.ceil(levels * (n + 1)).astype(int) - 1  # the finite-sample quantile of split conformal prediction
    widths = np.concatenate([ratios[held_out], [np.inf]])[np.clip(places, 0, n)]
    inside = np.where(levels > 0, np.searchsorted(ratios["test"], widths, side="right") / m, 0)
    with panel(
        "Coverage of intervals", "level of the intervals", "share of test molecules inside", square=True
    ) as axes:
        spread = 1.96 * np.sqrt(levels * (1 - levels) / m)
        axes.fill_between(levels, levels - spread, levels + spread, color=FAINT, alpha=0.7, linewidth=0)
        axes.plot(levels, inside, color=COLOURS["test"], drawstyle="steps-post")
        held = (ratios["test"] <= 1).mean()
        axes.plot([level], [held], "o", color=COLOURS["test"], ms=5)
        axes.annotate(
            f"{held:.0%} in the {100 * level:g}% intervals", (level, held), (0.96, 0.06), ha="right", fontsize=SMALL
        )
        _agreement(axes, (0, 1))
    return figure_of(axes)


def roc(y: Columns, probability: Columns, notes: Mapping[str, str]) -> Figure:
    """Plot the rate of true positives against the rate of false positives of one target, with a curve for each part.

    Args:
        y: classes 0 and 1, no blanks; a part with only one class has no curve.
        probability: probability of class 1.
        notes: text in the legend after the name of each part.
    """
    with panel("ROC", "false positives", "true positives", square=True) as axes:
        for part in _both_classes(y):
            x, up, _ = roc_curve(y[part], probability[part])
            axes.plot(x, up, color=COLOURS[part], label=f"{PARTS[part]} {notes[part]}")
        _agreement(axes, (0, 1))
        _legend(axes, loc="lower right")
    return figure_of(axes)


def precision_recall(y: Columns, probability: Columns, notes: Mapping[str, str]) -> Figure:
    """Plot precision against recall of one target, and the precision of guessing as a dotted line; arguments as for
    `roc`.
    """
    with panel("Precision and recall", "recall", "precision", square=True) as axes:
        for part in _both_classes(y):
            precision, recall, _ = precision_recall_curve(y[part], probability[part], drop_intermediate=True)
            axes.plot(recall, precision, color=COLOURS[part], label=f"{PARTS[part]} {notes[part]}")
            axes.axhline(y[part].mean(), color=COLOURS[part], linewidth=0.8, linestyle=":")
        axes.set(xlim=(-0.04, 1.04), ylim=(-0.04, 1.04))
        _legend(axes, loc="lower left")
    return figure_of(axes)


def reliability(y: Columns, probability: Columns) -> Figure:
    """Plot the share of class 1 among molecules of similar predicted probability. The arguments are those of `roc`."""
    with panel("Calibration", "predicted probability of 1", "share of 1", square=True) as axes:
        for part in _both_classes(y):
            bins = int(np.clip(len(y[part]) // 20, 3, 10))
            share, mean = calibration_curve(y[part], probability[part], n_bins=bins, strategy="quantile")
            axes.plot(mean, share, "o-", color=COLOURS[part], ms=3.5, label=PARTS[part])
        _agreement(axes, (0, 1))
        _legend(axes, loc="lower right")
    return figure_of(axes)


def confusion(y: np.ndarray, predicted: np.ndarray, classes: Sequence[str] = ("0", "1")) -> Figure:
    """Plot the confusion matrix: molecules by true and predicted class, and their share of the true class.

    Args:
        y, predicted: true and predicted class numbers, `[n]`, from 0.
        classes: names of the classes.
    """
    counts = confusion_matrix(y, predicted, labels=range(len(classes)))
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    with panel("Confusion", "predicted class", "measured class", square=True) as axes:
        cells = [Rectangle((column - 0.5, row - 0.5), 1, 1) for row, column in np.argwhere(counts)]
        look: dict[str, Any] = {"facecolor": COLOURS["test"], "linewidth": 0, "rasterized": len(cells) > MOST_VECTORS}
        axes.add_collection(PatchCollection(cells, alpha=0.55 * shares[counts > 0], **look))
        for (row, column), number in np.ndenumerate(counts):
            share = f"\n{shares[row, column]:.0%}" if len(classes) < 4 else ""
            if len(classes) <= MOST_CELLS:
                axes.text(column, row, f"{number:,}{share}", ha="center", va="center", fontsize=SMALL)
        ends, step = (-0.5, len(classes) - 0.5), -(-len(classes) // MOST_NAMES)
        axes.set(xlim=ends, ylim=ends[::-1])
        names = [_short(name) for name in classes][::step]
        upright = sum(map(len, names)) > LETTERS / 2
        axes.set_xticks(range(0, len(classes), step), names, rotation=90 if upright else 0)
        axes.set_yticks(range(0, len(classes), step), names)
        axes.grid(visible=False)
    return figure_of(axes)


def by_similarity(similarity: np.ndarray, errors: np.ndarray, quantity: str, part: str) -> Figure:
    """Plot the mean error of molecules by their similarity to the training molecules, with its standard error.

    Args:
        similarity: `[m]`, from 0 to 1.
        errors: absolute errors, `[m]`.
        quantity: name of the errors, for the axis.
        part: of the split.
    """
    bins = int(np.clip(len(errors) // MOLECULES_A_BIN, 1, 6))
    edges = np.unique(np.quantile(similarity, np.linspace(0, 1, bins + 1)))
    if len(edges) == 1:
        edges = edges[0] + np.array([-0.02, 0.02])
    mean, sd, number = (binned_statistic(similarity, errors, how, edges)[0] for how in ("mean", "std", "count"))
    place = binned_statistic(similarity, similarity, "mean", edges)[0]
    reach = sd / np.sqrt(number)
    with panel("Error by similarity", "similarity to training molecules", quantity, square=True) as axes:
        colour, top = COLOURS[part], np.nan_to_num(mean + reach).max()
        if len(np.unique(errors)) > 2:  # a right class and a wrong one would be two rows of points
            top, rasterized = errors.max(), len(errors) > MOST_VECTORS
            axes.plot(similarity, errors, "o", color=colour, alpha=0.2, ms=2.6, mew=0, rasterized=rasterized)
        axes.stairs(mean, edges, baseline=None, color=colour, linewidth=1.8)
        axes.errorbar(place, mean, reach, fmt="o", color=colour, ms=4, linewidth=1.2)
        axes.set(xlim=(-0.04, 1.04), ylim=(0, 1.15 * top or 1), aspect="auto")
    return figure_of(axes)


def learning_curve(
    histories: Sequence[Sequence[Mapping[str, float]]],
    columns: Mapping[str, str],
    title: str,
    best: Sequence[float] = (),
    log: bool = False,
) -> Figure:
    """Plot logged values epoch by epoch, from 1, a line for each member and part.

    Args:
        histories: one row per epoch for each member, with `epoch`.
        columns: part of the split whose colour is used, by column.
        title: title of the panel.
        best: best epochs, which are marked.
        log: whether the scale is logarithmic.
    """
    with panel(title, "epoch", "") as axes:
        for column, part in columns.items():
            for i, rows in enumerate(histories):
                points = [(row["epoch"], row[column]) for row in rows if np.isfinite(row.get(column, np.nan))]
                label = PARTS[part] if not i else None
                axes.plot(*zip(*points, strict=True), color=COLOURS[part], linewidth=1.3, label=label)
        for epoch in best:
            axes.axvline(epoch, color=INK, linewidth=0.8, linestyle=":")
        if log:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        if len(columns) > 1:
            _legend(axes)
    return figure_of(axes)


def value_histogram(values: Columns, quantity: str) -> Figure:
    """Plot the distribution of the measured values of a target in each part of the split."""
    with panel("", quantity, "share of molecules") as axes:
        edges = np.unique(np.linspace(*_range(*values.values()), 37))  # equal numbers, where there are few between
        for part, column in values.items():
            _steps(axes, column, edges, part, PARTS[part])
        axes.xaxis.set_major_locator(MaxNLocator(5))
        _legend_above(axes)
    return figure_of(axes)


def class_shares(shares: Mapping[str, Sequence[float]], names: Sequence[str]) -> Figure:
    """Plot the share of a class among the measured molecules of each part; of many classes the first.

    Args:
        shares: T values for each part, NaN where nothing is measured.
        names: names of the T classes.
    """
    shares, names = {part: share[:MOST_SHARES] for part, share in shares.items()}, names[:MOST_SHARES]
    with panel("", "share of the molecules", "") as axes:
        figure_of(axes).set_figheight(1.1 + 0.34 * len(names))
        height = 0.8 / len(shares)
        for i, (part, share) in enumerate(shares.items()):
            axes.barh(np.arange(len(names)) + i * height, share, height * 0.9, color=COLOURS[part], label=PARTS[part])
        axes.set_yticks(np.arange(len(names)) + 0.8 / 2 - height / 2, [_short(name) for name in names])
        axes.grid(visible=False, axis="y")
        axes.invert_yaxis()
        _legend_above(axes)
    return figure_of(axes)


def size_histogram(num_atoms: Columns) -> Figure:
    """Plot the distribution of the number of atoms per molecule in each part."""
    with panel("", "atoms in a molecule", "share of molecules") as axes:
        sizes = np.concatenate(list(num_atoms.values()))
        step = max(1, int(np.ceil((sizes.max() - sizes.min() + 1) / 40)))
        edges = np.arange(sizes.min(), sizes.max() + step + 1, step) - 0.5
        for part, column in num_atoms.items():
            _steps(axes, column, edges, part, PARTS[part])
        axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
        _legend_above(axes)
    return figure_of(axes)


def by_band(errors: Mapping[str, Mapping[str, tuple[int, float | None]]], quantity: str) -> Figure:
    """Plot the error in each band of the domain, with the number of molecules; a band of too few has no bar.

    Args:
        errors: for each part and band the number of molecules and the error, or None.
        quantity: label of the errors.
    """
    with panel("Error by domain", "", quantity) as axes:
        width, bands = 0.8 / len(errors), list(next(iter(errors.values())))
        for i, (part, found) in enumerate(errors.items()):
            place = np.arange(len(bands)) + (i - (len(errors) - 1) / 2) * width
            bars = axes.bar(
                place, [error or 0 for _, error in found.values()], width * 0.9, color=COLOURS[part], label=PARTS[part]
            )
            axes.bar_label(bars, [f"{rows:,}" for rows, _ in found.values()], padding=2, fontsize=SMALL)
        axes.set_xticks(np.arange(len(bands)), bands)
        axes.margins(y=0.15)
        axes.grid(visible=False, axis="x")
        _legend_above(axes)
    return figure_of(axes)


def attainable(limits: Attainable, error: float, part: str, unit: str) -> Figure:
    """Plot the error of a model by number of training rows: the kernel's learning curve, and the forecast.

    Args:
        limits: the learning curve, and the noise of the measurements.
        error: RMSE of the model, to which the curve is scaled.
        part: of the split, on which the error was measured.
        unit: of the error.
    """
    curve, colour = limits.curve, COLOURS[part]
    if curve is None:
        raise ValueError("expected a learning curve, got None")
    now = curve.rows[-1]
    more = [limits.forecast(error, times) for times in np.geomspace(1, 2, 13)]
    rows = [now + each.rows for each in more]
    with panel("RMSE with more molecules", "training molecules", f"RMSE{in_unit(unit)}") as axes:
        axes.fill_between(
            rows, [each.low for each in more], [each.high for each in more], color=colour, alpha=0.15, linewidth=0
        )
        axes.plot(rows, [each.error for each in more], color=colour, linewidth=1.3)
        axes.plot(curve.rows, [error * each / curve.errors[-1] for each in curve.errors], "o", color=colour, ms=4)
        if limits.noise is not None:
            axes.axhline(limits.noise.sd, color=INK, linewidth=0.8, linestyle="--")
        axes.set_xscale("log")
        axes.set_xticks([*curve.rows, 2 * now], [f"{rows:,}" for rows in [*curve.rows, 2 * now]])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
        axes.set_xlim(0.9 * curve.rows[0], 2.2 * now)  # room for the first dot
    return figure_of(axes)


def _steps(axes: Axes, values: np.ndarray, edges: np.ndarray, part: str, label: str) -> None:
    shares = np.histogram(values, edges)[0] / max(len(values), 1)
    colour = COLOURS[part]
    if part == "train":
        axes.stairs(shares, edges, fill=True, color=colour, alpha=0.2)
    axes.stairs(shares, edges, color=colour, linewidth=1.3, label=label)


def _short(name: str) -> str:
    """Shorten the name of a class for a small panel."""
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…"


def _legend_above(axes: Axes) -> None:
    axes.figure.legend(loc="outside upper left", ncols=3, handlelength=1.1, columnspacing=1)


def _legend(axes: Axes, **options: object) -> None:
    if axes.get_legend_handles_labels()[0]:
        axes.legend(**options)


def _agreement(axes: Axes, limits: tuple[float, float]) -> None:
    axes.axline((limits[0], limits[0]), (limits[1], limits[1]), color=INK, linewidth=0.8, zorder=1.5)
    margin = 0.04 * (limits[1] - limits[0])
    axes.set(xlim=(limits[0] - margin, limits[1] + margin), ylim=(limits[0] - margin, limits[1] + margin))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_locator(MaxNLocator(5))


def _range(*arrays: np.ndarray) -> tuple[float, float]:
    low, high = min(map(np.min, arrays)), max(map(np.max, arrays))
    margin = max(1.0, 1e-6 * abs(low))  # 1 is nothing beside 1e17
    return (low, high) if high > low else (low - margin, high + margin)


def _both_classes(y: Columns) -> list[str]:
    return [part for part, classes in y.items() if len(np.unique(classes)) == 2]


# --- Pictures of what a model says of its own errors.

MOST_GROUPS = 10


def spread_reliability(std: Columns, errors: Columns, unit: str) -> Figure:
    """Plot the root mean square error of molecules of similar standard deviation against that deviation.

    Args:
        std: predicted standard deviations of each part, `[m]`.
        errors: predicted minus measured values of each part.
        unit: unit of standard deviations and errors.
    """
    with panel(
        "Calibration", f"standard deviation{in_unit(unit)}", f"root mean square error{in_unit(unit)}", square=True
    ) as axes:
        top = 0.0
        for part in std:
            groups = np.array_split(np.argsort(std[part], kind="stable"), _groups(len(std[part])))
            told, found = (
                np.array([np.sqrt(np.mean(values[rows] ** 2)) for rows in groups])
                for values in (std[part], errors[part])
            )
            reach = found / np.sqrt(2 * len(std[part]) / len(groups))  # the standard error of a root mean square
            axes.errorbar(told, found, reach, fmt="o-", ms=3.5, linewidth=1.2, color=COLOURS[part], label=PARTS[part])
            top = max(top, told.max(), (found + reach).max())
        axes.axline((0, 0), (1, 1), color=INK, linewidth=0.8, zorder=1.5)
        axes.set(xlim=(0, 1.08 * top or 1), ylim=(0, 1.08 * top or 1))
        axes.legend(loc="upper left")
    return figure_of(axes)


def coverage_by_similarity(
    similarity: np.ndarray, inside: np.ndarray, width: np.ndarray, level: float, part: str, unit: str
) -> Figure:
    """Plot the share of molecules inside their intervals by similarity to the training molecules, with the range
    of chance about the level; below, the mean width of the intervals.

    Args:
        similarity: `[m]`, from 0 to 1.
        inside: whether the true value is inside the interval, bool `[m]`.
        width: width of the intervals, `[m]`.
        level: nominal coverage of the intervals.
        part: of the split.
        unit: unit of the width.
    """
    groups = np.array_split(np.argsort(similarity, kind="stable"), min(5, _groups(len(similarity))))
    place, share, wide = (np.array([values[rows].mean() for rows in groups]) for values in (similarity, inside, width))
    chance = 1.96 * np.sqrt(level * (1 - level) / np.array([len(rows) for rows in groups]))
    with panel(
        "Coverage by similarity", "similarity to training molecules", "share inside its interval", square=True
    ) as axes:
        axes.fill_between(
            [-0.04, 1.04], level - chance.max(), level + chance.max(), color=FAINT, alpha=0.7, linewidth=0
        )
        axes.axhline(level, color=INK, linewidth=0.8)
        axes.plot(place, share, "o-", color=COLOURS[part], ms=4)
        for x, mean in zip(place, wide, strict=True):
            axes.text(x, 0.03, number(float(mean)), ha="center", fontsize=SMALL, rotation=90)
        axes.set(xlim=(-0.04, 1.04), ylim=(0, 1.04), aspect="auto")
        axes.text(0.02, 0.26, f"mean width{in_unit(unit)}:", fontsize=SMALL)
    return figure_of(axes)


def _groups(molecules: int) -> int:
    return int(np.clip(molecules // MOLECULES_A_BIN, 1, MOST_GROUPS))


# --- A picture of a study: what mattered, and the scores trial by trial.


def tuning_figure(
    importances: Mapping[str, float], scores: Sequence[tuple[int, float, bool]], default: float | None
) -> Figure:
    """Plot the importance of each choice, and the validation score of each trial with the best score so far.

    Args:
        importances: importance of each choice by name, which sum to 1.
        scores: of each trial its number, its validation score (lower is better), and whether it came to its end; the
            others were pruned.
        default: score of the default settings.
    """
    names = sorted(importances, key=importances.__getitem__)
    whole = np.array([(number, score) for number, score, ended in scores if ended])
    pruned = np.array([(number, score) for number, score, ended in scores if not ended]).reshape(-1, 2)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 2.9), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.barh([name.replace("_", " ") for name in names], [importances[n] for n in names], color=COLOURS["train"])
        left.set(title="What mattered", xlabel="share of importance (PED-ANOVA)", xlim=(0, None))
        left.grid(axis="y", visible=False)
        right.plot(*pruned.T, "x", color=COLOURS["train"], ms=4, label="ended early")
        right.plot(*whole.T, "o", color=COLOURS["test"], ms=4, mew=0, label="whole training")
        right.step(
            whole[:, 0], np.minimum.accumulate(whole[:, 1]), where="post", color=INK, lw=1.2, label="best so far"
        )
        if default is not None:
            right.axhline(default, color=COLOURS["val"], linewidth=1, linestyle="--", label="defaults")
        low, high = whole[:, 1].min(), np.quantile(whole[:, 1], 0.9)
        right.set(title="Trials", xlabel="trial", ylabel="validation score, lower is better")
        right.set_ylim(low - 0.1 * (high - low or 1), high + 0.5 * (high - low or 1))
        right.xaxis.set_major_locator(MaxNLocator(integer=True))
        right.legend(loc="upper right", frameon=True, facecolor="white", edgecolor="none", framealpha=0.85)
    return figure
