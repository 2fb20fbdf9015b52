"""The runs of a model on a set as one row, the difference of two models' scores on the same test rows, and tables."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t

from experiments.runs import read_set
from gtx.report.comparison import corrected_resampled_t

HIGHER = ("roc_auc", "pr_auc", "accuracy", "r2")
"""Metrics of which more is better."""
TITLES = {"rmse": "RMSE", "mae": "MAE", "roc_auc": "ROC-AUC", "r2": "R²"}
RESAMPLES = 2000


class ModelRuns(NamedTuple):
    """All runs of a model on a set.

    Attributes:
        folder: folder of the set.
        model: name of the model.
        results: lines of the runs, ordered by split and seed.
    """

    folder: str
    model: str
    results: list[dict[str, Any]]

    @property
    def metric(self) -> str:
        """Score that the set is judged by."""
        return self.results[0]["metric"]

    @property
    def ours(self) -> bool:
        """Whether it is a model of gtx."""
        return self.model.startswith("gtx")

    @property
    def splits(self) -> set[str]:
        """Names of the splits."""
        return {result["split"] for result in self.results}

    def scores(self, part: str = "test") -> list[float]:
        """Collect one number per split, its seeds averaged; if there is one split, one per seed."""
        found: dict[Any, list[float]] = {}
        by = "split" if len(self.splits) > 1 else "seed"
        for result in self.results:
            value = result[part][self.metric]
            if value is not None:
                found.setdefault(result[by], []).append(value)
        return [statistics.mean(values) for values in found.values()]

    def mean(self, part: str = "test") -> float | None:
        """Average `scores`; None if all are undefined."""
        scores = self.scores(part)
        return statistics.mean(scores) if scores else None

    def sd(self, part: str = "test") -> float | None:
        """Compute the sample standard deviation of `scores`; None for fewer than two."""
        scores = self.scores(part)
        return statistics.stdev(scores) if len(scores) > 1 else None

    def error(self, part: str) -> float:
        """Turn the score into what is to be small."""
        return 1 - self.mean(part) if self.metric in HIGHER else self.mean(part)

    @property
    def counted(self) -> str:
        """Number of seeds and splits, such as `3 seeds`, `6 splits`, `6 splits × 2 to 3 seeds`."""
        seeds = Counter(result["split"] for result in self.results)
        least, most = min(seeds.values()), max(seeds.values())
        words = []
        if len(seeds) > 1:
            words.append(f"{len(seeds)} splits")
        if most > 1:
            words.append(f"{most} seeds" if least == most else f"{least} to {most} seeds")
        return " × ".join(words) or "1 run"


Models = dict[str, ModelRuns]
"""The models of a set by name."""


def gather(runs: Iterable[dict[str, Any]]) -> dict[str, Models]:
    """Group runs by set and model, both in the order of the alphabet."""
    found: dict[str, Models] = {}
    for run in sorted(runs, key=lambda run: (run["folder"], run["model"], run["split"], run["seed"])):
        models = found.setdefault(run["folder"], {})
        models.setdefault(run["model"], ModelRuns(run["folder"], run["model"], [])).results.append(run)
    return found


# ---------------------------------------------------------------------------------------------------------- as text


def replace_tables(page: Path, text: str) -> None:
    """Write the tables of a page behind its introduction, which ends at the first `## ` and is written by hand."""
    page.write_text("\n".join([page.read_text().partition("\n## ")[0], text]))


def places(score: float) -> int:
    """Choose the decimals worth printing of a score and of what differs from it."""
    return 3 if abs(score) < 10 else 1


def score_text(row: ModelRuns | None, part: str = "test") -> str:
    """Write mean ± sd."""
    if row is None:
        return ""
    mean, sd = row.mean(part), row.sd(part)
    if mean is None:
        return "undefined"
    digits = places(mean)
    return f"{mean:.{digits}f}" if sd is None else f"{mean:.{digits}f} ± {sd:.{digits}f}"


def markdown(heads: str, alignment: str, cells: Iterable[Sequence[str]]) -> list[str]:
    """Write a table in Markdown: heads divided by `|`, a letter `l` or `r` for each column."""
    marks = "|".join({"l": "---", "r": "--:"}[letter] for letter in alignment)
    return [f"| {heads} |", f"|{marks}|", *(f"| {' | '.join(row)} |" for row in cells)]


def ranked(models: Iterable[ModelRuns], part: str = "test") -> list[ModelRuns]:
    """Sort by mean, the best first; a score that is undefined last."""

    def key(row: ModelRuns) -> float:
        mean = row.mean(part)
        if mean is None:
            return math.inf
        return -mean if row.metric in HIGHER else mean

    return sorted(models, key=key)


def verdict(row: ModelRuns | None, goal: float | None) -> str:
    """Write whether a goal was reached."""
    mean = None if row is None else row.mean()
    if row is None or goal is None or mean is None:
        return ""
    return "reached" if (mean >= goal if row.metric in HIGHER else mean <= goal) else "missed"


def mean_log_ratio(ratios: Sequence[float]) -> str:
    """Write the mean of logarithms of errors' ratios over sets with its 95% t interval, and how many are negative."""
    mean = statistics.mean(ratios)
    half = t.ppf(0.975, len(ratios) - 1) * statistics.stdev(ratios) / math.sqrt(len(ratios))
    ahead = sum(ratio < 0 for ratio in ratios)
    return f"{mean:+.1%} [{mean - half:+.1%}, {mean + half:+.1%}] | {ahead} of {len(ratios)}"


# ------------------------------------------------------------------------------------------------------ differences


class Difference(NamedTuple):
    """Difference of two models' scores, the first minus the second, and its 95% interval."""

    value: float
    low: float
    high: float


class Split(NamedTuple):
    """Test rows of one split.

    Attributes:
        y: `[n, T]` measured values, NaN for blanks.
        one, other: `[runs, n, T]` predictions of the two models, run by run.
    """

    y: np.ndarray
    one: np.ndarray
    other: np.ndarray


def difference(splits: Sequence[Split], metric: str, ratio: float | None = None) -> Difference:
    """Compare two models on the same molecules.

    On one split by a bootstrap (Efron & Tibshirani 1993, percentile interval): each of `RESAMPLES` resamples draws the
    test molecules with replacement, the same for both models, scores every run on them, and averages over targets and
    runs. The interval is the uncertainty for want of test molecules; the scatter of seeds is in the standard deviation
    beside the means. Several random splits share molecules, of which a bootstrap knows nothing: there the interval is
    that of the corrected resampled t-test (`gtx.report.comparison.corrected_resampled_t`), with `ratio` test rows for
    every other row.
    """
    if len(splits) > 1:
        if ratio is None:
            raise ValueError(f"expected the ratio of test rows to others for {len(splits)} splits, got none")
        found = corrected_resampled_t([_gap(split, np.ones((1, len(split.y))), metric)[0] for split in splits], ratio)
        return Difference(found.difference, found.low, found.high)
    (split,) = splits
    n = len(split.y)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), RESAMPLES)
    gaps = _gap(split, np.concatenate([np.ones((1, n)), drawn]), metric)  # the first is of the test set itself
    low, high = np.nanpercentile(gaps[1:], (2.5, 97.5))
    return Difference(float(gaps[0]), float(low), float(high))


def _gap(split: Split, weights: np.ndarray, metric: str) -> np.ndarray:
    """Subtract the second model's scores from the first's, `[resamples]`."""
    return mean_score(split.y, split.one, weights, metric) - mean_score(split.y, split.other, weights, metric)


def mean_score(y: np.ndarray, runs: np.ndarray, weights: np.ndarray, metric: str) -> np.ndarray:
    """Average over targets and runs, `[resamples]`; a target that a resample leaves without both classes drops out."""
    each = []
    for target in range(y.shape[1]):
        known = ~np.isnan(y[:, target])
        each += [SCORES[metric](y[known, target], run[known, target], weights[:, known]) for run in runs]
    return np.nanmean(each, axis=0)


def r2(y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Compute R² where each molecule counts as often as `weights` `[resamples, n]` has it."""
    total = weights.sum(1)
    return 1 - weights @ (p - y) ** 2 / (weights @ y**2 - (weights @ y) ** 2 / total)


def roc_auc(y: np.ndarray, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    r"""Compute the probability that a 1 is ranked above a 0, ties half; NaN if one class is missing.

    It is \(\sum_{ij} w_i w_j ([p_i > p_j] + [p_i = p_j] / 2)\) over pairs of a 1 and a 0, divided by their number.
    """
    order = np.argsort(p, kind="stable")
    starts = np.flatnonzero(np.diff(p[order], prepend=-np.inf))  # of runs of equal predictions
    ones, zeros = (np.add.reduceat(weights[:, order] * (y[order] == c), starts, axis=1) for c in (1, 0))
    below = zeros.cumsum(1) - zeros / 2
    pairs = ones.sum(1) * zeros.sum(1)
    return np.where(pairs > 0, (ones * below).sum(1) / np.maximum(pairs, 1), np.nan)


SCORES: dict[str, Callable[..., np.ndarray]] = {
    "rmse": lambda y, p, weights: np.sqrt(weights @ (p - y) ** 2 / weights.sum(1)),
    "mae": lambda y, p, weights: weights @ np.abs(p - y) / weights.sum(1),
    "r2": r2,
    "roc_auc": roc_auc,
}


def difference_text(row: ModelRuns, other: ModelRuns) -> str:
    """Write `+0.123 [0.045, 0.201]`, the first score minus the second; empty if they share no split."""
    splits, ratio = shared_splits(row, other), None
    if not splits:
        return ""
    if len(splits) > 1:
        counts = row.results[0]["rows"]
        ratio = counts["test"] / (counts["train"] + counts["val"])
    found = difference(splits, row.metric, ratio)
    value, low, high = (f"{part:+.{places(other.mean() or 0.0)}f}" for part in found)
    return f"{value} [{low}, {high}]"


def shared_splits(row: ModelRuns, other: ModelRuns) -> list[Split]:
    """Collect what both predicted of each split, of runs whose predictions were written."""
    found = []
    for split in sorted({result["split"] for result in row.results}):
        ones, others = (
            [r["predictions"] for r in each.results if r["split"] == split and "predictions" in r]
            for each in (row, other)
        )
        if ones and others:
            first = ones[0]
            if any(one.names != first.names or not np.array_equal(one.rows, first.rows) for one in (*ones, *others)):
                which = f"{row.folder}, {split}: {row.model} and {other.model}"
                raise ValueError(f"{which} were tested on different rows or targets, or on targets in another order")
            y = first.measured
            if y is None:  # the set is a table
                y = measured_values(row.results[0]["set"], first.names)[first.rows]
            found.append(Split(y, *(np.array([one.values for one in each]) for each in (ones, others))))
    return found


@cache
def measured_values(name: str, targets: tuple[str, ...]) -> np.ndarray:
    """Read measured values `[rows of the table, T]` of a named set, NaN for blanks."""
    return read_set(name)[list(targets)].to_numpy(float)
