"""What commands print: names, cells and file names of the user's never reach a terminal as control characters."""

from __future__ import annotations

import codecs
import os
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any, TextIO

from gtx.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 180
"""Characters of a line where output goes to a file or a pipe, which has no width of its own."""
PLAIN = {"×": "x", "±": "+-", "−": "-", "–": "-", "…": "...", "²": "2", "³": "3", "µ": "u", "Å": "A", "→": "->"}
"""What stands for a character that the output does not know."""
_said = True


def say(line: str, file: TextIO | None = None) -> None:
    """Print one line, on standard output unless told otherwise; a terminal's lines end between words."""
    stream, line = file or sys.stdout, printable(line, None)
    if stream.isatty():
        width = shutil.get_terminal_size().columns
        line = "\n".join(textwrap.wrap(line, width, break_on_hyphens=False, break_long_words=False)) or line
    print(line, file=stream)


def note(line: str) -> None:
    """Print one line beside the results, on standard error; with --quiet nothing."""
    if _said:
        say(line, sys.stderr)


def in_words(stream: TextIO) -> None:
    """Have a stream that knows only some characters, such as ASCII, print others in those that it knows."""
    codecs.register_error("gtx", _plainer)
    if hasattr(stream, "reconfigure") and stream.errors == "strict":
        stream.reconfigure(errors="gtx")


def _plainer(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in found), error.end


def be_quiet(quiet: bool) -> None:
    """Turn `note` off or on."""
    global _said
    _said = not quiet


def shows_progress() -> bool:
    """Return True if progress is wanted and there is a terminal to show it."""
    return _said and sys.stderr.isatty()


def console(**more: Any) -> Console:
    """Make a console of rich on standard output, for tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE, **more)


def cell(text: str) -> str:
    """Escape a text for rich, for which square brackets would be markup; line feeds stay."""
    from rich.markup import escape

    return "\n".join(escape(printable(line, None)) for line in text.split("\n"))
