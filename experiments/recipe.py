"""What all recipes share: runs asked for on a command line, each in a process of its own, finished ones kept.

A recipe is a script that names its sets and calls `main`. Every run writes a line to `experiments/results/runs.csv`,
by the name `<model>-<seed>` (`<model>-<split>` where the set has several splits; further seeds add `-seed<seed>`), and
keeps what it needs to go on below `runs`. One thread a run.
"""

from __future__ import annotations

import argparse
import os
import resource
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.models import MODELS, answer
from experiments.parts import PARTS
from experiments.problem import Benchmark, Problem, Run
from experiments.record import write

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


def main(doc: str, module: str, sets: Mapping[str, Benchmark], words: Sequence[str] | None = None) -> int:
    """The command line of a recipe.

    Args:
        doc: the script's docstring.
        module: the script, as `python -m` knows it.
        sets: its sets by the words that name them.
        words: of the command line.

    Returns:
        The exit status: 1 if a run failed.
    """
    asked = _read(doc, sets, words)
    runs = list(wanted(asked, sets))
    done = {(run["folder"], run["name"]) for run in archive.runs(asked.out)}
    missing = [run for run in runs if asked.overwrite or run.key not in done]
    if len(missing) < len(runs) and not asked.table:
        kept = f"{len(runs) - len(missing)} of {len(runs)} runs are finished and kept"
        print(f"{kept}; --overwrite makes them anew, --out and --runs elsewhere", file=sys.stderr)
    if asked.table:
        failed = []
    elif asked.here:
        failed = [run for run in missing if not _done(run, _command(module, sets, run), asked)]
    else:
        failed = _spread(module, sets, missing, asked)
    from experiments.summary import lines

    keys = {run.key for run in runs}
    print(*lines(run for run in archive.runs(asked.out) if (run["folder"], run["name"]) in keys), sep="\n")
    for run in failed:
        print(
            f"failed: {' '.join([_command(module, sets, run), *map(shlex.quote, elsewhere(asked))])}", file=sys.stderr
        )
    return bool(failed)


def wanted(asked: argparse.Namespace, sets: Mapping[str, Benchmark]) -> Iterator[Run]:
    """The runs asked for; what is cheap to lose, further seeds and splits, comes last."""
    for seed in range(1000) if asked.seeds is None else asked.seeds:
        found = False
        for split in range(max(len(sets[name].splits) for name in asked.sets)):
            for name in asked.sets:
                benchmark, several = sets[name], len(sets[name].splits) > 1
                if split >= len(benchmark.splits) or (asked.splits and split not in asked.splits):
                    continue
                for model in asked.models:
                    if asked.seeds is not None or seed < (1 if several else MODELS[model].seeds):
                        found = True
                        yield Run(benchmark, model, split, seed)
        if not found:
            return


def execute(run: Run, command: str, results: Path = RESULTS, runs: Path = ROOT / "runs") -> dict[str, Any]:
    """Do one run in this process, and give what is written of it.

    Args:
        run: what to run.
        command: that makes it again.
        results: the folder of all results.
        runs: the folder of all runs.
    """
    from gtx.dataset import load

    data = run.benchmark.data(run.split)
    problem = Problem(run, data, load(data, cache=runs / "cache"), runs)
    resumed = problem.folder.exists()
    problem.folder.mkdir(parents=True, exist_ok=True)
    wall, processor = time.perf_counter(), _processor_seconds()
    found = answer(problem)
    figures = {
        "seconds": round(time.perf_counter() - wall, 1),
        "cpu_seconds": round(_processor_seconds() - processor, 1),
        "resumed": resumed,  # then the seconds are those of the last part alone
    }
    return write(problem, found, figures, command, results)


def _done(run: Run, command: str, asked: argparse.Namespace) -> bool:
    from gtx.errors import InputError

    try:
        execute(run, command, asked.out, asked.runs)
    except InputError as reason:  # the others go on
        print(f"{run.benchmark.folder} {run.name}: {reason}", file=sys.stderr)
        return False
    return True


def _spread(module: str, sets: Mapping[str, Benchmark], runs: Sequence[Run], asked: argparse.Namespace) -> list[Run]:
    """Several at a time, each in a process of its own; averages wait for what they average. Gives those that failed."""

    def failed(run: Run) -> bool:
        more = ["--here", *elsewhere(asked), *["--overwrite"] * asked.overwrite]
        command = [sys.executable, *_command(module, sets, run).split()[1:], *more]
        done = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL, check=False)
        print(run.benchmark.folder, run.name, "failed" if done.returncode else "done", flush=True)
        return bool(done.returncode)

    lost = []
    for averages in (False, True):
        turn = [run for run in runs if bool(MODELS[run.model].members) is averages]
        with ThreadPoolExecutor(asked.jobs) as pool:
            lost += [run for run, bad in zip(turn, pool.map(failed, turn), strict=True) if bad]
    return lost


def _command(module: str, sets: Mapping[str, Benchmark], run: Run) -> str:
    name = next(name for name, benchmark in sets.items() if benchmark == run.benchmark)
    split = f" --splits {run.split}" if len(run.benchmark.splits) > 1 else ""
    return f"python -m {module} --sets {name} --models {run.model}{split} --seeds {run.seed}"


def elsewhere(asked: argparse.Namespace) -> list[str]:
    """The options that name other folders than the usual ones."""
    usual = {"out": RESULTS, "runs": ROOT / "runs"}
    given = {name: str(getattr(asked, name)) for name, folder in usual.items() if getattr(asked, name) != folder}
    return [word for name, folder in given.items() for word in (f"--{name}", folder)]


def _read(doc: str, sets: Mapping[str, Benchmark], words: Sequence[str] | None) -> argparse.Namespace:
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
    most = max(len(benchmark.splits) for benchmark in sets.values())
    if most > 1:
        parser.add_argument("--splits", nargs="+", type=int, choices=range(most), help="default: all")
    parser.add_argument("--jobs", type=at_least_one, default=1, help="runs at a time")
    parser.add_argument("--table", action="store_true", help="print the results there are, and run nothing")
    parser.add_argument("--overwrite", action="store_true", help="make finished runs anew")
    parser.add_argument("--here", action="store_true", help="run in this process, one after the other")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of results")
    parser.add_argument("--runs", type=Path, default=ROOT / "runs", help="the folder where runs keep what they need")
    asked = parser.parse_args(words)
    asked.splits = getattr(asked, "splits", None)
    return asked


def at_least_one(text: str) -> int:
    """The number a word of a command line stands for.

    Raises:
        ArgumentTypeError: it is none, or below 1.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of 1 or more, got {text!r}")
    return int(text)


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
