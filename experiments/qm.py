"""Quantum chemistry with coordinates: gtx's graph transformer in space beside PyG's SchNet, on the same rows.

    python -m experiments.qm --sets qm9-gap qm9-u0 qm7-energy --models gtx schnet --jobs 2

Sets: `qm9-gap`, HOMO-LUMO gap, and `qm9-u0`, atomisation energy at 0 K (QM9's own, U0 minus the atoms'), of 3,000
molecules of QM9, every 40th; `qm7-energy`, atomisation energy (PBE0) of 7,101 molecules of QM7. Both models get atomic
numbers and coordinates, nothing else; bonds that gtx uses are perceived from the distances. Splits 80/10/10 are random,
by seeds 0, 1, 2, which are also the runs' seeds. Both are trained on the absolute error for as many epochs, by AdamW
(peak rate 1e-3, of SchNet 5e-4), a cosine, averaged weights, the best epoch on the validation rows; of energies a
reference per element, fitted on the training rows by least squares, is taken off. SchNet has the layers of its paper;
energies are sums over atoms, the gap a mean.

Not comparable with published tables of QM9: 2,400 training rows, and no random sample. One thread a run; a run that was
stopped goes on by the same command, a finished one is kept. Scores
of every epoch so far: `runs/<set>/<run>/members/0/log.csv`.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.problem import Benchmark, Run
from experiments.recipe import at_least_one, elsewhere
from experiments.record import kept
from experiments.summary import lines

SPLITS = ("random 0", "random 1", "random 2")
SETS = {name: Benchmark(name, "mae", SPLITS, name) for name in ("qm9-gap", "qm9-u0", "qm7-energy")}
SETTINGS = {"epochs": 200, "jitter": 0.2, "batch_molecules": 32, "ema": 0.999, "threads": 1}
MODELS: dict[str, dict[str, Any]] = {
    "gtx": {"name": "space", "arguments": {"channels": 96, "layers": 2, "pair_channels": 64, "dropout": 0.0}},
    "schnet": {"name": "schnet", "arguments": {}, "settings": {"lr": 5e-4}},
}
TITLES = {"gtx": "gtx, full attention in space", "schnet": "SchNet of PyG"}


def main(words: Sequence[str] | None = None) -> int:
    """Run what is asked for and not there yet, several at a time, each in a process of its own."""
    asked = _read(words)
    wanted = [(s, m, k) for k in asked.splits for s in asked.sets for m in asked.models]
    missing = [one for one in wanted if kept(_run(*one, asked), _command(*one, asked), asked.out) is None]
    if asked.here:
        failed = [one for one in missing if not _done(*one, asked)]
    else:

        def start(one: tuple[str, str, int]) -> bool:
            return _start(*one, asked)

        with ThreadPoolExecutor(asked.jobs) as pool:
            failed = [one for one, bad in zip(missing, pool.map(start, missing), strict=True) if bad]
    keys = {_run(*one, asked).key for one in wanted}
    print(*lines(run for run in archive.runs(asked.out) if (run["folder"], run["name"]) in keys), sep="\n")
    for one in failed:
        print(f"failed: {' '.join([_command(*one, asked), *map(shlex.quote, elsewhere(asked))])}", file=sys.stderr)
    return bool(failed)


def _done(name: str, model: str, split: int, asked: argparse.Namespace) -> bool:
    from gtx.errors import InputError

    try:
        _execute(name, model, split, asked)
    except InputError as reason:  # the others go on
        print(f"{name} {_run(name, model, split, asked).name}: {reason}", file=sys.stderr)
        return False
    return True


def _execute(name: str, model: str, split: int, asked: argparse.Namespace) -> None:
    from experiments.on_store import Study, execute
    from experiments.qm_sets import SIZES, SOURCES, molecules
    from experiments.space import MODELS as MAKERS
    from gtx.tasks import Regression
    from gtx.training import TrainSettings

    of, extensive = MODELS[model], SOURCES[name].extensive
    arguments = {"out_channels": 1, **SIZES, "extensive": extensive, **of["arguments"], **asked.model_arguments}
    chosen = SETTINGS | of.get("settings", {}) | asked.settings
    settings = TrainSettings(**chosen, seed=split, progress=asked.progress)
    spec = {"name": of["name"], "arguments": arguments}
    run, command = _run(name, model, split, asked), _command(name, model, split, asked)
    title = TITLES[model] + (f", {asked.name}" if asked.name else "")
    given = molecules(name, split)
    task = Regression(given.names, loss="mae", element_reference=extensive)
    make = partial(MAKERS[of["name"]].make, **arguments)
    execute(Study(run, given, task, make, spec, settings, title, command), asked.out, asked.runs)


def _run(name: str, model: str, split: int, asked: argparse.Namespace) -> Run:
    return Run(SETS[name], f"{model}-{asked.name}" if asked.name else model, split, 0)


def _start(name: str, model: str, split: int, asked: argparse.Namespace) -> bool:
    """In a process of its own; whether it failed."""
    words = [sys.executable, "-m", "experiments.qm", "--sets", name, "--models", model, "--splits", str(split)]
    words += [*elsewhere(asked), "--here", "--no-progress"]
    for option in ("model_arguments", "settings"):
        words += [f"--{option.replace('_', '-')}", json.dumps(getattr(asked, option))]
    words += ["--name", asked.name] if asked.name else []
    one_thread = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=one_thread, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    print(name, _run(name, model, split, asked).name, "failed" if done.returncode else "done", flush=True)
    return bool(done.returncode)


def _command(name: str, model: str, split: int, asked: argparse.Namespace) -> str:
    words = [f"python -m experiments.qm --sets {name} --models {model}"]
    for option in ("model_arguments", "settings"):
        if given := getattr(asked, option):
            words.append(f"--{option.replace('_', '-')} '{json.dumps(given)}'")
    return " ".join([*words, *[f"--name {asked.name}"] * bool(asked.name), f"--splits {split}"])


def _read(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2], choices=range(len(SPLITS)))
    parser.add_argument("--jobs", type=at_least_one, default=1, help="runs at a time")
    parser.add_argument("--name", default="", help="added to the models' names, for a trial with other settings")
    parser.add_argument("--model-arguments", type=json.loads, default={}, help="JSON, beside the model's own")
    parser.add_argument("--settings", type=json.loads, default={}, help=f"JSON, beside {json.dumps(SETTINGS)}")
    parser.add_argument("--here", action="store_true", help="run in this process, one after the other")
    parser.add_argument("--no-progress", dest="progress", action="store_false", help="show no bar")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="the folder where runs keep what they need")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
