"""What the recipes of tables share: which runs are made, and how a run is made.

A recipe is a script that names its sets and calls `main`. Every run writes a line to `experiments/results/runs.csv`.
Its name is `<model>-<seed>`, or `<model>-<split>` for a set with several splits, where further seeds add `-seed<seed>`.
The files that it needs to continue are below `runs`. A run has one thread.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.contenders import MODELS, fit_predict
from experiments.jobs import Job, job_options, run_jobs
from experiments.parts import PARTS
from experiments.public_sets import LoadedRun, PublicSet, Run
from experiments.record import write
from experiments.summary import lines


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
    options = _read(doc, sets, words)
    runs = list(requested_runs(options, sets))
    done = {(run["folder"], run["name"]) for run in archive.runs(options.out)}
    missing = [run for run in runs if options.overwrite or run.key not in done]
    if len(missing) < len(runs) and not options.table:
        kept = f"{len(runs) - len(missing)} of {len(runs)} runs are finished and kept"
        print(f"{kept}; --overwrite makes them anew, --out and --runs elsewhere", file=sys.stderr)
    failed = []
    for average in (False, True):  # an average needs its members first
        jobs = [_job(module, sets, run, options) for run in missing if bool(MODELS[run.model].members) is average]
        failed += [] if options.table else run_jobs(jobs, options, ["--overwrite"] * options.overwrite)
    keys = {run.key for run in runs}
    print(*lines(run for run in archive.runs(options.out) if (run["folder"], run["name"]) in keys), sep="\n")
    return bool(failed)


def requested_runs(options: argparse.Namespace, sets: Mapping[str, PublicSet]) -> Iterator[Run]:
    """The runs that the options name; further seeds and splits come last, since they are the cheapest to lose."""
    for seed in range(1000) if options.seeds is None else options.seeds:
        found = False
        for split in range(max(len(sets[name].splits) for name in options.sets)):
            for name in options.sets:
                public_set, several = sets[name], len(sets[name].splits) > 1
                if split >= len(public_set.splits) or (options.splits and split not in options.splits):
                    continue
                for model in options.models:
                    if options.seeds is not None or seed < (1 if several else MODELS[model].seeds):
                        found = True
                        yield Run(public_set, model, split, seed)
        if not found:
            return


def execute(
    run: Run, command: str, results: Path = RESULTS, runs: Path = ROOT / "runs", overwrite: bool = False
) -> dict[str, Any]:
    """Do one run in this process, and give what is written of it.

    Args:
        run: what to run.
        command: that makes it again.
        results: the folder of all results.
        runs: the folder of all runs.
        overwrite: begin anew, whatever the folder of the run holds.
    """
    loaded = LoadedRun.of(run, runs)
    if overwrite:
        shutil.rmtree(loaded.folder, ignore_errors=True)
    resumed = loaded.folder.exists()
    loaded.folder.mkdir(parents=True, exist_ok=True)
    wall, processor = time.perf_counter(), _processor_seconds()
    found = fit_predict(loaded)
    figures = {
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(_processor_seconds() - processor, 1),
        "resumed": resumed,  # then the seconds are those of the last part alone
    }
    return write(loaded, found, figures, command, results)


def _job(module: str, sets: Mapping[str, PublicSet], run: Run, options: argparse.Namespace) -> Job:
    name = next(name for name, public_set in sets.items() if public_set == run.public_set)
    split = f" --splits {run.split}" if len(run.public_set.splits) > 1 else ""
    command = f"python -m {module} --sets {name} --models {run.model}{split} --seeds {run.seed}"
    return Job(" ".join(run.key), command, lambda: execute(run, command, options.out, options.runs, options.overwrite))


def _read(doc: str, sets: Mapping[str, PublicSet], words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=list(sets), choices=list(sets))
    whole = [name for name in MODELS if name not in PARTS]
    parser.add_argument(
        "--models",
        nargs="+",
        default=whole,
        choices=list(MODELS),
        metavar="MODEL",
        help=f"default: {' '.join(whole)}; also those of experiments.parts",
    )
    parser.add_argument("--seeds", nargs="+", type=int, help="default: as many as make a row; 0 where there are splits")
    most = max(len(public_set.splits) for public_set in sets.values())
    if most > 1:
        parser.add_argument("--splits", nargs="+", type=int, choices=range(most), help="default: all")
    parser.set_defaults(splits=None)
    parser.add_argument("--table", action="store_true", help="print the results there are, and run nothing")
    parser.add_argument("--overwrite", action="store_true", help="make finished runs anew")
    job_options(parser)
    return parser.parse_args(words)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
