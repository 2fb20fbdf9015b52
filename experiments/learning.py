"""Learning curves: the score on validation rows after training on an eighth, a quarter, half and all training rows.

    python -m experiments.learning --sets scaffold-esol scaffold-bace --models gtx forest-descriptors

If the error still falls, the set lacks data; if it does not, the model lacks something else. A smaller sample is a part
of the larger ones. The number of the repeat draws the sample, and is also the seed or, for a set with several splits,
the split. Test rows are not used. A finished run is not repeated. The scores with all rows are those of the benchmark,
which must be run before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import archive, mat, scaffold
from experiments.archive import RESULTS
from experiments.models import MODELS, fit_network, fit_predict
from experiments.public_sets import LoadedRun, Run
from experiments.recipe import Job, options_of, run_jobs
from experiments.record import commit

SETS = {benchmark.folder: benchmark for benchmark in (*mat.SETS.values(), *scaffold.SETS.values())}
NAMES = ("gtx", *(f"{kind}-{on}" for kind in ("ridge", "forest", "boosting") for on in ("counts", "descriptors")))
"""Models that can be trained on part of the rows."""
SHARES, REPEATS = (8, 4, 2), 3
"""One training row in so many; and samples of each size."""


class Point(NamedTuple):
    """The scores on validation rows, one per repeat, of a model that was trained on so many rows."""

    model: str
    rows: int
    scores: list[float]


def curve(folder: str, results: Path = RESULTS) -> list[Point]:
    """What there is of a set, model by model and by number of rows; points that lack a repeat are left out."""
    found: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for run in archive.runs(results, "learning", folder):
        found.setdefault((run["model"], run["settings"]["share"]), []).append(run)
    whole = {run["name"]: run for run in archive.runs(results, folder=folder)} if found else {}
    for model in {model for model, _ in found}:
        names = [run_of(folder, model, repeat).name for repeat in range(REPEATS)]
        found[model, 1] = [whole[name] for name in names if name in whole]
    points = [
        Point(model, round(statistics.mean(r["rows"]["train"] for r in each)), [r["val"][r["metric"]] for r in each])
        for (model, _), each in found.items()
        if len(each) == REPEATS
    ]
    return sorted(points, key=lambda point: (list(MODELS).index(point.model), point.rows))


def run_of(folder: str, model: str, repeat: int) -> Run:
    """The run of the benchmark with the split or the seed of a repeat."""
    benchmark = SETS[folder]
    return Run(benchmark, model, repeat, 0) if len(benchmark.splits) > 1 else Run(benchmark, model, 0, repeat)


def train_on_share(folder: str, model: str, repeat: int, share: int, results: Path, runs: Path) -> None:
    """Train a model on one in `share` of the training rows, and keep its score on the validation rows."""
    run = run_of(folder, model, repeat)
    loaded = LoadedRun.of(run, runs / "learning" / f"share-{share}")
    split, metric = loaded.dataset.split, run.public_set.metric
    rows = {"train": row_sample(split["train"], share, repeat), "val": split["val"]}
    loaded = loaded._replace(dataset=replace(loaded.dataset, split=rows))
    prediction = (fit_network if model == "gtx" else fit_predict)(loaded).prediction
    y = loaded.dataset.y[rows["val"]]
    result = {
        "recipe": "learning",
        "folder": folder,
        "name": f"{model}-{repeat}-{share}",
        "set": run.public_set.name,
        "split": run.public_set.splits[run.split],
        "model": model,
        "seed": run.seed,
        "metric": metric,
        "rows": {"train": len(rows["train"])},
        "val": {metric: loaded.dataset.task.evaluate(y, prediction[rows["val"]])[metric]},
        "settings": {"repeat": repeat, "share": share},
        "commit": commit(),
    }
    archive.put(results, result)


def row_sample(rows: np.ndarray, share: int, repeat: int) -> np.ndarray:
    """One in `share` of the rows, in their order; a smaller sample lies within a larger one of the same repeat."""
    chosen = np.random.default_rng(repeat).permutation(len(rows))[: len(rows) // share]
    return rows[np.sort(chosen)]


def main(words: Sequence[str] | None = None) -> int:
    """Make what is missing; the exit status is 1 if a run failed."""
    parser = options_of(__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=["gtx", "forest-descriptors"], choices=NAMES)
    parser.add_argument("--repeats", nargs="+", type=int, default=list(range(REPEATS)), choices=range(REPEATS))
    parser.add_argument("--shares", nargs="+", type=int, default=SHARES, choices=SHARES)
    options = parser.parse_args(words)
    each = product(options.repeats, options.sets, options.models, options.shares)
    failed = run_jobs([_job(*one, options) for one in each], options, "learning")
    for folder in options.sets:
        for point in curve(folder, options.out):
            print(f"{folder:17} {point.model:18} {point.rows:6} rows {statistics.mean(point.scores):.4f}")
    return int(failed)


def _job(repeat: int, folder: str, model: str, share: int, options: argparse.Namespace) -> Job:
    command = f"python -m experiments.learning --sets {folder} --models {model} --repeats {repeat} --shares {share}"
    key = folder, f"{model}-{repeat}-{share}"
    return Job(key, command, lambda: train_on_share(folder, model, repeat, share, options.out, options.runs))


if __name__ == "__main__":
    sys.exit(main())
