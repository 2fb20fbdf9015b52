"""Comma-, semicolon- or tab-separated text, record by record, damaged quoting included."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Iterable, Iterator

from gtx.data import limits

DELIMITERS = ",;\t"
END = object()  # of the lines

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
        names = {name.strip().strip('"').strip().lower() for name in header.strip("\r\n").split(delimiter)}
        return bool(names.intersection(columns)), bare.count(delimiter), delimiter == default

    candidates = [delimiter for delimiter in DELIMITERS if delimiter in bare]
    return max(candidates, key=merit, default=default)


def records(lines: Iterable[str | None], delimiter: str) -> Iterator[tuple[list[str], str | None]]:
    """The cells of each record, and None or what is wrong with it; a blank line has no cells.

    A quote that is never closed, or closed amid a cell, costs its own line (given with the quotes as they are) and not
    the rest of the file: reading goes on with the next line. So does a line that was too long to be kept.

    Args:
        lines: text with its line ends; None for a line that was too long.
        delimiter: one character.
    """
    lines = iter(lines)
    ahead: deque[str | None] = deque()
    taken: list[str | None] = []
    patience = limits.LONGEST_RECORD  # lines to read ahead in vain: a quote on every line must not cost all lines after

    def source() -> Iterator[str]:
        size = 0
        while len(taken) <= patience and size <= limits.LONGEST_ROW:
            line = ahead.popleft() if ahead else next(lines, END)
            if line is END:
                return
            taken.append(line)
            if line is None:
                return
            size += len(line)
            yield line

    while True:
        line = ahead.popleft() if ahead else next(lines, END)
        if line is END:
            return
        if line and '"' not in line:  # nothing to unquote: a tenth of the library's time
            line = line.rstrip("\r\n")
            yield (line.split(delimiter) if line else []), None
            patience = min(patience + 1, limits.LONGEST_RECORD)
            continue
        ahead.appendleft(line)
        taken.clear()
        cells, broken = None, None
        try:
            cells = next(csv.reader(source(), delimiter=delimiter, strict=True), None)
            patience = min(patience + len(taken), limits.LONGEST_RECORD)
        except csv.Error as reason:
            ahead.extendleft(reversed(taken[1:]))
            patience -= len(taken) - 1
            cells = taken[0].rstrip("\r\n").split(delimiter)
            broken = f"broken quoting ({reason})"
        if cells is None:
            cells, broken = [], limits.too_long()  # the one line taken is None
        yield cells, broken
