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
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.contenders import MODELS, fit_predict
from experiments.error_analysis import SETS
from experiments.jobs import Job, job_options, run_jobs
from experiments.on_store import predict
from experiments.public_sets import LoadedRun, Run
from experiments.record import commit

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


def train_on_share(
    folder: str, model: str, repeat: int, share: int, results: Path = RESULTS, runs: Path = ROOT / "runs"
) -> None:
    """Train a model on a share of the training rows, and keep its score on the validation rows.

    Args:
        folder: of the set's results, such as `scaffold-esol`.
        model: its name, see `experiments.contenders`.
        repeat: decides the sample, and the split or the seed.
        share: one training row in so many.
        results: the folder of all results.
        runs: where runs keep what they need to go on.
    """
    run = _run(folder, model, repeat)
    loaded = LoadedRun.of(run, runs)
    dataset = loaded.dataset
    split = {"train": row_sample(dataset.split["train"], share, repeat), "val": dataset.split["val"]}
    loaded = loaded._replace(dataset=replace(dataset, split=split))
    if model == "gtx":
        prediction = _gtx(loaded, runs / "learning" / folder / f"{run.name}-{share}")
    else:
        prediction = fit_predict(loaded).prediction
    val, metric = split["val"], run.public_set.metric
    score = dataset.task.evaluate(dataset.y[val], prediction[val])[metric]
    result = {
        "recipe": "learning",
        "folder": folder,
        "name": _name(model, repeat, share),
        "set": run.public_set.name,
        "split": run.public_set.splits[run.split],
        "model": model,
        "seed": run.seed,
        "metric": metric,
        "rows": {"train": len(split["train"])},
        "val": {metric: score},
        "settings": {"repeat": repeat, "share": share},
        "commit": commit(),
    }
    archive.put(results, result)


def row_sample(rows: np.ndarray, share: int, repeat: int) -> np.ndarray:
    """One in `share` of the rows, in their order; a smaller sample lies within a larger one of the same repeat."""
    chosen = np.random.default_rng(repeat).permutation(len(rows))[: len(rows) // share]
    return rows[np.sort(chosen)]


def _gtx(loaded: LoadedRun, out: Path) -> np.ndarray:
    """What the defaults of `gtx train` for so many rows predict; goes on where it was stopped."""
    from gtx.models import build_model
    from gtx.training import TrainSettings, fit
    from gtx.workflow.specs import model_spec

    dataset = loaded.dataset
    settings = TrainSettings(seed=loaded.run.seed, threads=1, progress=False)
    train, val = (dataset.store.subset(dataset.split[part]) for part in ("train", "val"))
    spec = model_spec(settings, loaded.data.featuriser, dataset.task, len(train))
    marks = {"train": [int(row) for row in dataset.split["train"]], "model": spec}
    (member,) = fit(partial(build_model, spec), dataset.task, train, val, settings, out, marks=marks)
    return predict(member, dataset.store)


def _run(folder: str, model: str, repeat: int) -> Run:
    benchmark = SETS[folder]
    return Run(benchmark, model, repeat, 0) if len(benchmark.splits) > 1 else Run(benchmark, model, 0, repeat)


def _name(model: str, repeat: int, share: int) -> str:
    return f"{model}-{repeat}-{share}"


def main(words: Sequence[str] | None = None) -> int:
    """Make what is missing; the exit status is 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=["gtx", "forest-descriptors"], choices=NAMES)
    parser.add_argument("--repeats", nargs="+", type=int, default=list(range(REPEATS)), choices=range(REPEATS))
    parser.add_argument("--shares", nargs="+", type=int, default=SHARES, choices=SHARES)
    job_options(parser)
    options = parser.parse_args(words)
    done = {(run["folder"], run["name"]) for run in archive.runs(options.out, "learning")}
    jobs = [
        _job(folder, model, repeat, share, options)
        for repeat, folder, model, share in product(options.repeats, options.sets, options.models, options.shares)
        if (folder, _name(model, repeat, share)) not in done
    ]
    failed = run_jobs(jobs, options)
    for folder in options.sets:
        for point in curve(folder, options.out):
            print(f"{folder:17} {point.model:18} {point.rows:6} rows {statistics.mean(point.scores):.4f}")
    return bool(failed)


def _job(folder: str, model: str, repeat: int, share: int, options: argparse.Namespace) -> Job:
    words = f"--sets {folder} --models {model} --repeats {repeat} --shares {share}"
    return Job(
        f"{folder} {_name(model, repeat, share)}",
        f"python -m experiments.learning {words}",
        lambda: train_on_share(folder, model, repeat, share, options.out, options.runs),
    )


if __name__ == "__main__":
    sys.exit(main())
