"""Comma-, semicolon- or tab-separated text, record by record, damaged quoting included."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator

DELIMITERS = ",;\t"
LONGEST_RECORD = 10_000  # lines that one quoted cell may span; beyond, its quote counts as never closed

csv.field_size_limit(2**31 - 1)  # the library's default of 128 KiB would refuse a long cell


def sniff(header: str, columns: Iterable[str] = (), default: str = ",") -> str:
    """The delimiter of a table, from its header line alone; quoted text does not count.

    Args:
        header: the first line.
        columns: names to look for, lower case: a delimiter that sets one of them free wins over a more frequent one.
        default: what to take if there is none, or nothing to choose by.
    """
    bare = re.sub(r'"[^"]*("|$)', '"', header.strip("\r\n"))

    def merit(delimiter: str) -> tuple[bool, int, bool]:
        names = {name.strip(' "').lower() for name in header.strip("\r\n").split(delimiter)}
        return bool(names.intersection(columns)), bare.count(delimiter), delimiter == default

    candidates = [delimiter for delimiter in DELIMITERS if delimiter in bare]
    return max(candidates, key=merit, default=default)


def records(lines: Iterable[str], delimiter: str) -> Iterator[tuple[list[str], str | None]]:
    """The cells of each record, and None or what is wrong with its quoting; a blank line has no cells.

    A quote that is never closed, or closed amid a cell, costs its own line (given with the quotes as they are) and not
    the rest of the file: reading goes on with the next line.

    Args:
        lines: text with its line ends.
        delimiter: one character.
    """
    lines = iter(lines)
    ahead: deque[str] = deque()
    taken: list[str] = []

    def source() -> Iterator[str]:
        while len(taken) < LONGEST_RECORD and (line := ahead.popleft() if ahead else next(lines, None)) is not None:
            taken.append(line)
            yield line

    while True:
        taken.clear()
        cells, broken = None, None
        try:
            cells = next(csv.reader(source(), delimiter=delimiter, strict=True), None)
        except csv.Error as reason:
            ahead.extendleft(reversed(taken[1:]))
            cells = taken[0].rstrip("\r\n").split(delimiter)
            broken = f"broken quoting ({reason})"
        if cells is None:
            return
        yield cells, broken
