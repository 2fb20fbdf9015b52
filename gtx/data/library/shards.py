"""A folder of tables, cut into shards: so many rows of one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from gtx.data.rows import Row, Table
from gtx.errors import InputError, printable

PLAIN = (".parquet", ".pq")
PACKED = (".csv", ".tsv", ".tab", ".smi", ".smiles", ".ism", ".sdf", ".sd")
"""Endings of the names of tables; after these, `.gz` may follow."""


class Shard(NamedTuple):
    """Some rows of a file.

    Attributes:
        file: its name within the library.
        stamp: size and time of the file, by which a change of it is known.
        first: how many rows of the file come before.
        rows: how many they are.
        last: whether the file ends with them.
    """

    file: str
    stamp: str
    first: int
    rows: int
    last: bool

    @property
    def part(self) -> str:
        """The name of what is made of them; the names of a file's parts sort as its rows do."""
        return f"{self.file}-{self.first:012d}.parquet"


class Done(NamedTuple):
    """What became of a shard.

    Attributes:
        rows, kinds, warned: as in `gtx.data.Ledger`.
        kept: how many rows, or molecules, were written.
        problem: why there is no part of it, in words; or None.
    """

    rows: int
    kinds: dict[str, int]
    warned: int
    kept: int
    problem: str | None = None


@dataclass(frozen=True)
class Library:
    """Tables in a folder and the folders in it, in the order of their names.

    Attributes:
        root: the folder.
        files: their names within it.
        left_out: names of other files.
    """

    root: Path
    files: list[str]
    left_out: list[str]

    @classmethod
    def at(cls, source: str | os.PathLike[str]) -> Library:
        """The library that a folder is, or a file alone; what is hidden, by a dot in front, is no part of it.

        Raises:
            InputError: there is no such thing, or no table in it.
        """
        place = Path(source)
        if place.is_file():
            return cls(place.parent, [place.name], [])
        if not place.is_dir():
            raise InputError(f"no such file or folder: {place}")
        paths = (Path(folder, name) for folder, _, names in os.walk(place, followlinks=True) for name in names)
        names = sorted(path.relative_to(place).as_posix() for path in paths)
        names = [name for name in names if not any(part.startswith(".") for part in name.split("/"))]
        library = cls(place, [n for n in names if _is_table(n)], [n for n in names if not _is_table(n)])
        if not library.files:
            found = f"; it has {printable(library.left_out[0])}" if library.left_out else ""
            raise InputError(f"there is no table in {place}: expected {', '.join(PLAIN + PACKED)} (.gz){found}")
        return library

    @cached_property
    def stamps(self) -> dict[str, str]:
        """Per file, its size in bytes and when it was last changed."""
        found = ((file, (self.root / file).stat()) for file in self.files)
        return {file: f"{stat.st_size} {stat.st_mtime_ns}" for file, stat in found}

    def shards(self, file: str, table: Table, size: int) -> Iterator[Shard]:
        """Shards of `size` rows of a file; where the file does not say how many it has, its rows are counted."""
        stamp, first = self.stamps[file], 0
        rows = _drawn(table.rows, size) if table.length is None else _divided(table.length, size)
        count = next(rows, 0)
        while count:
            following = next(rows, 0)
            yield Shard(file, stamp, first, count, not following)
            first, count = first + count, following


def _is_table(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(PLAIN) or lower.removesuffix(".gz").endswith(PACKED)


def _divided(length: int, size: int) -> Iterator[int]:
    return (min(size, length - first) for first in range(0, length, size))


def _drawn(rows: Iterable[Row], size: int) -> Iterator[int]:
    rows = iter(rows)
    while count := sum(1 for _ in islice(rows, size)):
        yield count


class Unreadable(InputError):
    """A file cannot be read, or not to its end."""


class Reader:
    """Opens shards; who goes on in a text reads on, and does not read it from the start again.

    Args:
        root: the folder of the library.
        opened: a table, of its path and of how many rows at its start are to be passed over.
    """

    def __init__(self, root: Path, opened: Callable[[Path, int], Table]) -> None:
        self._root, self._opened = root, opened
        self._file: str | None = None
        self._at = 0

    def table(self, shard: Shard) -> Table:
        """The rows of a shard, with the numbers that they have in the file."""
        try:
            goes_on = self._file == shard.file and self._at <= shard.first and self._open.schema is None
            if not goes_on:
                self._file, self._at = None, shard.first
                self._open = self._opened(self._root / shard.file, shard.first)
                self._file = shard.file
            for _ in self._rows(shard.first - self._at):
                pass
        except InputError as reason:
            raise Unreadable(reason) from None
        return replace(self._open, rows=self._rows(shard.rows), length=shard.rows)

    def _rows(self, count: int) -> Iterator[Row]:
        try:
            for row in islice(self._open.rows, count):
                self._at += 1
                yield row
        except InputError as reason:
            raise Unreadable(reason) from None
