"""Two methods on the same splits: the difference of their scores, and whether it is significant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

LEVEL = 0.95
MEAN = "mean of targets"
YARDSTICK, IN_UNITS = "mean", ("rmse", "mae")
"""Errors of targets in different units have no mean; as shares of this method's errors they have."""


class Paired(NamedTuple):
    """A paired comparison.

    Attributes:
        difference: mean over splits.
        low, high: its confidence interval; None for a single split.
        p: how likely a mean at least so far from 0 is if there is no difference; None for a single split.
    """

    difference: float
    low: float | None
    high: float | None
    p: float | None


def corrected_resampled_t(differences: Sequence[float], ratio: float, level: float = LEVEL) -> Paired:
    r"""The corrected resampled t-test.

    Training sets of different splits overlap, so their scores are no independent draws: the usual t-test, and a
    bootstrap over splits likewise, find differences that are not there. For J splits of \(n_2\) test and \(n_1\)
    other rows with differences \(d_j\), of variance \(s^2\),

    \[ t = \frac{\bar d}{\sqrt{(1/J + n_2/n_1)\, s^2}} \]

    has about a t-distribution of J − 1 degrees of freedom.

    Sources: Nadeau & Bengio 2003 (https://doi.org/10.1023/A:1024068626366), section 3; for repeated k-fold
    cross-validation Bouckaert & Frank 2004 (https://doi.org/10.1007/978-3-540-24775-3_3).

    Args:
        differences: of the two methods' scores, one per split.
        ratio: \(n_2/n_1\); in k-fold cross-validation 1/(k − 1).
        level: of the confidence interval.
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
    reach = error * float(stats.t.ppf((1 + level) / 2, len(d) - 1))
    return Paired(mean, mean - reach, mean + reach, float(2 * stats.t.sf(abs(mean) / error, len(d) - 1)))


def compare(
    scores: Sequence[Mapping[str, Mapping[str, Any]]], ratio: float, metrics: Sequence[str], first: str = "gtx"
) -> list[dict[str, Any]]:
    """All methods beside the first, target by target and metric by metric.

    Args:
        scores: per split and method what `gtx.training.evaluate` gives; every split has the same methods and targets.
        ratio: of test rows to others, see `corrected_resampled_t`.
        metrics: which to compare.
        first: the method that differences are taken of: its score minus the other's.

    Returns:
        Rows of plain values: `target`, `metric`, `method`, `mean`, `sd` (between splits), `splits` (where the metric is
        defined), and for all methods but the first `difference`, `low`, `high` and `p` over the splits where both are.
        What is not defined is None. With several targets, rows of their mean end the list, their target `MEAN`; RMSE
        and MAE, which are in the targets' own units, enter it as shares of the mean predictor's on the same split.
    """
    methods, targets = list(scores[0]), list(scores[0][first]["per_target"])

    def column(target: str | None, metric: str, method: str) -> np.ndarray:
        if target is None and metric in IN_UNITS and YARDSTICK in methods:
            return _share(*([column(each, metric, name) for each in targets] for name in (method, YARDSTICK)))
        held = [split[method] if target is None else split[method]["per_target"][target] for split in scores]
        return np.array([np.nan if scores_[metric] is None else scores_[metric] for scores_ in held])

    rows = []
    for target in [*targets, None] if len(targets) > 1 else targets:
        for metric in metrics:
            own = column(target, metric, first)
            for method in methods:
                values = column(target, metric, method)
                defined, both = values[~np.isnan(values)], ~np.isnan(values) & ~np.isnan(own)
                row = {"target": MEAN if target is None else target, "metric": metric, "method": method}
                row |= {"mean": _plain(defined, np.mean), "sd": _plain(defined, np.std, 1), "splits": len(defined)}
                tested = method != first and both.any()
                paired = corrected_resampled_t((own - values)[both], ratio)._asdict() if tested else {}
                rows.append(row | {name: paired.get(name) for name in Paired._fields})
    return rows


def _share(errors: Sequence[np.ndarray], whole: Sequence[np.ndarray]) -> np.ndarray:
    """`[J]` of errors `[T, J]` over the yardstick's: the mean of those targets that have both, NaN if none has."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.ma.masked_invalid(np.divide(errors, whole))
    return shares.mean(axis=0).filled(np.nan)


def _plain(values: np.ndarray, of: Any, ddof: int = 0) -> float | None:
    """A statistic as a plain number; None where there are too few values for it."""
    return None if len(values) <= ddof else float(of(values, ddof=ddof) if ddof else of(values))
