"""`gtx`, which kills itself with SIGKILL at a given place; as a module, after a split: `-m tests.cli.victim WORDS`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from gtx.cli import main


def killed_after_a_split(words: list[str]) -> None:
    """Run the command in a process of its own until it dies, and wait until those that it started have ended, too."""
    # they share its standard output, which is read to the end
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.victim", *words],
        cwd=Path(__file__).parents[2],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout + done.stderr


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_an_epoch(words: list[str]) -> None:
    """Run the command until the first checkpoint has been written."""
    import gtx.training.checkpoints as checkpoints

    save = checkpoints.save_whole

    def save_and_die(contents: dict[str, Any], path: Path) -> None:
        save(contents, path)
        die()

    checkpoints.save_whole = save_and_die
    main(words)


def die_after_a_split(words: list[str]) -> None:
    """Run the command until the first of several splits at a time has come to its result."""
    from gtx.workflow import benchmark

    completed = benchmark.as_completed

    def first(futures: Iterable[Future]) -> Iterator[Future]:
        yield next(completed(futures))
        die()

    benchmark.as_completed = first
    main(words)


if __name__ == "__main__":
    die_after_a_split(sys.argv[1:])
