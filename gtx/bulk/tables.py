"""Tables cut into shards, the output folder, and a journal of the rows that a worker is processing.

A shard is a number of rows of one file. Its output exists completely or not at all. The output folder records what it
was made from, and one process at a time writes to it.
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
from gtx.files import LOCK, check_same, locked, read_plain, write_text

# --- Tables in shards.

PLAIN = (".parquet", ".pq")
PACKED = (".csv", ".tsv", ".tab", ".smi", ".smiles", ".ism", ".sdf", ".sd")
"""File name extensions of tables; `.gz` may follow these."""


class Shard(NamedTuple):
    """A range of rows of a file.

    Attributes:
        file: its name within the library.
        stamp: size and modification time of the file, to detect changes.
        first: number of rows before the shard.
        rows: number of rows.
        last: True for the last shard of the file.
    """

    file: str
    stamp: str
    first: int
    rows: int
    last: bool

    @property
    def part(self) -> str:
        """Name of the output file; the names of a file's shards sort like its rows."""
        return f"{self.file}-{self.first:012d}.parquet"


class ShardResult(NamedTuple):
    """Counts of a processed shard.

    Attributes:
        rows, error_counts, warned: as in `gtx.data.RowLog`.
        kept: number of rows, or molecules, written.
        problem: the reason if the shard has no output, else None.
    """

    rows: int
    error_counts: dict[str, int]
    warned: int
    kept: int
    problem: str | None = None


@dataclass(frozen=True)
class Library:
    """Tables in a folder and its subfolders, sorted by name.

    Attributes:
        root: the folder.
        files: names of the tables, relative to it.
        left_out: names of other files.
        problems: messages about folders that cannot be read, and names of tables that are no files.
    """

    root: Path
    files: list[str]
    left_out: list[str]
    problems: list[str] = field(default_factory=list)

    @classmethod
    def at(cls, source: str | os.PathLike[str]) -> Library:
        """Find the tables of a folder, or take a single file; hidden files are ignored.

        Raises:
            InputError: the path does not exist, or there is no table in it.
        """
        place = Path(source)
        if place.is_file():
            return cls(place.parent, [place.name], [])
        if not place.is_dir():
            raise InputError(f"no such file or folder: {place}")
        library = cls(place, [], [])
        for path in sorted(_walk(place, library.problems)):
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
        """Size in bytes and modification time of each file."""
        found = ((file, (self.root / file).stat()) for file in self.files)
        return {file: f"{stat.st_size} {stat.st_mtime_ns}" for file, stat in found}

    def shards(self, file: str, table: Table, size: int) -> Iterator[Shard]:
        """Cut a file into shards of `size` rows; a file of unknown length is read to count its rows."""
        stamp, first = self.stamps[file], 0
        counts = _counted(table.rows, size) if table.length is None else _divided(table.length, size)
        count = next(counts, 0)
        while count:
            following = next(counts, 0)
            yield Shard(file, stamp, first, count, not following)
            first, count = first + count, following


def _walk(place: Path, problems: list[str]) -> Iterator[Path]:
    """Yield the files of a folder and its subfolders, following links, each file once."""
    seen: set[str] = set()

    def new(folder: str, names: list[str]) -> list[str]:
        """Return the names that are not hidden and were not visited yet, and mark them as visited."""
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


def _counted(rows: Iterable[Row], size: int) -> Iterator[int]:
    rows = iter(rows)
    while count := sum(1 for _ in islice(rows, size)):
        yield count


class UnreadableFile(InputError):
    """Error: a file cannot be read to its end."""


class Reader:
    """Reader of shards; consecutive shards of a text file are read without starting again.

    Args:
        root: the folder of the library.
        opened: opens a table, given its path and the number of rows to skip.
    """

    def __init__(self, root: Path, opened: Callable[[Path, int], Table]) -> None:
        self._root, self._opened = root, opened
        self._file: str | None = None
        self._table: Table | None = None
        self._position = 0

    def table(self, shard: Shard) -> Table:
        """Return the rows of a shard, with their numbers in the file."""
        table = self._table
        try:
            if table is None or self._file != shard.file or self._position > shard.first or table.schema is not None:
                self._table, self._position = None, shard.first
                table = self._table = self._opened(self._root / shard.file, shard.first)
                self._file = shard.file
            for _ in self._rows(table, shard.first - self._position):
                pass
        except InputError as reason:
            raise UnreadableFile(reason) from None
        return replace(table, rows=self._rows(table, shard.rows), length=shard.rows)

    def _rows(self, table: Table, count: int) -> Iterator[Row]:
        try:
            for row in islice(table.rows, count):
                self._position += 1
                yield row
        except InputError as reason:
            raise UnreadableFile(reason) from None


# --- The output folder.

FACTS = "_gtx.json"


@contextmanager
def owned_folder(folder: Path, facts: dict[str, Any], words: str) -> Iterator[None]:
    """Lock the output folder, and remove what killed processes left in it.

    Args:
        folder: holds `_gtx.json`.
        facts: plain values that determine the output; written to `_gtx.json`, compared when a run resumes.
        words: names the content of a folder with other facts, such as "other predictions".

    Raises:
        InputError: another process has the folder, or it holds something else.
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


# --- The journal: the position of a worker within a shard, for the next worker if this one dies.
#
# A row that ends the process that reads it, by a fault of a library or for lack of memory, must not end the work on
# the others. A worker records rows before it touches them. If it dies, the next worker first tries each of these rows
# on its own, and records it; if that one dies too, the row at fault is found.

BEGIN = "begin"
MAX_DEATHS = 3  # of workers at the same rows, if no single row is the cause


class ShardFailed(InputError):
    """Error: several workers died of a shard, and no single row is the cause."""


class Journal:
    """Journal of a shard: a line for each range of rows, or single row, that was begun.

    Args:
        path: of the file; it exists while the shard is processed, and after the worker died.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.deaths: Counter[str] = Counter(_last_lines(path.read_text())) if path.exists() else Counter()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", buffering=1)  # line by line, so that the text survives the process
        self._note(BEGIN)
        if self.deaths[BEGIN] >= MAX_DEATHS:
            raise ShardFailed(f"{self.deaths[BEGIN]} workers ended before they read its first row")

    def close(self) -> None:
        """Delete the journal of a finished shard."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def tracked(self, table: Table, size: int, try_row: Callable[[Row], object]) -> Table:
        """Return the table with rows that are recorded as they are read.

        Args:
            table: its rows will be read in chunks of `size`.
            size: rows of a chunk.
            try_row: reads and predicts one row, to see whether the process survives.

        Raises:
            ShardFailed: several workers died of the same rows, and of none of them alone.
        """

        def rows() -> Iterator[Row]:
            for chunk in table.chunks(size):
                numbers = range(chunk[0].number, chunk[-1].number + 1)
                line = f"rows {numbers[0]} {numbers[-1]}"
                if self.deaths[line] >= MAX_DEATHS:
                    raise ShardFailed(f"{self.deaths[line]} workers died at rows {numbers[0]} to {numbers[-1]}")
                if any(_number(death) in numbers for death in self.deaths):
                    chunk = [self._try_row(row, try_row) for row in chunk]
                self._note(line)
                yield from chunk

        return replace(table, rows=rows())

    def _try_row(self, row: Row, try_row: Callable[[Row], object]) -> Row:
        if self.deaths[f"row {row.number}"]:
            return row._replace(error=row.error or DEADLY)
        self._note(f"row {row.number}")
        try_row(row)
        return row

    def _note(self, line: str) -> None:
        self._file.write(line + "\n")


def _last_lines(text: str) -> list[str]:
    """Return the last complete line of each attempt."""
    attempts = text.split(f"{BEGIN}\n")[1:]
    return [(attempt.rpartition("\n")[0].rpartition("\n")[2] or BEGIN) for attempt in attempts]


def _number(line: str) -> int | None:
    """Return the row that a line names, or the first of several."""
    words = line.split()
    return int(words[1]) if len(words) > 1 else None
