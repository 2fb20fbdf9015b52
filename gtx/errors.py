"""The one exception that means: the user's input is at fault."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used; the message is one paragraph naming what was expected and what came.

    The command line prints the message alone and ends with exit status 2; from Python it is a `ValueError`.
    """
