"""Text tables: lines within limits, delimiters, numbers as people write them."""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import sys
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO, cast

import numpy as np

from gtx.base.errors import InputError
from gtx.data import limits

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# --- Lines of a text, compressed or not, with a bound on their length.


def file_lines(path: str) -> Iterator[str | None]:
    """Yield the lines of a text file, see `text_lines`."""
    try:
        with open(path, "rb") as raw:
            yield from text_lines(raw, path)
    except OSError as reason:
        raise InputError(f"cannot read {path}: {reason}") from None


def text_lines(raw: io.BufferedReader, name: str) -> Iterator[str | None]:
    """Yield the lines of a text with their ends, unpacked where gzip packed it; see `bounded`.

    The text is UTF-8, with or without a byte-order mark; invalid bytes are kept as surrogates. An `InputError` says
    that `name` cannot be read to its end, or is a workbook or UTF-16 text.
    """
    try:
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        refuse_workbook(stream.peek(HEAD)[:HEAD], name)
        yield from bounded(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=""))
    except (OSError, EOFError, zlib.error) as reason:
        raise InputError(f"cannot read {name}: {reason}") from None


def bounded(text: TextIO) -> Iterator[str | None]:
    """Yield the lines of a text with their ends, and None for a line above `gtx.data.limits.LONGEST_ROW` characters."""
    most = limits.LONGEST_ROW
    line = text.readline(most + 2)  # the two are its end
    while line:
        if len(line) <= most or len(line.rstrip("\r\n")) <= most:
            yield line
            line = text.readline(most + 2)
            continue
        yield None
        while line and line[-1] not in "\r\n":
            line = text.readline(most + 2)
        cut, line = line, text.readline(most + 2)
        if cut.endswith("\r") and line == "\n":  # an end of two characters that was cut in two
            line = text.readline(most + 2)


def standard_input() -> io.BufferedReader:
    """Open standard input, whose first four bytes can be peeked at however slowly they come; closing does no harm."""
    stream = cast(io.BufferedReader, sys.stdin.buffer)
    return io.BufferedReader(_Rejoined(stream.read(4), stream))


class _Rejoined(io.RawIOBase):
    """Stream of some bytes that were read before, and then the rest."""

    def __init__(self, head: bytes, rest: io.BufferedReader) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self.head:
            return self.rest.readinto1(buffer)
        view = memoryview(buffer)
        count = min(len(view), len(self.head))
        view[:count], self.head = self.head[:count], self.head[count:]
        return count


# --- The largest absolute value of a target.

LARGEST = 1e30
"""The largest target, with either sign. Squares and their sums stay far below the largest float64, 1.8e308, and the
target itself below the largest float32, 3.4e38. What file formats write for a missing number (9.97e36, 1.8e308) is
larger."""

LIMIT = f"a target lies between -{LARGEST:g} and {LARGEST:g}; leave the cell empty where there is no value"


def too_large(y: np.ndarray) -> tuple[int, int] | None:
    """Return the row and the column of the first target of `[n, T]` beyond the limit; None if there is none."""
    rows, columns = np.nonzero(np.abs(y) > LARGEST)
    return (int(rows[0]), int(columns[0])) if len(rows) else None


# --- Files mistaken for text tables: workbooks, UTF-16 text of spreadsheets, and text that gzip did not pack.

HEAD = 4
"""Number of first bytes that identify such a file."""
_REMEDY = "save it as CSV UTF-8"
_ZIP = b"PK\x03\x04"  # .xlsx, .xlsm, .xlsb, .ods
_OLE = b"\xd0\xcf\x11\xe0"  # .xls, and a workbook with a password
_PACKED = {b"BZh": "bzip2", b"\xfd7zX": "xz", b"\x28\xb5\x2f\xfd": "zstandard"}
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # what Excel calls Unicode text


def refuse_workbook(head: bytes, name: str) -> None:
    """Raise an `InputError` for the first bytes of a file that is no text of UTF-8, with what to do about it."""
    if head.startswith(_UTF_16):
        raise InputError(f"{name} is UTF-16 text: {_REMEDY}")
    ending = os.path.splitext(name.lower())[1]
    if head.startswith(_ZIP) and ending == ".zip":
        raise InputError(f"{name} is a ZIP file: unpack it, and give the table inside")
    if head.startswith(_ZIP) and ending == ".ods":
        raise InputError(f"{name} is a LibreOffice workbook: {_REMEDY}")
    for start, program in _PACKED.items():
        if head.startswith(start):
            raise InputError(f"{name} is packed by {program}: unpack it, or pack it with gzip")
    if head.startswith((_ZIP, _OLE)):
        raise InputError(f"{name} is an Excel workbook: {_REMEDY}")


# --- Comma-, semicolon- or tab-separated text, record by record, damaged quoting included.

DELIMITERS = ",;\t"
END = ""  # of the lines: a line has one character or more, its end

csv.field_size_limit(2**31 - 1)  # the library's default of 128 KiB would refuse a long cell


def sniff(header: str, columns: Iterable[str] = (), default: str = ",") -> str:
    """Return the delimiter of a table, from its header line alone; quoted text does not count.

    A delimiter that sets one of the `columns` (in lower case) free wins over a more frequent one.
    """
    bare = re.sub(r'"[^"]*("|$)', '"', header.strip("\r\n"))

    def merit(delimiter: str) -> tuple[bool, int, bool]:
        names = {name.strip().strip('"').strip().lower() for name in header.strip("\r\n").split(delimiter)}
        return bool(names.intersection(columns)), bare.count(delimiter), delimiter == default

    candidates = [delimiter for delimiter in DELIMITERS if delimiter in bare]
    return max(candidates, key=merit, default=default)


def records(lines: Iterable[str | None], delimiter: str) -> Iterator[tuple[list[str], str | None]]:
    """Yield the cells of each record, and its error or None; a blank line has no cells.

    A quote that is never closed, or closed amid a cell, is an error of its own line, whose cells have the quotes
    unchanged; reading continues with the next line. A line above the limit, which is None, is an error too.
    """
    lines = iter(lines)
    ahead: deque[str | None] = deque()
    read: list[str | None] = []
    patience = limits.LONGEST_RECORD  # lines to read ahead in vain: a quote on every line must not cost all lines after

    def source() -> Iterator[str]:
        size = 0
        while len(read) <= patience and size <= limits.LONGEST_ROW:
            line = ahead.popleft() if ahead else next(lines, END)
            if line == END:
                return
            read.append(line)
            if line is None:
                return
            size += len(line)
            yield line

    while True:
        line = ahead.popleft() if ahead else next(lines, END)
        if line == END:
            return
        if line is None:
            yield [], limits.too_long()
            patience = min(patience + 1, limits.LONGEST_RECORD)
            continue
        if '"' not in line:  # nothing to unquote: a tenth of the library's time
            line = line.rstrip("\r\n")
            yield (line.split(delimiter) if line else []), None
            patience = min(patience + 1, limits.LONGEST_RECORD)
            continue
        ahead.appendleft(line)
        read.clear()
        broken = None
        try:
            cells = next(csv.reader(source(), delimiter=delimiter, strict=True), [])
            patience = min(patience + len(read), limits.LONGEST_RECORD)
        except csv.Error as reason:
            ahead.extendleft(reversed(read[1:]))
            patience -= len(read) - 1
            cells = line.rstrip("\r\n").split(delimiter)
            broken = f"broken quoting ({reason})"
        yield cells, broken
