"""Records as lines of a CSV file: plain values as they are, nested ones as JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

DETAILS = "details"
"""The last column of every sheet: whatever of a record has no column of its own."""
_NONE = object()

Record = dict[str, Any]


class Sheet(NamedTuple):
    """The columns of a CSV file of records.

    Attributes:
        text: columns of plain text; an empty cell is no value.
        values: columns of all else (numbers, true and false, lists), as JSON; `a.b` is `record["a"]["b"]`.
    """

    text: tuple[str, ...]
    values: tuple[str, ...]

    def read(self, file: Path) -> list[Record]:
        """The records of a file, in its order; none if there is no file."""
        if not file.exists():
            return []
        with file.open(newline="") as opened:
            return [self._record(line) for line in csv.DictReader(opened)]

    def write(self, file: Path, records: Iterable[Mapping[str, Any]]) -> None:
        """Replace a file as a whole: whoever reads it meanwhile sees the old one, whoever is killed leaves it."""
        file.parent.mkdir(parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        with partial.open("w", newline="") as opened:
            writer = csv.DictWriter(opened, [*self.text, *self.values, DETAILS], lineterminator="\n")
            writer.writeheader()
            writer.writerows(self._line(record) for record in records)
        partial.replace(file)

    def _line(self, record: Mapping[str, Any]) -> dict[str, str]:
        line, rest = {}, _copy(record)
        for column in (*self.text, *self.values):
            if (value := _take(rest, column.split("."))) is not _NONE:
                line[column] = _json(value) if column in self.values else value
        return line | ({DETAILS: _json(rest)} if rest else {})

    def _record(self, line: Mapping[str, str]) -> Record:
        record = json.loads(line[DETAILS] or "{}")
        for column in (*self.text, *self.values):
            if cell := line[column]:
                *above, last = column.split(".")
                at = record
                for name in above:
                    at = at.setdefault(name, {})
                at[last] = json.loads(cell) if column in self.values else cell
        return record


def _json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def _copy(record: Mapping[str, Any]) -> Record:
    return {name: _copy(value) if isinstance(value, Mapping) else value for name, value in record.items()}


def _take(record: Record, path: list[str]) -> Any:
    """The value under a path, taken out of the record; what it leaves empty goes with it."""
    name, *below = path
    if not below:
        return record.pop(name, _NONE)
    if not isinstance(record.get(name), dict):
        return _NONE
    value = _take(record[name], below)
    if not record[name]:
        del record[name]
    return value
