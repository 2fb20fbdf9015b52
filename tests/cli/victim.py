"""`gtx`, which kills itself with SIGKILL at a given place."""

import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, as_completed
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

from gtx.cli import main
from tests.training.distributed import FORKS


def killed_after_a_split(words: list[str]) -> None:
    """Run the command in a process of its own until it dies, and wait until those that it started have ended, too."""
    ours, theirs = FORKS.Pipe(duplex=False)  # all of them share its other end
    process = FORKS.Process(target=die_after_a_split, args=(words, theirs))
    process.start()
    theirs.close()
    assert ours.poll(300)
    with pytest.raises(EOFError):
        ours.recv()
    process.join()
    assert process.exitcode == -signal.SIGKILL


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after_an_epoch(words: list[str]) -> None:
    """Run the command until the first checkpoint has been written."""
    from gtx.training import run

    save = run.save_atomically

    def save_and_die(contents: dict[str, Any], path: Path) -> None:
        save(contents, path)
        die()

    run.save_atomically = save_and_die
    main(words)


def die_after_a_split(words: list[str], shared: Connection) -> None:
    """Run the command until the first of several splits at a time has come to its result."""
    from gtx.workflow import benchmark
    from tests.baselines import simplify_baselines
    from tests.forks import use_forks

    use_forks(pytest.MonkeyPatch())
    simplify_baselines(pytest.MonkeyPatch())  # as in `tests/conftest.py`

    def first(futures: Iterable[Future]) -> Iterator[Future]:
        yield next(as_completed(futures))
        die()

    benchmark.as_completed = first
    main(words)
