"""What commands print: names, cells and file names of the user's never reach a terminal as control characters."""

from __future__ import annotations

import sys
from typing import TextIO

from gtx.errors import printable


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line, on standard output unless told otherwise."""
    print(printable(line, None), file=file)


def note(line: str) -> None:
    """Print one line beside the results, on standard error."""
    say(line, sys.stderr)


def cell(text: str) -> str:
    """A text for a table or a line of rich, where square brackets would be markup; line feeds stay."""
    from rich.markup import escape

    return "\n".join(escape(printable(line, None)) for line in text.split("\n"))
