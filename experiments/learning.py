"""Learning curves: the score on validation rows after training on an eighth, a quarter, half and all training rows.

    python -m experiments.learning --sets scaffold-esol scaffold-bace --models gtx forest-descriptors

If the error still falls, the set lacks data; if it does not, the model lacks something else. A smaller sample is a part
of the larger ones. The number of the repeat draws the sample, and is also the seed or, for a set with several splits,
the split. Test rows are not used. The scores with all rows are those of the benchmark, which must be run before.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import mat, scaffold, tables
from experiments.models import MODELS, fit_network, fit_predict
from experiments.recipe import options_of, run_all
from experiments.runs import Run, execute
from experiments.tables import RESULTS

SETS = {benchmark.folder: benchmark for benchmark in (*mat.SETS.values(), *scaffold.SETS.values())}
NAMES = ("gtx", *(f"{kind}-{on}" for kind in ("ridge", "forest", "boosting") for on in ("counts", "descriptors")))
"""Models that can be trained on part of the rows."""
SHARES, REPEATS = (8, 4, 2), 3
"""One training row in so many; and samples of each size."""


class Point(NamedTuple):
    """Scores on validation rows, one per repeat, of a model that was trained on so many rows."""

    model: str
    rows: int
    scores: list[float]


def curve(folder: str, results: Path = RESULTS) -> list[Point]:
    """Read the points of a set, model by model and by number of rows; points that lack a repeat are left out."""
    found = defaultdict(list)
    for run in tables.runs(results, "learning", folder):
        found[run["model"], run["settings"]["share"]].append(run)
    models = {model for model, _ in found}
    names = {Run(SETS[folder], model, *split_and_seed(folder, k)).name for model in models for k in range(REPEATS)}
    for run in tables.runs(results, folder=folder) if models else ():
        if run["name"] in names:
            found[run["model"], 1].append(run)
    points = [
        Point(model, round(statistics.mean(r["rows"]["train"] for r in each)), [r["val"][r["metric"]] for r in each])
        for (model, _), each in found.items()
        if len(each) == REPEATS
    ]
    return sorted(points, key=lambda point: (list(MODELS).index(point.model), point.rows))


def split_and_seed(folder: str, repeat: int) -> tuple[int, int]:
    """Split and seed of a repeat."""
    return (repeat, 0) if len(SETS[folder].splits) > 1 else (0, repeat)


def row_sample(rows: np.ndarray, share: int, repeat: int) -> np.ndarray:
    """Draw one in `share` of the rows, in their order; a smaller sample is part of a larger one of the same repeat."""
    chosen = np.random.default_rng(repeat).permutation(len(rows))[: len(rows) // share]
    return rows[np.sort(chosen)]


def train_on_share(run: Run, results: Path) -> None:
    """Train a model on part of the training rows, and write its scores on these and on the validation rows."""
    repeat, share = map(int, run.name.split("-")[-2:])
    whole = run.dataset.split
    run.dataset = replace(run.dataset, split={"train": row_sample(whole["train"], share, repeat), "val": whole["val"]})

    def fit(run: Run) -> tuple[np.ndarray, dict[str, Any]]:
        prediction, facts = (fit_network if run.model == "gtx" else fit_predict)(run)
        return prediction, facts | {"settings": {"repeat": repeat, "share": share}}

    execute(run, fit, results, recipe="learning")


def main(words: Sequence[str] | None = None) -> int:
    """Make what is missing; the exit status is 1 if a run failed."""
    parser = options_of(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=["gtx", "forest-descriptors"], choices=NAMES)
    parser.add_argument("--repeats", nargs="+", type=int, default=list(range(REPEATS)), choices=range(REPEATS))
    parser.add_argument("--shares", nargs="+", type=int, default=SHARES, choices=SHARES)
    options = parser.parse_args(words)
    runs = []
    for repeat, folder, model, share in product(options.repeats, options.sets, options.models, options.shares):
        command = f"python -m experiments.learning --sets {folder} --models {model} --repeats {repeat} --shares {share}"
        where = *split_and_seed(folder, repeat), options.runs / "learning"
        runs.append(Run(SETS[folder], model, *where, command, f"{model}-{repeat}-{share}"))
    failed = run_all(runs, partial(train_on_share, results=options.out), options, "learning")
    for folder in options.sets:
        for point in curve(folder, options.out):
            print(f"{folder:17} {point.model:18} {point.rows:6} rows {statistics.mean(point.scores):.4f}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
