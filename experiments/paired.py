"""The difference of two models' scores on the same test rows, and its 95% interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gtx.report.comparison import corrected_resampled_t

RESAMPLES = 2000


class Difference(NamedTuple):
    """Of two models' scores: the first minus the second, and its 95% interval."""

    value: float
    low: float
    high: float


class Split(NamedTuple):
    """The test rows of one split.

    Attributes:
        y: `[n, T]` measured values, NaN for blanks.
        one, other: `[runs, n, T]` predictions of the two models, run by run.
    """

    y: np.ndarray
    one: np.ndarray
    other: np.ndarray


def difference(
    splits: Sequence[Split], metric: str, ratio: float | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> Difference:
    """Compare two models on the same molecules.

    On one split by a bootstrap (Efron & Tibshirani 1993, percentile interval): each of the resamples draws the test
    molecules with replacement, the same for both models, scores every run on them, and averages over targets and runs.
    The interval is the uncertainty for want of test molecules; how much seeds scatter is in the standard deviation
    beside the means. Several random splits share molecules, of which a bootstrap knows nothing: there the interval is
    that of the corrected resampled t-test (`gtx.report.comparison.corrected_resampled_t`).

    Args:
        splits: the test rows, one entry per split.
        metric: `rmse`, `mae`, `r2` or `roc_auc`.
        ratio: of several splits, test rows for every other row.
        resamples: how many.
        seed: of the draws.
    """
    if len(splits) > 1:
        if ratio is None:
            raise ValueError(f"expected the ratio of test rows to others for {len(splits)} splits, got none")
        found = corrected_resampled_t([_gap(split, np.ones((1, len(split.y))), metric)[0] for split in splits], ratio)
        return Difference(found.difference, found.low, found.high)
    (split,) = splits
    n = len(split.y)
    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), resamples)
    gaps = _gap(split, np.concatenate([np.ones((1, n)), drawn]), metric)  # the first is of the test set itself
    low, high = np.nanpercentile(gaps[1:], (2.5, 97.5))
    return Difference(float(gaps[0]), float(low), float(high))


def _gap(split: Split, weights: np.ndarray, metric: str) -> np.ndarray:
    """`[resamples]`, the first model's score minus the second's."""
    return _mean_score(split.y, split.one, weights, metric) - _mean_score(split.y, split.other, weights, metric)


def _mean_score(y: np.ndarray, runs: np.ndarray, weights: np.ndarray, metric: str) -> np.ndarray:
    """`[resamples]`, the mean over targets and runs; a target that a resample leaves without both classes drops out."""
    each = [
        SCORES[metric](y[known, t], run[known, t], weights[:, known])
        for t in range(y.shape[1])
        for known in [~np.isnan(y[:, t])]
        for run in runs
    ]
    return np.nanmean(each, axis=0)


def rmse(y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Of molecules counted as often as `weights` `[resamples, n]` says; so are the others."""
    return np.sqrt(weights @ (p - y) ** 2 / weights.sum(1))


def mae(y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return weights @ np.abs(p - y) / weights.sum(1)


def r2(y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    total = weights.sum(1)
    return 1 - weights @ (p - y) ** 2 / (weights @ y**2 - (weights @ y) ** 2 / total)


def roc_auc(y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Probability that a 1 is ranked above a 0, ties half: \(\sum_{ij} w_i w_j ([p_i > p_j] + [p_i = p_j] / 2)\) over
    pairs of a 1 and a 0, divided by the pairs; NaN where one class is missing."""
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.diff(p[order], prepend=-np.inf))  # of runs of equal predictions
    ones, zeros = (np.add.reduceat(weights[:, order] * (y[order] == c), starts, axis=1) for c in (1, 0))
    below = zeros.cumsum(1) - zeros / 2
    pairs = ones.sum(1) * zeros.sum(1)
    return np.where(pairs > 0, (ones * below).sum(1) / np.maximum(pairs, 1), np.nan)


SCORES: Mapping = {"rmse": rmse, "mae": mae, "r2": r2, "roc_auc": roc_auc}
