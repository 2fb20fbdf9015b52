"""Tables joined by molecule: one row for each molecule, with the targets of all tables, blank where one lacks it."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gtx.data.columns import Row, Table, find_column, listed
from gtx.data.featurising import featurise
from gtx.data.row_log import RowLog, plural
from gtx.data.tables import open_table
from gtx.data.targets import parse_number
from gtx.errors import InputError, printable
from gtx.molecules import Featuriser

MOLECULE, SPLIT = "smiles", "split"
"""Columns of the joined table beside those of the tables."""


class Outcome(NamedTuple):
    """Outcome of one row of one table.

    Attributes:
        source: name of the table.
        row: number of the row, from 1, the header not counted.
        text: text of the molecule, as in the table.
        joined: numbers, from 1, of the rows of the joined table that hold the values of the row; none for a row with an
            error.
        error: reason why the row was left out; None if the row was joined.
        warnings: warnings about the row, such as another value for the same molecule.
    """

    source: str
    row: int
    text: str
    joined: list[int]
    error: str | None
    warnings: list[str]


@dataclass
class JoinedTable:
    """Table made by joining several tables by molecule.

    Attributes:
        columns: names of the columns: `smiles`, the columns of the tables, and `split` if a split was requested.
        rows: cells of each row. A molecule has one row, and further rows if a column has several values for the
            molecule.
        outcomes: an entry for each row of each table, in order.
        row_logs: row log of each table, by its name.
        left_out: columns without numbers that were not requested, by the name of the table.
        shared: number of molecules that occur in 1, 2, ... tables, by the number of tables.
        conflicts: number of molecules with several values of a column, by column.
    """

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    row_logs: dict[str, RowLog] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    shared: Counter[int] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)

    def describe(self) -> Iterator[str]:
        """Yield a line of text for each table, and lines on the molecules that tables share."""
        for source, row_log in self.row_logs.items():
            yield f"{source}: {row_log.summary()}"
            if left := self.left_out[source]:
                yield f"{source}: left out, as most of their cells are no numbers: {listed(left)}"
        shared = ", ".join(f"{count} in {plural(n, 'table')}" for n, count in sorted(self.shared.items()))
        yield f"joined: {plural(self.shared.total(), 'molecule')} ({shared}), {plural(len(self.rows), 'row')}"
        for column, count in self.conflicts.items():
            yield f"{printable(column)}: {plural(count, 'molecule')} with several values, each in a row of its own"


@dataclass
class _Source:
    """A table that was read: its rows, their canonical SMILES or None, and the places of its columns by new names."""

    name: str
    rows: list[Row]
    smiles: list[str | None]
    row_log: RowLog
    places: dict[str, int]
    left_out: list[str]
    split: int | None = None

    def value(self, row: int, column: str) -> str:
        """Return a cell; blank where the table lacks the column."""
        return self.rows[row].cells[self.places[column]] if column in self.places else ""


def join_tables(
    sources: Sequence[str | os.PathLike[str]],
    columns: Sequence[str] | None = None,
    smiles_column: str | None = None,
    split_column: str | None = None,
    by_file: bool = False,
    featuriser: Featuriser | None = None,
    workers: int | None = None,
) -> JoinedTable:
    """Join tables by molecule.

    Two rows have the same molecule if they have the same canonical SMILES. Cells are not changed, and no missing value
    is imputed. Columns of the same name are one target. Equal values of a molecule are joined to one value (numbers are
    compared as numbers). If a molecule has several values of a target, all values are kept: each value after the first
    gets an extra row, and a warning.

    Args:
        sources: tables, as for `open_table`.
        columns: columns to join; by default those of which at least half of the filled cells are numbers.
        smiles_column: name of the column of molecules in all tables; by default it is found in each.
        split_column: column of the first table with the part (train, val, test) of each molecule. The column is called
            `split` in the joined table, where molecules that are not in the first table have the part `train`.
        by_file: whether the name of each column starts with the name of its file, as in `esol_y`.
        featuriser: settings for reading molecules; by default those of `gtx train`.
        workers: processes that read molecules, see `gtx.data.featurise`.

    Raises:
        InputError: a table cannot be read or lacks a column, or two tables have the same name.
    """
    names = [os.fspath(source) for source in sources]
    if len(names) < 2:
        raise InputError(f"expected two tables or more to join, got {len(names)}")
    for name, count in Counter(map(stem, names) if by_file else names).items():
        if count > 1:
            raise InputError(f"expected tables with names of their own, got {name!r} {count} times")
    read, known = [], []
    for name in names:
        table = open_table(name, smiles_column)
        known += table.columns
        prefix = f"{stem(name)}_" if by_file else ""
        read.append(_read(name, table, columns, prefix, featuriser or Featuriser(descriptors=False), workers))
        if split_column and name == names[0]:
            read[0].split = find_column(table.columns, split_column)
            read[0].left_out = [column for column in read[0].left_out if column != split_column]
    for column in columns or ():
        find_column(list(dict.fromkeys(known)), column)
    targets = list(dict.fromkeys(column for source in read for column in source.places))
    own = [MOLECULE, SPLIT] if split_column else [MOLECULE]
    if clash := [column for column in targets if column in own]:
        raise InputError(f"the joined table has a column {clash[0]!r} of its own; join others")
    joined = JoinedTable([MOLECULE, *targets, *own[1:]])
    joined.row_logs = {source.name: source.row_log for source in read}
    joined.left_out = {source.name: source.left_out for source in read}
    _join(joined, read, targets)
    return joined


def stem(name: str) -> str:
    """Return the name of a file without folders and endings."""
    return Path(name).name.partition(".")[0]


def _read(
    name: str, table: Table, columns: Sequence[str] | None, prefix: str, featuriser: Featuriser, workers: int | None
) -> _Source:
    """Read the molecules of a table, and choose its columns."""
    rows = list(table.rows)
    done = featurise(featuriser, [row.readable for row in rows], workers=workers)
    row_log = RowLog()
    row_log.read(rows, table.smiles_column, done.errors, done.warnings)
    others = [column for column in table.columns if column != table.smiles_column]
    if columns is None:
        good = [row for row in rows if not row.error]
        chosen = [column for column in others if _has_numbers([row.cells[table.index(column)] for row in good])]
    else:
        chosen = [column for column in others if column in columns]
    places = {prefix + column: table.index(column) for column in chosen}
    left_out = [column for column in others if column not in chosen] if columns is None else []
    return _Source(name, rows, done.smiles, row_log, places, left_out)


def _has_numbers(cells: Sequence[str]) -> bool:
    """Return whether at least half of the filled cells, and at least one, are numbers, perhaps with `<` or `>`."""
    numbers = [parse_number(cell.strip().lstrip("<>=")) for cell in cells]
    filled = [number for number in numbers if not np.isnan(number)]
    return bool(filled) and 2 * int(np.isfinite(filled).sum()) >= len(filled)


def _join(joined: JoinedTable, read: Sequence[_Source], targets: Sequence[str]) -> None:
    """Fill the rows, the outcomes and the counts of a joined table."""
    members: dict[str, list[tuple[int, int]]] = defaultdict(list)  # table and row, by molecule
    for s, source in enumerate(read):
        for i, smiles in enumerate(source.smiles):
            if smiles:
                members[smiles].append((s, i))
    places: dict[tuple[int, int], set[int]] = defaultdict(set)  # rows of the joined table, from 1, by table and row
    for smiles, own in members.items():
        first = len(joined.rows) + 1
        cells = {column: _values(read, own, column) for column in targets}
        for member in own:
            numbers = {k for values in cells.values() for k, (_, holders) in enumerate(values) if member in holders}
            places[member] = {first + k for k in numbers or {0}}
        for column, values in cells.items():
            if len(values) > 1:
                joined.conflicts[column] += 1
                _warn(read, column, values)
        part = [_part(read[0], [i for s, i in own if s == 0])] if read[0].split is not None else []
        for k in range(max(1, *map(len, cells.values())) if cells else 1):
            values_of_row = [values[k][0] if k < len(values) else "" for values in cells.values()]
            joined.rows.append([smiles, *values_of_row, *part])
        joined.shared[len({s for s, _ in own})] += 1
    for s, source in enumerate(read):
        for i, row in enumerate(source.rows):
            error, warnings = source.row_log.pop(row.number)
            at = sorted(places.get((s, i), ()))
            joined.outcomes.append(Outcome(source.name, row.number, row.text, at, error, warnings))


def _values(
    read: Sequence[_Source], members: Sequence[tuple[int, int]], column: str
) -> list[tuple[str, list[tuple[int, int]]]]:
    """List the different values of a molecule in a column, each as first written, with the rows that have it."""
    found: dict[float | str, tuple[str, list[tuple[int, int]]]] = {}
    for s, i in members:
        cell = read[s].value(i, column)
        number = parse_number(cell)
        if not np.isnan(number):
            key = number if np.isfinite(number) else cell.strip()
            found.setdefault(key, (cell, []))[1].append((s, i))
    return list(found.values())


def _warn(read: Sequence[_Source], column: str, values: Sequence[tuple[str, list[tuple[int, int]]]]) -> None:
    """Warn of each row whose value differs from that of another row with the same molecule."""
    for k, (cell, holders) in enumerate(values):
        other, ((t, j), *_) = values[1 if k == 0 else 0]
        where = f"row {read[t].rows[j].number} of {read[t].name}"
        for s, i in holders:
            reason = f"{where}, of the same molecule, has {printable(other.strip())}; each has a row of its own"
            read[s].row_log.warn(read[s].rows[i].number, column, cell.strip(), reason)


def _part(source: _Source, rows: Sequence[int]) -> str:
    """Return the part of a molecule by the rows of the first table that have it; `train` if there are none."""
    if not rows or source.split is None:
        return "train"
    cells = [source.rows[i].cells[source.split] for i in rows]
    reason = f"row {source.rows[rows[0]].number}, of the same molecule, has {printable(cells[0])}, which is taken"
    for i, cell in zip(rows, cells, strict=True):
        if cell != cells[0]:
            source.row_log.warn(source.rows[i].number, SPLIT, cell, reason)
    return cells[0]
