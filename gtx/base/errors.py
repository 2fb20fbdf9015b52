"""Exceptions for unusable input, with functions that format its messages, and for the end by SIGTERM."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType


class InputError(ValueError):
    """Error in the user's input; its message names what was expected and what was found instead.

    The command line prints the message alone and exits with status 2; a parameter at its start, `top: ...`, or in
    backquotes becomes the option `--top` there. The message is `printable`, whatever names and cells it quotes.

    Attributes:
        reports_for_all: True in the one process of a distributed training that prints the message.
    """

    reports_for_all: bool = False

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message), None))


LONGEST_VALUE = 80  # characters of a name or a cell that a message shows


def printable(value: str, longest: int | None = LONGEST_VALUE) -> str:
    """Return a text of the user's in a form that is safe on a terminal: on one line, at most `longest` characters.

    Characters that are not `str.isprintable` are escaped: control characters, stray bytes, marks that change the
    direction of writing.
    """
    if longest is not None and len(value) > longest:
        value = value[: longest - 1] + "…"
    if value.isprintable():
        return value
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in value)


def first_line(error: BaseException, longest: int = 200) -> str:
    """Return the first line of the message of an error, or the name of its class."""
    return printable(next(iter(str(error).strip().splitlines()), "").strip() or type(error).__name__, longest)


def did_you_mean(name: str, names: Iterable[str], show: Callable[[str], str] = repr) -> str:
    """Return `; did you mean 'epochs'?`, the end of a message about an unknown name; empty if no name is similar.

    Args:
        name: the unknown name.
        names: valid names; case does not count.
        show: formats the similar name.
    """
    from difflib import get_close_matches

    written = {other.lower().lstrip("-"): other for other in names}  # dashes alike would make any options similar
    matches = get_close_matches(name.lower().lstrip("-"), written, n=1)
    return f"; did you mean {show(written[matches[0]])}?" if matches else ""


# --- SIGTERM, which `kill`, `timeout`, SLURM and `make` send: the program ends at once, with status 143.


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
