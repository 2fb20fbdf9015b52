"""SIGTERM, as `kill`, `timeout`, SLURM and `make` send it: the program ends where it stands, and says that it did."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(SystemExit):
    """SIGTERM came. Where nobody catches it the process ends with status 143, which shells use for such an end."""

    def __init__(self, status: int = 128 + signal.SIGTERM) -> None:  # the status is given by pickle alone
        super().__init__(status)
        self.status = status


def raise_terminated(number: int, frame: FrameType | None) -> None:
    """A handler of SIGTERM: files are closed and worker processes ended on the way out."""
    raise Terminated


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM raises `Terminated` within, unless the program around has a handler of its own."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, raise_terminated)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
