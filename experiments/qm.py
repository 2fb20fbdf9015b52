"""Quantum chemistry with coordinates: gtx's graph transformers and PyG's SchNet on the same rows.

    python -m experiments.qm --sets qm9-gap qm9-u0 qm7-energy --models gtx schnet --jobs 2

The sets: `qm9-gap` is the HOMO-LUMO gap and `qm9-u0` the atomisation energy at 0 K (QM9's own, U0 minus the atoms')
of 3,000 molecules of QM9, every 40th; `qm7-energy` is the atomisation energy (PBE0) of 7,101 molecules of QM7. All
models get atomic numbers and coordinates, nothing else; gtx finds bonds from the distances. Beside `gtx` and `schnet`
there are named models of gtx, of their usual size, which predict atom by atom; those that use no coordinates see the
bonds alone. The splits 80/10/10 are random, by seeds 0, 1 and 2, which are also the seeds of the runs. All models are
trained on the absolute error for as many epochs, with AdamW (peak rate 1e-3, SchNet 5e-4), a cosine schedule and
averaged weights; the best epoch on the validation rows is kept. For energies, a reference for each element is fitted to
the training rows by least squares and subtracted. SchNet has the layers of its paper. Energies are sums over atoms, the
gap is a mean.

The scores cannot be compared with published tables of QM9: there are 2,400 training rows, and the sample is not random.
A run has one thread. A run that was stopped continues with the same command, a finished one is not repeated. The scores
of all epochs so far are in `runs/<set>/<run>/members/0/log.csv`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from experiments import archive, coordinate_models
from experiments.jobs import Job, job_options, run_jobs
from experiments.on_store import Study, execute
from experiments.public_sets import PublicSet, Run
from experiments.qm_sets import SIZES, SOURCES, molecules
from experiments.record import kept
from experiments.summary import lines
from gtx.tasks import Regression
from gtx.training import TrainSettings

SPLITS = ("random 0", "random 1", "random 2")
SETS = {name: PublicSet(name, "mae", SPLITS, name) for name in ("qm9-gap", "qm9-u0", "qm7-energy")}
SETTINGS = {"epochs": 200, "jitter": 0.2, "batch_molecules": 32, "ema": 0.999, "threads": 1}
MODELS: dict[str, dict[str, Any]] = {
    "gtx": {"name": "space", "arguments": {"channels": 96, "layers": 2, "pair_channels": 64, "dropout": 0.0}},
    "schnet": {"name": "schnet", "arguments": {}, "settings": {"lr": 5e-4}},
    **{name: {"name": f"atoms_{name}", "arguments": {}} for name in coordinate_models.FAMILY},
}
TITLES = {"gtx": "gtx, full attention in space", "schnet": "SchNet of PyG"}
TITLES |= {name: f"{name} of gtx" for name in coordinate_models.FAMILY}


def main(words: Sequence[str] | None = None) -> int:
    """Make the runs that are requested and not there yet; the exit status is 1 if one failed."""
    options = _read(words)
    requested = [(name, model, split) for split in options.splits for name in options.sets for model in options.models]
    runs = {_run(*one, options).key: one for one in requested}
    missing = [one for one in requested if kept(_run(*one, options), _command(*one, options), options.out) is None]
    failed = run_jobs([_job(*one, options) for one in missing], options, ["--no-progress"])
    print(*lines(run for run in archive.runs(options.out) if (run["folder"], run["name"]) in runs), sep="\n")
    return bool(failed)


def _job(name: str, model: str, split: int, options: argparse.Namespace) -> Job:
    command = _command(name, model, split, options)

    def work() -> None:
        execute(_study(name, model, split, options), options.out, options.runs)

    return Job(" ".join(_run(name, model, split, options).key), command, work)


def _study(name: str, model: str, split: int, options: argparse.Namespace) -> Study:
    of, extensive = MODELS[model], SOURCES[name].extensive
    arguments = {"out_channels": 1, **SIZES, "extensive": extensive, **of["arguments"], **options.model_arguments}
    chosen = SETTINGS | of.get("settings", {}) | options.settings
    settings = TrainSettings(**chosen, seed=split, progress=options.progress)
    spec = {"name": of["name"], "arguments": arguments}
    title = TITLES[model] + (f", {options.name}" if options.name else "")
    run, command = _run(name, model, split, options), _command(name, model, split, options)
    given = molecules(name, split)
    task = Regression(given.names, loss="mae", element_reference=extensive)
    make = partial(coordinate_models.MODELS[of["name"]].make, **arguments)
    return Study(run, given, task, make, spec, settings, title, command)


def _run(name: str, model: str, split: int, options: argparse.Namespace) -> Run:
    return Run(SETS[name], f"{model}-{options.name}" if options.name else model, split, 0)


def _command(name: str, model: str, split: int, options: argparse.Namespace) -> str:
    words = [f"python -m experiments.qm --sets {name} --models {model}"]
    for option in ("model_arguments", "settings"):
        if given := getattr(options, option):
            words.append(f"--{option.replace('_', '-')} '{json.dumps(given)}'")
    return " ".join([*words, *[f"--name {options.name}"] * bool(options.name), f"--splits {split}"])


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2], choices=range(len(SPLITS)))
    parser.add_argument("--name", default="", help="added to the models' names, for a trial with other settings")
    parser.add_argument("--model-arguments", type=json.loads, default={}, help="JSON, beside the model's own")
    parser.add_argument("--settings", type=json.loads, default={}, help=f"JSON, beside {json.dumps(SETTINGS)}")
    parser.add_argument("--no-progress", dest="progress", action="store_false", help="show no bar")
    job_options(parser)
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
