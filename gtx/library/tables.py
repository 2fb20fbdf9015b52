"""A folder of tables cut into shards, the folder that is made of them, and notes on the rows in hand.

A shard is so many rows of one file. What is made of it is there whole or not at all. The folder of what is made says
whose it is, and one process at a time writes there.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from gtx.data.columns import Row, Table
from gtx.data.featurising import DEADLY
from gtx.errors import InputError, printable
from gtx.files import write_text
from gtx.folders import LOCK, check_same, locked, read_plain

# --- Tables in shards.

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
        problems: what has the name of a table and is no file, or a folder that cannot be read, in words.
    """

    root: Path
    files: list[str]
    left_out: list[str]
    problems: list[str] = field(default_factory=list)

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
        library = cls(place, [], [])
        for path in sorted(_walked(place, library.problems)):
            name = path.relative_to(place).as_posix()
            if not _is_table(name):
                library.left_out.append(name)
            elif path.is_file():
                library.files.append(name)
            else:  # a pipe may never end
                library.problems.append(f"{name}: {'no regular file' if path.exists() else 'a link to nothing'}")
        if not library.files:
            others = library.left_out + library.problems
            found = f"; it has {printable(others[0])}" if others else ""
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


def _walked(place: Path, problems: list[str]) -> Iterator[Path]:
    """What is in a folder and in the folders in it, through links too, each folder and each file once."""
    seen: set[str] = set()

    def new(folder: str, names: list[str]) -> list[str]:
        """Those that are not hidden and not seen; their real paths are, from now on."""
        found = {
            os.path.realpath(os.path.join(folder, name)): name for name in sorted(names, reverse=True) if name[0] != "."
        }
        fresh = [name for real, name in found.items() if real not in seen]
        seen.update(found)
        return sorted(fresh)

    def unread(error: OSError) -> None:
        problems.append(f"{error.filename}: {error.strerror}")

    seen.add(os.path.realpath(place))
    for folder, folders, names in os.walk(place, onerror=unread, followlinks=True):
        folders[:] = new(folder, folders)
        yield from (Path(folder, name) for name in new(folder, names))


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


# --- The folder that parts go to.

FACTS = "_gtx.json"


@contextmanager
def held(folder: Path, facts: dict[str, Any], words: str) -> Iterator[None]:
    """Nobody else writes to the folder within; what a killed process has left there is removed.

    Args:
        folder: where `_gtx.json` is.
        facts: plain values that decide what is written, kept for who goes on.
        words: what is there if the facts differ, such as "other predictions".

    Raises:
        InputError: somebody else is there, or the folder holds something else.
    """
    file, facts = folder / FACTS, json.loads(json.dumps(facts))  # as they will be read
    with locked(folder):
        if not file.exists() and any(p.name != LOCK for p in folder.iterdir()):
            raise InputError(f"{folder} holds other files: give another --out, or empty it")
        if file.exists():
            check_same(read_plain(file), facts, f"{folder} holds {words}", "empty the folder")
        else:
            write_text(file, json.dumps(facts, indent=1))
        _sweep(folder)
        try:
            yield
        finally:
            _sweep(folder)


def check_outside(source: str | os.PathLike[str], out: Path, words: str) -> None:
    """Raise an `InputError` if a folder to be written lies in the folder that is read: `words` is what is written."""
    if Path(source).is_dir() and out.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(f"{out} is within {source}: {words} would be taken for molecules")


def check_unchanged(library: Library, shard: Shard, path: Path) -> None:
    """Raise an `InputError` if the part at `path` belongs to a file that has changed, or is no more."""
    if library.stamps.get(shard.file) != shard.stamp:
        what = "has changed since" if shard.file in library.stamps else "is not there any more, but"
        raise InputError(f"{library.root / shard.file} {what} {path} was written: remove its parts")


def _sweep(folder: Path) -> None:
    for pattern in (".*.part", ".*.journal"):
        for left in folder.rglob(pattern):
            left.unlink(missing_ok=True)


# --- Where a worker is within a shard, on disk, for whoever takes up the shard when that worker has died.
#
# A row that ends the process that reads it, by a fault in a library or by its hunger for memory, must not end the work
# on all others. The rows in hand are noted before they are touched. Where a worker has died the next one first tries
# each of those rows alone, noting it; where that one dies too, the row is known.

BEGIN = "begin"
PATIENCE = 3  # deaths at one place, of which no single row is the cause


class Hopeless(InputError):
    """A shard ends every worker, and no single row is the cause."""


class Journal:
    """Notes on a shard: a line for what is begun, the rows in hand or one row alone.

    Args:
        path: of the notes; they are there only while the shard is worked at, or when the worker has died.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.deaths = Counter(_last_lines(path.read_text())) if path.exists() else Counter()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1)  # whole lines: what is written outlives the process
        self._note(BEGIN)
        if self.deaths[BEGIN] >= PATIENCE:
            raise Hopeless(f"{self.deaths[BEGIN]} workers ended before they read its first row")

    def close(self) -> None:
        """The shard is done: forget it."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def watched(self, table: Table, size: int, alone: Callable[[Row], object]) -> Table:
        """The same table; what is in hand is noted.

        Args:
            table: its rows will be taken `size` at a time.
            size: rows that are in hand together.
            alone: reads and predicts one row, for nothing but to see what happens.

        Raises:
            Hopeless: worker after worker died of the same rows, and of none of them alone.
        """

        def rows() -> Iterator[Row]:
            for chunk in table.chunks(size):
                numbers = range(chunk[0].number, chunk[-1].number + 1)
                here = f"rows {numbers[0]} {numbers[-1]}"
                if self.deaths[here] >= PATIENCE:
                    raise Hopeless(f"{self.deaths[here]} workers ended at {here.replace('rows', 'rows from', 1)} on")
                if any(_number(death) in numbers for death in self.deaths):
                    chunk = [self._tried(row, alone) for row in chunk]
                self._note(here)
                yield from chunk

        return replace(table, rows=rows())

    def _tried(self, row: Row, alone: Callable[[Row], object]) -> Row:
        if self.deaths[f"row {row.number}"]:
            return row._replace(error=row.error or DEADLY)
        self._note(f"row {row.number}")
        alone(row)
        return row

    def _note(self, line: str) -> None:
        self._file.write(line + "\n")


def _last_lines(text: str) -> list[str]:
    """Of each attempt, the last whole line."""
    attempts = text.split(f"{BEGIN}\n")[1:]
    return [(attempt.rpartition("\n")[0].rpartition("\n")[2] or BEGIN) for attempt in attempts]


def _number(line: str) -> int | None:
    """The row that a line is about, or the first of several."""
    words = line.split()
    return int(words[1]) if len(words) > 1 else None
