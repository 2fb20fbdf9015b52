"""The runs of a model on a set as one row, and the difference of two models' scores on the same test rows."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from gtx.report.comparison import corrected_resampled_t

HIGHER = ("roc_auc", "pr_auc", "accuracy", "r2")
"""Metrics of which more is better."""
OURS = "gtx"
"""How names of gtx's own models begin."""


class ModelRuns(NamedTuple):
    """All runs of a model on a set.

    Attributes:
        folder: of the set.
        model: its name.
        results: what was written, one per run, ordered by split and seed.
    """

    folder: str
    model: str
    results: list[dict[str, Any]]

    @property
    def metric(self) -> str:
        """The one the set is judged by."""
        return self.results[0]["metric"]

    def scores(self, part: str = "test") -> list[float]:
        """One number per split, its seeds averaged; where there is one split, one per seed."""
        found: dict[Any, list[float]] = {}
        splits = {result["split"] for result in self.results}
        for result in self.results:
            if (value := result[part][self.metric]) is not None:
                found.setdefault(result["split"] if len(splits) > 1 else result["seed"], []).append(value)
        return [statistics.mean(values) for values in found.values()]

    def mean(self, part: str = "test") -> float | None:
        """Over `scores`."""
        return statistics.mean(self.scores(part)) if self.scores(part) else None

    def sd(self, part: str = "test") -> float | None:
        """Sample standard deviation over `scores`; None for fewer than two."""
        return statistics.stdev(self.scores(part)) if len(self.scores(part)) > 1 else None

    @property
    def ours(self) -> bool:
        """Whether it is gtx itself."""
        return self.model.startswith(OURS)

    @property
    def counted(self) -> str:
        """What the mean is over: `3 seeds`, `6 splits`, `6 splits × 5 seeds`, `6 splits × 2 to 3 seeds`."""
        seeds = Counter(result["split"] for result in self.results)
        least, most = min(seeds.values()), max(seeds.values())
        words = [f"{len(seeds)} splits"] * (len(seeds) > 1)
        words += [f"{most} seeds" if least == most else f"{least} to {most} seeds"] * (most > 1)
        return " × ".join(words) or "1 run"


def rows(runs: Iterable[dict[str, Any]]) -> Iterator[ModelRuns]:
    """Runs by set and model."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        found.setdefault((run["folder"], run["model"]), []).append(run)
    for (folder, model), results in sorted(found.items()):
        yield ModelRuns(folder, model, sorted(results, key=lambda result: (result["split"], result["seed"])))


def places(score: float) -> int:
    """Decimals worth printing of a score and of what differs from it."""
    return 3 if abs(score) < 10 else 1


def lines(runs: Iterable[dict[str, Any]]) -> Iterator[str]:
    """A line per row, for the terminal; one that says so where there are none."""
    found = list(rows(runs))
    if not found:
        yield "no results yet"
    for row in found:
        sd = "" if row.sd() is None else f" ± {row.sd():.4f}"
        each = " ".join(f"{score:.3f}" for score in row.scores())
        yield f"{row.folder:17} {row.model:20} {row.counted:20} test {row.metric} {_four(row.mean())}{sd}  {each}"


def _four(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


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


def difference_text(row: ModelRuns, other: ModelRuns) -> str:
    """`+0.123 [0.045, 0.201]`: the score of one minus that of the other; empty where they share no split."""
    splits = shared_splits(row, other)
    return formatted(split_difference(splits, row), other) if splits else ""


def split_difference(splits: Sequence[Split], row: ModelRuns) -> Difference:
    """`difference`, with the metric and the sizes of the row's set."""
    ratio = None
    if len(splits) > 1:
        counts = row.results[0]["rows"]
        ratio = counts["test"] / (counts["train"] + counts["val"])
    return difference(splits, row.metric, ratio)


def formatted(found: Difference, other: ModelRuns) -> str:
    """With the decimals of the other's score."""
    value, low, high = (f"{part:+.{places(other.mean() or 0.0)}f}" for part in found)
    return f"{value} [{low}, {high}]"


def shared_splits(row: ModelRuns, other: ModelRuns) -> list[Split]:
    """What both predicted of each split that both were run on, for runs that kept their predictions."""
    found = []
    for split in sorted({result["split"] for result in row.results}):
        ones, others = (
            [r["predictions"] for r in each.results if r["split"] == split and "predictions" in r]
            for each in (row, other)
        )
        if ones and others:
            first = ones[0]
            if any(not np.array_equal(one.rows, first.rows) for one in (*ones, *others)):
                raise ValueError(f"{row.folder}, {split}: {row.model} and {other.model} were tested on different rows")
            y = first.measured
            if y is None:  # the set is a table
                y = truth(row.results[0]["set"], first.names)[first.rows]
            found.append(Split(y, *(np.array([one.values for one in each]) for each in (ones, others))))
    return found


@cache
def truth(name: str, targets: tuple[str, ...]) -> np.ndarray:
    """Measured values `[rows of the table, T]` of a named set, NaN for blanks."""
    from gtx.data import open_table
    from gtx.data.named_sets import load_set

    named = load_set(name)
    table = open_table(named.path, named.smiles_column)
    columns = [table.index(target) for target in targets]
    return np.array([[float(row.cells[at] or "nan") for at in columns] for row in table.rows])
