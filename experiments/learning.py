"""Learning curves: the score on validation rows after training on an eighth, a quarter, half and all training rows.

    python -m experiments.learning --sets scaffold-esol scaffold-bace --models gtx forest-descriptors

A curve that still falls says that a set lacks data; a flat one, that it lacks something else. The smaller samples lie
within the larger ones and are drawn by the repeat's number, which is also the seed or, where a set has several splits,
the split. Test rows are not looked at. What is done is kept; the scores with all rows are
those of the benchmark's own runs, which must be there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.models import MODELS, answer
from experiments.on_store import predict
from experiments.problem import Problem, Run
from experiments.record import commit
from experiments.where import SETS

NAMES = (
    "gtx",
    *(f"{kind}-{inputs}" for kind in ("ridge", "forest", "boosting") for inputs in ("counts", "descriptors")),
)
"""Models that can be trained on part of the rows."""
SHARES = (8, 4, 2)
"""One training row in so many."""
REPEATS = 3


class Point(NamedTuple):
    """The scores of one model, trained on so many rows.

    Attributes:
        model: its name.
        rows: it was trained on, on average over the repeats.
        scores: on the validation rows, one per repeat.
    """

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
        names = [_run(folder, model, repeat).name for repeat in range(REPEATS)]
        found[model, 1] = [whole[name] for name in names if name in whole]
    points = [
        Point(model, round(statistics.mean(r["rows"]["train"] for r in each)), [r["val"][r["metric"]] for r in each])
        for (model, _), each in found.items()
        if len(each) == REPEATS
    ]
    return sorted(points, key=lambda point: (list(MODELS).index(point.model), point.rows))


def add(folder: str, model: str, repeat: int, share: int, results: Path = RESULTS, runs: Path = ROOT / "runs") -> None:
    """Train a model on a share of the training rows, and keep its score on the validation rows.

    Args:
        folder: of the set's results, such as `scaffold-esol`.
        model: its name, see `experiments.models`.
        repeat: decides the sample, and the split or the seed.
        share: one training row in so many.
        results: the folder of all results.
        runs: where runs keep what they need to go on.
    """
    from gtx.dataset import load

    run = _run(folder, model, repeat)
    data = run.benchmark.data(run.split)
    dataset = load(data, cache=runs / "cache")
    split = {"train": sample(dataset.split["train"], share, repeat), "val": dataset.split["val"]}
    problem = Problem(run, data, replace(dataset, split=split), runs)
    if model == "gtx":
        prediction = _gtx(problem, runs / "learning" / folder / f"{run.name}-{share}")
    else:
        prediction = answer(problem).prediction
    val, metric = split["val"], run.benchmark.metric
    score = dataset.task.evaluate(dataset.y[val], prediction[val])[metric]
    result = {
        "recipe": "learning",
        "folder": folder,
        "name": _name(model, repeat, share),
        "set": run.benchmark.name,
        "split": run.benchmark.splits[run.split],
        "model": model,
        "seed": run.seed,
        "metric": metric,
        "rows": {"train": len(split["train"])},
        "val": {metric: score},
        "settings": {"repeat": repeat, "share": share},
        "commit": commit(),
    }
    archive.put(results, result)


def sample(rows: np.ndarray, share: int, repeat: int) -> np.ndarray:
    """One in `share` of the rows, in their order; a smaller sample lies within a larger one of the same repeat."""
    chosen = np.random.default_rng(repeat).permutation(len(rows))[: len(rows) // share]
    return rows[np.sort(chosen)]


def _gtx(problem: Problem, out: Path) -> np.ndarray:
    """What the defaults of `gtx train` for so many rows predict; goes on where it was stopped."""
    from gtx.models import build_model
    from gtx.training import TrainSettings, fit
    from gtx.workflow.specs import model_spec

    dataset = problem.dataset
    settings = TrainSettings(seed=problem.run.seed, threads=1, progress=False)
    train, val = (dataset.store.subset(dataset.split[part]) for part in ("train", "val"))
    spec = model_spec(settings, problem.data.featuriser, dataset.task, len(train))
    marks = {"train": [int(row) for row in dataset.split["train"]], "model": spec}
    (member,) = fit(partial(build_model, spec), dataset.task, train, val, settings, out, marks=marks)
    return predict(member, dataset.store)


def _run(folder: str, model: str, repeat: int) -> Run:
    benchmark = SETS[folder]
    return Run(benchmark, model, repeat, 0) if len(benchmark.splits) > 1 else Run(benchmark, model, 0, repeat)


def _name(model: str, repeat: int, share: int) -> str:
    return f"{model}-{repeat}-{share}"


def main(words: Sequence[str] | None = None) -> int:
    """Make what is missing, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=["gtx", "forest-descriptors"], choices=NAMES)
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="the folder where runs keep what they need")
    asked = parser.parse_args(words)
    for repeat in range(REPEATS):
        for folder in asked.sets:
            for model in asked.models:
                for share in SHARES:
                    if not archive.find(asked.out, folder, _name(model, repeat, share), "learning"):
                        add(folder, model, repeat, share, asked.out, asked.runs)
            for point in curve(folder, asked.out):
                print(
                    f"{folder:17} {point.model:18} {point.rows:6} rows {statistics.mean(point.scores):.4f}", flush=True
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
