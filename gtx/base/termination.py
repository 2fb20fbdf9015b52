"""SIGTERM, which `kill`, `timeout`, SLURM and `make` send: the program ends at once, with status 143."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(SystemExit):
    """Exception on SIGTERM; if it is not caught, the process ends with status 143, as shells expect."""

    def __init__(self, status: int = 128 + signal.SIGTERM) -> None:  # only pickle passes the status
        super().__init__(status)
        self.status = status


def raise_terminated(number: int, frame: FrameType | None) -> None:
    """Raise `Terminated`, as the handler of SIGTERM, so that files are closed and worker processes end."""
    raise Terminated


@contextmanager
def raise_on_sigterm() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM in the block, unless the program has a handler of its own."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
