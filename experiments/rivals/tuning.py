"""Eight configurations of PyG's GINE and of its GPS on the validation rows of two sets; test rows are not looked at.

    python -m experiments.rivals.tuning --jobs 2

3 or 5 layers, dropout 0 or 0.2, with descriptors or without, on `mat/freesolv` (first split) for regression and on
`scaffold/bace` for classification. What has been tried is kept.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from experiments import archive, mat, scaffold
from experiments.archive import RESULTS, ROOT
from experiments.problem import Problem, Run
from experiments.recipe import ONE_THREAD, at_least_one
from experiments.record import commit
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
    found = {run["name"]: run["val"]["loss"] for run in archive.runs(results, "tuning", TUNED_ON[task].folder)}
    losses = {number: found.get(f"{kind}-{number}") for number in range(len(CONFIGURATIONS))}
    if missing := [f"{kind}-{number}" for number, loss in losses.items() if loss is None]:
        where = f"{results / archive.RUNS} lacks {', '.join(missing)} of {TUNED_ON[task].name}"
        raise InputError(f"{kind} is not tuned: {where}; run python -m experiments.rivals.tuning")
    return min(losses, key=losses.get)


def tune(kind: str, task: str, number: int, results: Path, runs: Path) -> None:
    """Try one configuration, and write its validation loss."""
    from experiments.rivals.pyg import fitted
    from gtx.dataset import load

    run = Run(TUNED_ON[task], kind, 0, 0)
    data = run.benchmark.data(0)
    problem = Problem(run, data, load(data, cache=runs / "cache"), runs)
    begun = time.perf_counter()
    how = CONFIGURATIONS[number]
    found = fitted(problem, how)
    result = {
        "recipe": "tuning",
        "folder": run.benchmark.folder,
        "name": f"{kind}-{number}",
        "set": run.benchmark.name,
        "model": kind,
        "val": {"loss": found.val_loss},
        "parameters": found.parameters,
        "settings": {"number": number, **how._asdict()},
        "seconds": round(time.perf_counter() - begun, 1),
        "commit": commit(),
    }
    archive.put(results, result)


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
    done = {(run["folder"], run["name"]) for run in archive.runs(asked.out, "tuning")}
    untried = [
        (kind, task, number)
        for kind, task, number in product(asked.models, asked.tasks, asked.numbers)
        if (TUNED_ON[task].folder, f"{kind}-{number}") not in done
    ]

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
        return int(not all(list(pool.map(start, untried))))


if __name__ == "__main__":
    sys.exit(main())
