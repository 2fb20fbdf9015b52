"""The mean prediction of gtx and a random forest, made of kept predictions; nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from experiments.aims import AIMS
from experiments.model_comparison import formatted, shared_splits, split_difference
from experiments.paired import Split
from experiments.summary import ModelRuns, places

FORESTS = {"forest-counts": "Morgan counts", "forest-descriptors": "RDKit descriptors"}
WORDS = """## gtx and a random forest, averaged

The predictions of gtx (one model) and of a forest are averaged run by run, for classes their probabilities. *minus
gtx* is the score of the mean minus the score of gtx: RMSE for numbers, ROC-AUC for classes (the last three sets). The
means were made after all runs above; no choice depends on them, and the default of `gtx train` is the network alone.
On the validation rows the mean is better than gtx on BBBP too, and no better on BACE ([TRIED.md](TRIED.md)).
"""


def forest_average_section(found: Mapping[str, Sequence[ModelRuns]]) -> str:
    """The section, a line per set; empty where no set has gtx and both forests on its splits.

    Args:
        found: rows by set.
    """
    lines = []
    for folder, aim in AIMS.items():
        models = {row.model: row for row in found.get(folder, ())}
        if models.keys() >= {"gtx", *FORESTS}:
            cells = [aim.title, _score(models["gtx"].mean(), models["gtx"])]
            cells += [cell for forest in FORESTS for cell in _beside(models["gtx"], models[forest])]
            lines.append(f"| {' | '.join(cells)} |")
    if not lines:
        return ""
    heads = " | ".join(f"forest, {words} | the mean | minus gtx" for words in FORESTS.values())
    return "\n".join([WORDS, f"| set | gtx | {heads} |", "|---|--:|" + "--:|--:|--:|" * len(FORESTS), *lines, ""])


def _beside(ours: ModelRuns, forest: ModelRuns) -> list[str]:
    """The forest's score, that of the mean, and how far the mean is from gtx."""
    splits = [Split(both.y, mean_prediction(both), both.one) for both in shared_splits(ours, forest)]
    if not splits:
        return [_score(forest.mean(), ours), "", ""]
    gap = split_difference(splits, ours)
    return [_score(forest.mean(), ours), _score(ours.mean() + gap.value, ours), formatted(gap, ours)]


def mean_prediction(both: Split) -> np.ndarray:
    """`[runs, n, T]`: each run of the first model with one of the other's, in turn."""
    turns = np.arange(len(both.one)) % len(both.other)
    return (both.one + both.other[turns]) / 2


def _score(value: float, row: ModelRuns) -> str:
    return f"{value:.{places(row.mean())}f}"
