"""What the recipes share: which runs are made, each in a process of its own, and how a run is made.

A recipe is a script that names its sets and calls `main`. Every run writes a line to `experiments/results/runs.csv`.
Its name is `<model>-<seed>`, or `<model>-<split>` for a set with several splits, where further seeds add `-seed<seed>`.
The files that it needs to continue are below `runs`. A run has one thread.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.models import MODELS, PARTS, fit_predict
from experiments.public_sets import LoadedRun, PublicSet, Run
from experiments.record import execute
from experiments.summary import lines
from gtx.errors import InputError

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
FOLDERS = {"out": RESULTS, "runs": ROOT / "runs"}


class Job(NamedTuple):
    """One run.

    Attributes:
        key: its folder and name in the archive.
        command: that makes it again, in the usual folders.
        work: does it in this process.
    """

    key: tuple[str, str]
    command: str
    work: Callable[[], object]


def options_of(doc: str) -> argparse.ArgumentParser:
    """A parser with the options that all recipes share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=at_least_one, default=1, help="runs at a time")
    parser.add_argument("--here", action="store_true", help="run in this process, one after the other")
    parser.add_argument("--out", type=Path, default=FOLDERS["out"], help="the folder of results")
    parser.add_argument("--runs", type=Path, default=FOLDERS["runs"], help="the folder where runs keep what they need")
    return parser


def at_least_one(text: str) -> int:
    """The number that a word of a command line stands for.

    Raises:
        ArgumentTypeError: it is no whole number, or below 1.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of 1 or more, got {text!r}")
    return int(text)


def run_jobs(
    jobs: Sequence[Job], options: argparse.Namespace, recipe: str = "benchmark", more: Sequence[str] = ()
) -> bool:
    """Do all jobs whose runs are not there yet; one that fails does not stop the others.

    Args:
        jobs: what is to be done.
        options: those of `options_of`.
        recipe: that they belong to.
        more: words for the command of a process; with `--overwrite`, finished runs are made anew.

    Returns:
        Whether a job failed; the commands of those are printed on stderr.
    """
    made = {(run["folder"], run["name"]): run.get("command") for run in archive.runs(options.out, recipe)}
    done = {} if "--overwrite" in more else made
    for job in jobs:
        if done.get(job.key, job.command) not in (job.command, None):
            print(f"{'/'.join(job.key)} is kept, made by `{done[job.key]}`", file=sys.stderr)
    jobs = [job for job in jobs if job.key not in done]
    given = {name: getattr(options, name) for name in FOLDERS if getattr(options, name) != FOLDERS[name]}
    elsewhere = [word for name, folder in given.items() for word in (f"--{name}", str(folder))]

    def ended_well(job: Job) -> bool:
        if options.here:
            try:
                job.work()
            except InputError as reason:
                print(f"{' '.join(job.key)}: {reason}", file=sys.stderr)
                return False
            return True
        command = [sys.executable, *shlex.split(job.command)[1:], "--here", *elsewhere, *more]
        ended = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL, check=False)
        print(*job.key, "failed" if ended.returncode else "done", flush=True)
        return ended.returncode == 0

    with ThreadPoolExecutor(1 if options.here else options.jobs) as pool:
        failed = [job for job, well in zip(jobs, pool.map(ended_well, jobs), strict=True) if not well]
    for job in failed:
        print("failed:", shlex.join([*shlex.split(job.command), *elsewhere]), file=sys.stderr)
    return bool(failed)


def print_scores(keys: set[tuple[str, str]], results: Path) -> None:
    """Print a line for each model and set of some runs."""
    print(*lines(run for run in archive.runs(results) if (run["folder"], run["name"]) in keys), sep="\n")


def main(doc: str, module: str, sets: Mapping[str, PublicSet], words: Sequence[str] | None = None) -> int:
    """The command line of a recipe.

    Args:
        doc: the script's docstring.
        module: the script, as `python -m` knows it.
        sets: its sets by the words that name them.
        words: of the command line.

    Returns:
        The exit status: 1 if a run failed.
    """
    parser = options_of(doc)
    parser.add_argument("--sets", nargs="+", default=list(sets), choices=list(sets))
    whole = [name for name in MODELS if name not in PARTS]
    parser.add_argument(
        "--models", nargs="+", default=whole, choices=list(MODELS), metavar="MODEL", help="default: all"
    )
    parser.add_argument("--seeds", nargs="+", type=int, help="default: as many as make a row; 0 where there are splits")
    most = max(len(public_set.splits) for public_set in sets.values())
    if most > 1:
        parser.add_argument("--splits", nargs="+", type=int, choices=range(most), help="default: all")
    parser.set_defaults(splits=None)
    parser.add_argument("--table", action="store_true", help="print the results there are, and run nothing")
    parser.add_argument("--overwrite", action="store_true", help="make finished runs anew")
    options = parser.parse_args(words)
    runs, failed = list(requested_runs(options, sets)), False
    for average in (False, True):  # an average needs its members first
        jobs = [_job(module, sets, run, options) for run in runs if (run.model == "gtx-ensemble") is average]
        failed |= not options.table and run_jobs(jobs, options, more=["--overwrite"] * options.overwrite)
    print_scores({run.key for run in runs}, options.out)
    return int(failed)


def requested_runs(options: argparse.Namespace, sets: Mapping[str, PublicSet]) -> Iterator[Run]:
    """The runs that the options name; further seeds and splits come last, since they are the cheapest to lose."""
    for seed in range(5) if options.seeds is None else options.seeds:
        for split in range(max(len(sets[name].splits) for name in options.sets)):
            for name in options.sets:
                several = len(sets[name].splits) > 1
                if split >= len(sets[name].splits) or (options.splits and split not in options.splits):
                    continue
                for model in options.models:
                    if options.seeds is not None or seed < (1 if several else MODELS[model].seeds):
                        yield Run(sets[name], model, split, seed)


def _job(module: str, sets: Mapping[str, PublicSet], run: Run, options: argparse.Namespace) -> Job:
    name = next(name for name, public_set in sets.items() if public_set == run.public_set)
    split = f" --splits {run.split}" if len(run.public_set.splits) > 1 else ""
    command = f"python -m {module} --sets {name} --models {run.model}{split} --seeds {run.seed}"

    def work() -> None:
        execute(LoadedRun.of(run, options.runs), fit_predict, command, options.out, options.overwrite)

    return Job(run.key, command, work)
