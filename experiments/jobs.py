"""Runs, either in this process or several at a time, each in a process of its own."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from experiments.archive import RESULTS, ROOT
from gtx.errors import InputError

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
FOLDERS = {"out": RESULTS, "runs": ROOT / "runs"}


class Job(NamedTuple):
    """One run.

    Attributes:
        title: what is printed of it.
        command: that makes it again, in the usual folders.
        work: does it in this process.
    """

    title: str
    command: str
    work: Callable[[], object]


def job_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all recipes share."""
    parser.add_argument("--jobs", type=at_least_one, default=1, help="runs at a time")
    parser.add_argument("--here", action="store_true", help="run in this process, one after the other")
    parser.add_argument("--out", type=Path, default=FOLDERS["out"], help="the folder of results")
    parser.add_argument("--runs", type=Path, default=FOLDERS["runs"], help="the folder where runs keep what they need")


def run_jobs(jobs: Sequence[Job], options: argparse.Namespace, more: Sequence[str] = ()) -> list[Job]:
    """Do all jobs; one that fails does not stop the others.

    Args:
        jobs: what is to be done.
        options: those of `job_options`.
        more: words for the command of a process.

    Returns:
        The jobs that failed; their commands are printed on stderr.
    """
    words = ["--here", *elsewhere(options), *more]

    def done(job: Job) -> bool:
        if options.here:
            return _done_here(job)
        command = [sys.executable, *shlex.split(job.command)[1:], *words]
        ended = subprocess.run(command, env=os.environ | ONE_THREAD, stdout=subprocess.DEVNULL, check=False)
        print(job.title, "failed" if ended.returncode else "done", flush=True)
        return ended.returncode == 0

    with ThreadPoolExecutor(1 if options.here else options.jobs) as pool:
        failed = [job for job, well in zip(jobs, pool.map(done, jobs), strict=True) if not well]
    for job in failed:
        print("failed:", shlex.join([*shlex.split(job.command), *elsewhere(options)]), file=sys.stderr)
    return failed


def _done_here(job: Job) -> bool:
    try:
        job.work()
    except InputError as reason:
        print(f"{job.title}: {reason}", file=sys.stderr)
        return False
    return True


def elsewhere(options: argparse.Namespace) -> list[str]:
    """The options that name other folders than the usual ones."""
    given = {name: getattr(options, name) for name in FOLDERS if getattr(options, name) != FOLDERS[name]}
    return [word for name, folder in given.items() for word in (f"--{name}", str(folder))]


def at_least_one(text: str) -> int:
    """The number that a word of a command line stands for.

    Raises:
        ArgumentTypeError: it is no whole number, or below 1.
    """
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of 1 or more, got {text!r}")
    return int(text)
