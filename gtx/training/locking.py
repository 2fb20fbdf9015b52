"""One training at a time in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import ParamSpec, TypeVar

from filelock import FileLock, Timeout

from gtx.errors import InputError
from gtx.training.ranks import is_main_process

P, R = ParamSpec("P"), TypeVar("R")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """No other process, and no other thread, is in the folder within; whoever is may enter again.

    The operating system holds the lock, by way of a hidden file, so it ends with the process, however that ends. Where
    several processes train together the main one holds it for all.

    Args:
        folder: it is made where it does not exist, and removed again if nothing is put into it.

    Raises:
        InputError: another process is there, or the name is that of a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --out must name a folder")
    if not is_main_process():
        yield
        return
    made = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    file = folder.resolve() / ".lock"
    lock = FileLock(file, blocking=False, is_singleton=True, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise InputError(
            f"another process trains in {folder}: wait until it has ended, or choose another --out"
        ) from None
    except OSError:  # a file system that has no locks, or one to read alone: what cannot be written is told later
        yield
        return
    try:
        yield
    finally:
        if lock.lock_counter == 1:
            file.unlink(missing_ok=True)  # whoever has it open sees that it has no name any more
        lock.release()
        if made:
            with suppress(OSError):
                folder.rmdir()


def alone(folder: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator for a function that trains: it is called under the lock of the folder that its argument names.

    Args:
        folder: name of the argument.
    """

    def decorate(train: Callable[P, R]) -> Callable[P, R]:
        parameters = signature(train)

        @wraps(train)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            with locked(Path(parameters.bind(*arguments, **named).arguments[folder])):
                return train(*arguments, **named)

        return call

    return decorate
