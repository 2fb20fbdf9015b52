"""The runs of a model on a set as one row: its scores, their mean and standard deviation."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

HIGHER = ("roc_auc", "pr_auc", "accuracy", "r2")
"""Metrics of which more is better."""
OURS = ("gtx", "standard")
"""How names of gtx's own models begin; the first lines of the ledger have the architecture's."""


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
