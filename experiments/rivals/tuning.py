"""Eight configurations of PyG's GINE and of its GPS on the validation rows of two sets; test rows are not looked at.

    python -m experiments.rivals.tuning --jobs 2

3 or 5 layers, dropout 0 or 0.2, with descriptors or without, on `mat/freesolv` (first split) for regression and on
`scaffold/bace` for classification. One JSON per configuration in `experiments/results/tuning/<set>/`; those that are
there are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from experiments import mat, scaffold
from experiments.problem import Problem, Run
from experiments.recipe import ONE_THREAD, at_least_one
from experiments.record import RESULTS, ROOT, commit
from experiments.rivals.networks import Configuration
from gtx.errors import InputError

CONFIGURATIONS = tuple(Configuration(*how) for how in product((3, 5), (0.0, 0.2), (False, True)))
TUNED_ON = {"regression": mat.SETS["freesolv"], "classification": scaffold.SETS["bace"]}
KINDS = ("gine", "gps")


def best(kind: str, task: str, results: Path = RESULTS) -> int:
    """The number of the configuration with the least validation loss.

    Raises:
        InputError: a configuration has not been tried.
    """
    files = [_file(kind, task, number, results) for number in range(len(CONFIGURATIONS))]
    for file in files:
        if not file.exists():
            raise InputError(f"{kind} is not tuned: expected {file}; run python -m experiments.rivals.tuning")
    losses = [json.loads(file.read_text())["val_loss"] for file in files]
    return losses.index(min(losses))


def tune(kind: str, task: str, number: int, results: Path, runs: Path) -> None:
    """Try one configuration, and write its validation loss."""
    from experiments.rivals.pyg import fitted
    from gtx.workflow.dataset import load

    run = Run(TUNED_ON[task], kind, 0, 0)
    data = run.benchmark.data(0)
    problem = Problem(run, data, load(data, cache=runs / "cache"), runs)
    begun = time.perf_counter()
    how = CONFIGURATIONS[number]
    found = fitted(problem, how)
    result = {"set": run.benchmark.name, "model": kind, "number": number, **how._asdict()}
    result |= {"val_loss": found.val_loss, "parameters": found.parameters}
    result |= {"seconds": round(time.perf_counter() - begun, 1), "commit": commit()}
    file = _file(kind, task, number, results)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=2) + "\n")


def _file(kind: str, task: str, number: int, results: Path) -> Path:
    return results / "tuning" / TUNED_ON[task].folder / f"{kind}-{number}.json"


def main(words: Sequence[str] | None = None) -> int:
    """Try what has not been tried, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=KINDS, choices=KINDS)
    parser.add_argument("--tasks", nargs="+", default=list(TUNED_ON), choices=list(TUNED_ON))
    parser.add_argument("--numbers", nargs="+", type=int, default=range(len(CONFIGURATIONS)))
    parser.add_argument("--jobs", type=at_least_one, default=1, help="configurations at a time")
    parser.add_argument("--here", action="store_true", help="run in this process, one after the other")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    asked = parser.parse_args(words)
    tried = [one for one in product(asked.models, asked.tasks, asked.numbers) if not _file(*one, asked.out).exists()]

    def start(one: tuple[str, str, int]) -> bool:
        kind, task, number = one
        if asked.here:
            tune(kind, task, number, asked.out, ROOT / "runs")
            return True
        more = ["--models", kind, "--tasks", task, "--numbers", str(number), "--here", "--out", str(asked.out)]
        command = [sys.executable, "-m", "experiments.rivals.tuning", *more]
        done = subprocess.run(command, env=os.environ | ONE_THREAD, check=False).returncode == 0
        print(kind, task, number, "done" if done else "failed", flush=True)
        return done

    with ThreadPoolExecutor(1 if asked.here else asked.jobs) as pool:
        return int(not all(list(pool.map(start, tried))))


if __name__ == "__main__":
    sys.exit(main())
