"""The one exception that means: the user's input is at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one paragraph naming what was expected and what came.

    The command line prints the message alone and ends with exit status 2; from Python it is a `ValueError`.
    """


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
