"""The one exception that means: the user's input is at fault; and what its messages are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one paragraph naming what was expected and what came.

    The command line prints the message alone and ends with exit status 2; from Python it is a `ValueError`. Whatever
    names and cells the message quotes, it is `printable`.

    Attributes:
        speaks_for_all: of several processes that train together this one was chosen to print its message.
    """

    speaks_for_all: bool = False

    def __init__(self, message: object = "") -> None:
        super().__init__(printable(str(message), None))


LONGEST_VALUE = 80  # characters of a name or a cell that a message shows


def printable(value: str, longest: int | None = LONGEST_VALUE) -> str:
    """A text of the user's fit for a terminal, on one line: shortened to `longest` characters, and what
    `str.isprintable` refuses escaped: control characters, stray bytes, marks that turn the direction of writing."""
    if longest is not None and len(value) > longest:
        value = value[: longest - 1] + "…"
    if value.isprintable():
        return value
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in value)


def did_you_mean(name: str, names: Iterable[str], show: Callable[[str], str] = repr) -> str:
    """The end of a message about a name that does not exist: `; did you mean 'epochs'?`, or nothing if none is near.

    Args:
        name: what was given.
        names: what there is; case does not count.
        show: how the near name is written.
    """
    from difflib import get_close_matches

    written = {other.lower(): other for other in names}
    near = get_close_matches(name.lower(), written, n=1)
    return f"; did you mean {show(written[near[0]])}?" if near else ""
