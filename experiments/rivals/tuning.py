"""Eight configurations of PyG's GINE and of its GPS on the validation rows of two sets. Test rows are not used.

    python -m experiments.rivals.tuning --jobs 2

The configurations have 3 or 5 layers, dropout 0 or 0.2, descriptors or none. The sets are `mat/freesolv` (first split)
for regression and `scaffold/bace` for classification. A finished configuration is not repeated.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from experiments import archive
from experiments.jobs import Job, job_options, run_jobs
from experiments.public_sets import LoadedRun, Run
from experiments.record import commit
from experiments.rivals.configurations import CONFIGURATIONS, KINDS, TUNED_ON
from experiments.rivals.pyg import fitted


def tune(kind: str, task: str, number: int, results: Path, runs: Path) -> None:
    """Try one configuration, and write its validation loss."""
    run = Run(TUNED_ON[task], kind, 0, 0)
    loaded = LoadedRun.of(run, runs)
    begun = time.perf_counter()
    how = CONFIGURATIONS[number]
    found = fitted(loaded, how)
    result = {
        "recipe": "tuning",
        "folder": run.public_set.folder,
        "name": f"{kind}-{number}",
        "set": run.public_set.name,
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
    job_options(parser)
    options = parser.parse_args(words)
    done = {(run["folder"], run["name"]) for run in archive.runs(options.out, "tuning")}
    untried = [
        _job(kind, task, number, options)
        for kind, task, number in product(options.models, options.tasks, options.numbers)
        if (TUNED_ON[task].folder, f"{kind}-{number}") not in done
    ]
    return bool(run_jobs(untried, options))


def _job(kind: str, task: str, number: int, options: argparse.Namespace) -> Job:
    command = f"python -m experiments.rivals.tuning --models {kind} --tasks {task} --numbers {number}"
    return Job(f"{kind} {task} {number}", command, lambda: tune(kind, task, number, options.out, options.runs))


if __name__ == "__main__":
    sys.exit(main())
