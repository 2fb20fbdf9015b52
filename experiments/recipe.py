"""The command line of the recipes: which runs are made, each in a process of its own with one thread.

A recipe is a script that names its sets and calls `main`. With `--here`, runs are made in this process.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from experiments import tables
from experiments.models import MODELS, PARTS, fit_predict
from experiments.runs import Fit, PublicSet, Run, execute
from experiments.summary import gather
from experiments.tables import RESULTS, ROOT
from gtx.base.errors import InputError

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
Work = Callable[[Run], object]
"""Makes a run and writes it; it can be pickled."""


def options_of(doc: str | None) -> argparse.ArgumentParser:
    """Make a parser with the options that all recipes share."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--here", action="store_true", help="run in this process, one after the other")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="folder where runs write what they need")
    return parser


def run_all(runs: Sequence[Run], work: Work, options: argparse.Namespace) -> bool:
    """Make all runs that are not in the table yet; one that fails does not stop the others."""
    commands = {(run["folder"], run["name"]): run.get("command") for run in tables.runs(options.out)}
    if getattr(options, "overwrite", False):
        commands = {}
    for run in runs:
        if commands.get(run.key) not in (None, run.command):
            print(f"{'/'.join(run.key)} is kept, made by `{commands[run.key]}`", file=sys.stderr)
    missing = [run for run in runs if run.key not in commands]
    with ThreadPoolExecutor(1 if options.here else options.jobs) as pool:
        made = pool.map(partial(succeeds if options.here else succeeds_in_process, work), missing)
        failed = [run for run, good in zip(missing, made, strict=True) if not good]
    for run in failed:
        print("failed:", run.command, file=sys.stderr)
    return bool(failed)


def succeeds(work: Work, run: Run) -> bool:
    """Make a run; print why if that cannot be."""
    try:
        work(run)
    except InputError as reason:
        print(f"{' '.join(run.key)}: {reason}", file=sys.stderr)
        return False
    return True


def succeeds_in_process(work: Work, run: Run) -> bool:
    """Make a run in a process of its own."""
    os.environ.update(ONE_THREAD)
    process = get_context("spawn").Process(target=_process, args=(work, run))
    process.start()
    process.join()
    print(*run.key, "failed" if process.exitcode else "done", flush=True)
    return process.exitcode == 0


def _process(work: Work, run: Run) -> None:
    sys.exit(not succeeds(work, run))


def print_scores(runs: Sequence[Run], results: Path) -> None:
    """Print a line for each model and set of some runs."""
    keys = {run.key for run in runs}
    found = gather(run for run in tables.runs(results) if (run["folder"], run["name"]) in keys)
    for row in (row for models in found.values() for row in models.values()):
        numbers = [f"{number:.4f}" for number in (row.mean(), row.sd()) if number is not None] or ["undefined"]
        each = " ".join(f"{score:.3f}" for score in row.scores())
        print(f"{row.folder:17} {row.model:20} {row.counted:20} test {row.metric} {' ± '.join(numbers)}  {each}")
    if not found:
        print("no results yet")


def main(
    doc: str | None,
    module: str,
    sets: Mapping[str, PublicSet],
    words: Sequence[str] | None = None,
    fit: Fit = fit_predict,
) -> int:
    """Run the command line of a recipe."""
    parser = options_of(doc)
    parser.add_argument("--sets", nargs="+", default=list(sets), choices=list(sets))
    usual = [name for name in MODELS if name not in PARTS]
    parser.add_argument(
        "--models", nargs="+", default=usual, choices=list(MODELS), metavar="MODEL", help="default: all"
    )
    parser.add_argument("--seeds", nargs="+", type=int, help="default: as many as make a row; 0 where there are splits")
    most = max(len(public_set.splits) for public_set in sets.values())
    if most > 1:
        parser.add_argument("--splits", nargs="+", type=int, choices=range(most), help="default: all")
    parser.set_defaults(splits=None)
    parser.add_argument("--table", action="store_true", help="print the results there are, and run nothing")
    parser.add_argument("--overwrite", action="store_true", help="make finished runs again")
    options = parser.parse_args(words)
    runs = list(requested_runs(module, sets, options))
    work = partial(execute, fit=fit, results=options.out, overwrite=options.overwrite)
    failed = not options.table and run_all(runs, work, options)
    print_scores(runs, options.out)
    return int(failed)


def requested_runs(module: str, sets: Mapping[str, PublicSet], options: argparse.Namespace) -> Iterator[Run]:
    """Yield the runs that the options name; further seeds and splits come last, as they are the cheapest to lose."""
    for seed in range(5) if options.seeds is None else options.seeds:
        for split in range(max(len(sets[name].splits) for name in options.sets)):
            for name in options.sets:
                several = len(sets[name].splits) > 1
                if split >= len(sets[name].splits) or (options.splits and split not in options.splits):
                    continue
                for model in options.models:
                    if options.seeds is None and seed >= (1 if several else MODELS[model].seeds):
                        continue
                    command = f"python -m {module} --sets {name} --models {model}"
                    if several:
                        command += f" --splits {split}"
                    command += f" --seeds {seed}"
                    yield Run(sets[name], model, split, seed, options.runs, command=command)
