"""Comparison of two methods on the same splits, and its figure."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy import stats

from gtx.base.files import atomic_file
from gtx.data.rows import in_unit
from gtx.report.gallery import COLOURS, INK, STYLE

# --- A picture of a comparison: scores split by split, and the differences with their intervals.

ROW, HEAD = 0.32, 1.1  # inches: a method, and what a panel takes besides


def comparison_figure(
    scores: Sequence[Mapping[str, Mapping[str, Any]]],
    table: Sequence[Mapping[str, Any]],
    metric: str,
    titles: Mapping[str, str],
    label: str,
    units: Mapping[str, str] | None = None,
) -> Figure:
    """Two panels for each target: each split's score of each method with their mean, and gtx's minus the others'.

    The mean predictor is left out: it is so far off that the others would fall together.

    `scores` and `table` are what `compare` takes and returns; `titles` and `label` what a reader calls each method and
    the metric.
    """
    methods = [method for method in scores[0] if method != YARDSTICK]
    targets = list(scores[0][FIRST]["per_target"])
    own, places = titles.get(FIRST, FIRST), range(len(methods))
    better = f"{'below' if metric in IN_UNITS else 'above'} 0 {own} is better"
    spread = np.linspace(-0.22, 0.22, len(scores)) if len(scores) > 1 else np.zeros(1)
    rows = {(row["target"], row["method"]): row for row in table if row["metric"] == metric}
    with matplotlib.rc_context(STYLE):
        height = len(targets) * (HEAD + ROW * len(methods))
        figure = Figure(figsize=(7.2, height), layout="constrained")
        axes = figure.subplots(len(targets), 2, squeeze=False, width_ratios=(1.2, 1))
        for (left, right), target in zip(axes, targets, strict=True):
            unit = in_unit((units or {}).get(target, "")) if metric in IN_UNITS else ""
            left.set(title=target, xlabel=f"test {label}{unit}")
            right.set(title=f"{own} minus the other", xlabel=f"difference in {label}{unit}\n{better}")
            right.axvline(0, color=INK, linewidth=0.8)
            for place, method in enumerate(methods):
                row, colour = rows[target, method], COLOURS["train" if place else "test"]
                values = np.array([split[method]["per_target"][target][metric] for split in scores], float)
                left.plot(values, place + spread, "o", color=colour, alpha=0.45, ms=3.6, mew=0)
                if row["mean"] is not None:
                    left.vlines(row["mean"], place - 0.32, place + 0.32, color=colour, linewidth=2)
                if row["low"] is not None:
                    right.hlines(place, row["low"], row["high"], color=INK, linewidth=1.4)
                if row["difference"] is not None:
                    right.plot([row["difference"]], [place], "o", color=INK, ms=5)
            left.set_yticks(places, [titles.get(method, method) for method in methods])
            right.set_yticks([])
            left.grid(axis="y", visible=False)
            for each in (left, right):
                each.set_ylim(len(methods) - 0.5, -0.5)
                each.xaxis.set_major_locator(MaxNLocator(5))
    return figure


def write_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save as PNG; the file appears whole or not at all."""
    with matplotlib.rc_context(STYLE), atomic_file(path) as file:
        figure.savefig(file, format="png", dpi=200, facecolor="white", transparent=False)


# --- Two methods on the same splits: the difference of their scores, and whether it is significant.

FIRST = "gtx"
"""The method that differences are taken of."""
LEVEL = 0.95
MEAN = "mean of targets"
YARDSTICK, IN_UNITS = "mean", ("rmse", "mae")
"""Errors of targets in different units have no mean; as shares of this method's errors they have."""


class Paired(NamedTuple):
    """A paired comparison: the mean difference over splits, and for several splits its 95% confidence interval and the
    probability of a mean difference at least this large if the methods do not differ.
    """

    difference: float
    low: float | None
    high: float | None
    p: float | None


def corrected_resampled_t(differences: Sequence[float], ratio: float) -> Paired:
    r"""Compare two methods by the corrected resampled t-test.

    Training sets of different splits overlap, so their scores are not independent. The usual t-test, and a bootstrap
    over splits, therefore find differences that do not exist. For J splits of \(n_2\) test and \(n_1\) other rows with
    differences \(d_j\), of variance \(s^2\),

    \[ t = \frac{\bar d}{\sqrt{(1/J + n_2/n_1)\, s^2}} \]

    has about a t-distribution of J − 1 degrees of freedom.

    Sources: Nadeau & Bengio 2003 (https://doi.org/10.1023/A:1024068626366), section 3; for repeated k-fold
    cross-validation Bouckaert & Frank 2004 (https://doi.org/10.1007/978-3-540-24775-3_3).

    Args:
        differences: differences between the scores of the two methods, one per split.
        ratio: \(n_2/n_1\); in k-fold cross-validation 1/(k − 1).
    """
    d = np.asarray(differences, float)
    if len(d) == 0 or not np.isfinite(d).all():
        raise ValueError(f"expected one finite difference or more, got {list(differences)}")
    mean = float(d.mean())
    if len(d) == 1:
        return Paired(mean, None, None, None)
    error = float(np.sqrt((1 / len(d) + ratio) * d.var(ddof=1)))
    if error == 0:
        return Paired(mean, mean, mean, float(mean == 0))
    reach = error * float(stats.t.ppf((1 + LEVEL) / 2, len(d) - 1))
    return Paired(mean, mean - reach, mean + reach, float(2 * stats.t.sf(abs(mean) / error, len(d) - 1)))


def compare(
    scores: Sequence[Mapping[str, Mapping[str, Any]]], ratio: float, metrics: Sequence[str]
) -> list[dict[str, Any]]:
    """Compare all methods with gtx, target by target and metric by metric; `ratio` is of `corrected_resampled_t`.

    `scores` has per split and method what `gtx.tasks.metrics.evaluate` gives, the same methods and targets in each.

    Returns:
        Rows of plain values: `target`, `metric`, `method`, `mean`, `sd` (between splits), `splits` (where the metric is
        defined), and for all methods but gtx `difference` (gtx's score minus the other's), `low`, `high` and `p` over
        the splits where both are. What is not defined is None. With several targets, rows of their mean end the list,
        their target `MEAN`; RMSE and MAE, which are in the targets' own units, enter it as shares of the mean
        predictor's on the same split.
    """
    methods, targets = list(scores[0]), list(scores[0][FIRST]["per_target"])

    def column(target: str | None, metric: str, method: str) -> np.ndarray:
        """Return the score of each split, NaN where it is not defined."""
        if target is None and metric in IN_UNITS and YARDSTICK in methods:
            with np.errstate(divide="ignore", invalid="ignore"):
                shares = [column(each, metric, method) / column(each, metric, YARDSTICK) for each in targets]
            return np.ma.masked_invalid(shares).mean(axis=0).filled(np.nan)
        of = [split[method] if target is None else split[method]["per_target"][target] for split in scores]
        return np.array([np.nan if each[metric] is None else each[metric] for each in of])

    rows = []
    for target in [*targets, None] if len(targets) > 1 else targets:
        for metric in metrics:
            own = column(target, metric, FIRST)
            for method in methods:
                values = column(target, metric, method)
                defined, both = values[~np.isnan(values)], ~np.isnan(values) & ~np.isnan(own)
                tested = method != FIRST and both.any()
                paired = corrected_resampled_t((own - values)[both], ratio)._asdict() if tested else {}
                rows.append(
                    {
                        "target": MEAN if target is None else target,
                        "metric": metric,
                        "method": method,
                        "mean": float(defined.mean()) if len(defined) else None,
                        "sd": float(defined.std(ddof=1)) if len(defined) > 1 else None,
                        "splits": len(defined),
                        **{name: paired.get(name) for name in Paired._fields},
                    }
                )
    return rows
