"""Where a worker is within a shard, on disk, for whoever takes up the shard when that worker has died.

A row that ends the process that reads it, by a fault in a library or by its hunger for memory, must not end the work on
all others. The rows in hand are noted before they are touched. Where a worker has died the next one first tries each of
those rows alone, noting it; where that one dies too, the row is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gtx.data.rows import Row, Table
from gtx.errors import InputError

BEGIN = "begin"
PATIENCE = 3  # deaths at one place, of which no single row is the cause
DEADLY = "has ended two worker processes that read it, and was not tried again"


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
