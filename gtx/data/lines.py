"""The lines of a text, packed or not, none of them so long that it would fill the memory."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO, TextIO

from gtx.data import limits
from gtx.data.workbooks import HEAD, refuse_workbook
from gtx.errors import InputError


def file_lines(path: str) -> Iterator[str | None]:
    """The lines of a text file, see `text_lines`."""
    try:
        with open(path, "rb") as raw:
            yield from text_lines(raw, path)
    except OSError as reason:
        raise InputError(f"cannot read {path}: {reason}") from None


def text_lines(raw: io.BufferedReader, name: str) -> Iterator[str | None]:
    """The lines of a text with their ends, unpacked where gzip packed it; see `bounded`.

    It is UTF-8, with or without a byte-order mark; bytes that are not survive as surrogates.

    Raises:
        InputError: `name` cannot be read, or not to its end; or it is a workbook or UTF-16 text.
    """
    try:
        stream = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == b"\x1f\x8b" else raw
        refuse_workbook(stream.peek(HEAD)[:HEAD], name)
        yield from bounded(io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline=""))
    except (OSError, EOFError, zlib.error) as reason:
        raise InputError(f"cannot read {name}: {reason}") from None


def bounded(text: TextIO) -> Iterator[str | None]:
    """The lines of a text with their ends, and None for a line of more than `gtx.data.limits.LONGEST_ROW` characters,
    which is read to its end and not kept."""
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
    """Standard input, whose first four bytes can be peeked at however slowly they come; closing it does no harm."""
    stream = sys.stdin.buffer
    return io.BufferedReader(_Rejoined(stream.read(4), stream))


class _Rejoined(io.RawIOBase):
    """The first bytes of a stream, read before, and then the rest."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self.head, self.rest = head, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        if not self.head:
            return self.rest.readinto1(buffer)
        count = min(len(buffer), len(self.head))
        buffer[:count], self.head = self.head[:count], self.head[count:]
        return count
