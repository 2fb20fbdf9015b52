"""A picture of a comparison: scores split by split, and the differences with their intervals."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gtx.files import whole_file
from gtx.report.comparison import IN_UNITS, YARDSTICK
from gtx.report.drawing import COLOURS, INK, STYLE
from gtx.report.words import in_unit

ROW, HEAD = 0.32, 1.1  # inches: a method, and what a panel takes besides


def comparison_figure(
    scores: Sequence[Mapping[str, Mapping[str, Any]]],
    table: Sequence[Mapping[str, Any]],
    metric: str,
    titles: Mapping[str, str],
    label: str,
    units: Mapping[str, str] | None = None,
    first: str = "gtx",
) -> Figure:
    """Two panels for each target: each split's score of each method with their mean, and `first` minus the others.

    The mean predictor is left out: it is so far off that the others would fall together.

    Args:
        scores: as `gtx.report.comparison.compare` takes them.
        table: what it gave.
        metric: the one to show.
        titles: what a reader calls each method.
        label: what a reader calls the metric.
        units: of targets, by name.
        first: the method that differences are taken of.
    """
    methods = [method for method in scores[0] if method != YARDSTICK]
    targets = list(scores[0][first]["per_target"])
    own = titles.get(first, first)
    better = f"{'below' if metric in ('rmse', 'mae') else 'above'} 0 {own} is better"
    with matplotlib.rc_context(STYLE):
        height = len(targets) * (HEAD + ROW * len(methods))
        figure = Figure(figsize=(7.2, height), layout="constrained")
        axes = figure.subplots(len(targets), 2, squeeze=False, width_ratios=(1.2, 1))
        for (left, right), target in zip(axes, targets, strict=True):
            here = {row["method"]: row for row in table if (row["target"], row["metric"]) == (target, metric)}
            rows = [here[method] for method in methods]
            unit = in_unit((units or {}).get(target, "")) if metric in IN_UNITS else ""
            _scores(left, scores, target, metric, rows, [titles.get(method, method) for method in methods])
            left.set(title=target, xlabel=f"test {label}{unit}")
            _differences(right, rows[1:], len(methods))
            right.set(title=f"{own} minus the other", xlabel=f"difference in {label}{unit}\n{better}")
    return figure


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save as PNG; the file appears whole or not at all."""
    with matplotlib.rc_context(STYLE), whole_file(path) as file:
        figure.savefig(file, format="png", dpi=200, facecolor="white", transparent=False)


def _scores(
    axes: Axes, scores: Sequence[Any], target: str, metric: str, rows: Sequence[Mapping[str, Any]], names: list[str]
) -> None:
    spread = np.linspace(-0.22, 0.22, len(scores)) if len(scores) > 1 else [0.0]
    for place, row in enumerate(rows):
        colour = COLOURS["test" if place == 0 else "train"]
        values = [split[row["method"]]["per_target"][target][metric] for split in scores]
        points = [(value, place + shift) for value, shift in zip(values, spread, strict=True) if value is not None]
        if points:
            axes.plot(*zip(*points, strict=True), "o", color=colour, alpha=0.45, ms=3.6, mew=0)
            axes.plot([row["mean"]] * 2, [place - 0.32, place + 0.32], color=colour, linewidth=2)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.xaxis.set_major_locator(MaxNLocator(5))


def _differences(axes: Axes, rows: Sequence[Mapping[str, Any]], methods: int) -> None:
    for place, row in enumerate(rows, 1):
        if row["difference"] is None:
            continue
        if row["low"] is not None:
            axes.plot([row["low"], row["high"]], [place, place], color=INK, linewidth=1.4)
        axes.plot([row["difference"]], [place], "o", color=INK, ms=5)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_yticks([])
    axes.set_ylim(methods - 0.5, -0.5)
    axes.xaxis.set_major_locator(MaxNLocator(5))
