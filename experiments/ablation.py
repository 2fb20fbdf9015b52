"""Every named model on the same small budget: solvation in water and gap of xtb9, and MAT's first split of FreeSolv.

    python -m experiments.ablation --jobs 2

Each model is trained with seeds 0, 1 and 2 and one thread: 4 layers, 64 channels, 8 heads, no descriptors (they would
hide what the graph gives), otherwise the defaults of `gtx train`; on xtb9 15 epochs over the first 2,000 training
rows, on FreeSolv 30 epochs over all 513. Models that need coordinates use those of xtb9 (GFN2-xTB geometries, so they
see more than the others), and on FreeSolv conformers that are made first. The epoch is chosen on the validation rows;
test rows are scored once for each run. Seconds are those of the processor. A finished run is not repeated. `--table`
writes this page without training.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments import archive
from experiments.archive import RESULTS
from experiments.jobs import Job, job_options, run_jobs
from experiments.record import circumstances

if TYPE_CHECKING:
    from gtx.data import MoleculeStore

SEEDS = (0, 1, 2)


class SmallSet(NamedTuple):
    """What is predicted, from which rows, for how long."""

    set: str
    target: str
    split_column: str
    rows: int  # training rows at most
    epochs: int
    unit: str


TASKS = {
    "xtb9-water": SmallSet("xtb9", "solvation_water", "split_random", 2000, 15, "kcal/mol"),
    "xtb9-gap": SmallSet("xtb9", "gap", "split_random", 2000, 15, "eV"),
    "freesolv": SmallSet("mat/freesolv", "y", "split_random_0", 2000, 30, "sd"),
}


def train_and_record(name: str, model: str, seed: int, results: Path = RESULTS) -> None:
    """Train one model in this process, score it, write its result."""
    from gtx.data.named_sets import load_set
    from gtx.dataset import DataSettings, fingerprint, load
    from gtx.models import ARCHITECTURES, build_model
    from gtx.molecules import Featuriser
    from gtx.prediction import ModelHeader, Predictor
    from gtx.training import TrainSettings, fit
    from gtx.workflow.specs import model_spec

    task = TASKS[name]
    spatial = {}
    if ARCHITECTURES[model].coordinates == "needed":
        spatial = {"coordinates": True} if task.set == "xtb9" else {"conformers": True}
    featuriser = Featuriser(descriptors=False, **spatial)
    named = load_set(task.set)
    data = DataSettings(
        str(named.path), (task.target,), split_column=task.split_column, featuriser=featuriser, workers=1
    )
    arguments = {"layers": 4, "channels": 64, "heads": 8}
    settings = TrainSettings(
        model=model, model_arguments=arguments, epochs=task.epochs, seed=seed, threads=1, progress=False
    )
    dataset = load(data, cache=Path(tempfile.gettempdir()) / "gtx-ablation")
    split = dataset.split | {"train": dataset.split["train"][: task.rows]}
    train, val = (dataset.store.subset(split[part]) for part in ("train", "val"))
    spec = model_spec(settings, featuriser, dataset.task, len(train))
    with tempfile.TemporaryDirectory() as folder:
        begun = time.process_time()
        marks = fingerprint(data) | {"model": spec}
        (member,) = fit(partial(build_model, spec), dataset.task, train, val, settings, folder, marks=marks)
        seconds = time.process_time() - begun
    header = ModelHeader(member.task, featuriser, spec)
    mean = Predictor([member.model], header, "cpu").predict_store(dataset.store).mean
    scores = {part: member.task.evaluate(dataset.y[rows], mean[rows]) for part, rows in split.items()}
    result = {
        "recipe": "ablation",
        "folder": name,
        "name": f"{model}-{seed}",
        "set": task.set,
        "split": task.split_column,
        "model": model,
        "seed": seed,
        "task": dataset.task.name,
        "metric": "rmse",
        "parameters": sum(p.numel() for p in member.model.parameters()),
        "seconds": round(seconds, 1),
        "settings": {"epochs": task.epochs},
        "rows": {part: len(rows) for part, rows in split.items()},
        "without_coordinates": _unplaced(dataset.store),
        **{part: {"rmse": scores[part]["rmse"]} for part in ("train", "val", "test")},
        **circumstances(_command(name, model, seed)),
    }
    archive.put(results, result)


def _unplaced(store: MoleculeStore) -> int | None:
    """Molecules without coordinates, where the model uses them."""
    if store.positions is None:
        return None
    owner = store.sizes.new_tensor(range(len(store))).repeat_interleave(store.sizes)
    return len(owner[store.positions.isnan().any(1)].unique())


def ablation_table(results: Path) -> str:
    """What has been measured, as Markdown."""
    lines = []
    for name, task in TASKS.items():
        found = archive.runs(results, "ablation", name)
        rows = [(model, [run for run in found if run["model"] == model]) for model in _models()]
        rows = [(model, runs) for model, runs in rows if runs]
        if not rows:
            continue
        counts = rows[0][1][0]["rows"]
        lines += [
            f"## {task.set}, {task.target}",
            "",
            f"RMSE in {task.unit}, mean ± sd over seeds; {counts['train']:,} training, {counts['val']:,} validation "
            f"and {counts['test']:,} test rows, {task.epochs} epochs.",
            "",
            "| model | coordinates | parameters | CPU seconds | validation | test | seeds |",
            "|---|---|---|---|---|---|---|",
        ]
        for model, runs in sorted(rows, key=lambda row: _mean(row[1], "val")[0]):
            val, test = (_mean(runs, part) for part in ("val", "test"))
            seconds = statistics.mean(result["seconds"] for result in runs)
            lines.append(
                f"| {model} | {'yes' if runs[0]['without_coordinates'] is not None else 'no'} "
                f"| {runs[0]['parameters']:,} | {seconds:.0f} | {val[0]:.3f} ± {val[1]:.3f} "
                f"| {test[0]:.3f} ± {test[1]:.3f} | {len(runs)} |"
            )
        lines.append("")
    return "\n".join(lines)


def _models() -> list[str]:
    from gtx.models import ARCHITECTURES

    return list(ARCHITECTURES)


def _mean(results: list[dict[str, Any]], part: str) -> tuple[float, float]:
    values = [result[part]["rmse"] for result in results]
    return statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def main() -> int:
    """Make the runs that are requested and not there yet; then the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--models", nargs="+", default=_models(), choices=_models())
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--table", action="store_true", help="write the table of what there is, and train nothing")
    job_options(parser)
    options = parser.parse_args()
    done = {(run["folder"], run["name"]) for run in archive.runs(options.out, "ablation")}
    jobs = [
        _job(task, model, seed, options.out)
        for seed in options.seeds
        for task in options.tasks
        for model in options.models
        if (task, f"{model}-{seed}") not in done
    ]
    failed = [] if options.table else run_jobs(jobs, options)
    head = f"# Every named model on the same small budget\n\n{__doc__.split(chr(10), 1)[1].strip()}\n\n"
    (options.out / "ablation.md").write_text(head + ablation_table(options.out))
    print(ablation_table(options.out))
    return bool(failed)


def _job(task: str, model: str, seed: int, results: Path) -> Job:
    command = _command(task, model, seed)
    return Job(f"{task} {model} {seed}", command, lambda: train_and_record(task, model, seed, results))


def _command(task: str, model: str, seed: int) -> str:
    return f"python -m experiments.ablation --tasks {task} --models {model} --seeds {seed}"


if __name__ == "__main__":
    sys.exit(main())
