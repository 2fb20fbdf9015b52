"""Rows of a table: their columns, the limits of their size, and the row log, in which no row vanishes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.molecules import MoleculeError
from gtx.molecules.reactions import read_sides
from gtx.molecules.reading import is_blank

if TYPE_CHECKING:
    import pyarrow as pa

    from gtx.molecules.perception import Text

    Record = tuple[pa.RecordBatch, int]  # a batch of rows of a Parquet file, and the index of a row in it


# --- Limits on the size of one row, so that no file fills the memory, however small it is on disk.


@dataclass
class Limits:
    """Limits of tables; to raise one, set e.g. `gtx.data.rows.LIMITS.longest_row = 2**26` before a table is opened.

    Attributes:
        longest_row: characters of a line, of a record quoted over several lines, of the cells of a Parquet row.
        longest_record: lines that one quoted cell may span; beyond, its quote counts as never closed.
        most_columns: columns of a table.
        heaviest: bytes, about, of rows that are in hand together.
    """

    longest_row: int = 2**23
    longest_record: int = 10_000
    most_columns: int = 100_000
    heaviest: int = 2**25


LIMITS = Limits()


def too_long() -> str:
    """Describe the error of a row above the limit."""
    return f"has more than {LIMITS.longest_row:,} characters; its cells are left out"


def check_number_of_columns(count: int, name: str) -> None:
    """Raise an `InputError` for a table with too many columns."""
    if count > LIMITS.most_columns:
        raise InputError(f"{name}: {count:,} columns or more came; the limit is {LIMITS.most_columns:,}")


# --- Finding a column by name.

FIRST_ROWS = 20  # by whose cells the column of molecules is detected if no name decides
_LONGEST = 1000  # characters of a cell that is parsed for it


class MoleculeColumn(NamedTuple):
    """Rule that finds the column of molecules by name: the requested name, or else the usual name."""

    requested: str | None = None
    usual: str | None = None

    @property
    def names(self) -> list[str]:
        """Names that the column of molecules may have, in lower case."""
        return [name.strip().lower() for name in (self.requested, self.usual, "smiles") if name]

    def candidates(self, columns: Sequence[str], parts: bool = True) -> list[list[int]]:
        """Return the positions of the columns that each rule for the name matches, without rules that match none.

        The rules are, in this order: the requested name, the usual name, "smiles" in any case, and, with `parts`, any
        name that contains "smiles".
        """
        bare = [column.strip() for column in columns]
        rules: list[Callable[[str], bool]] = [
            lambda name: self.requested is not None and name == self.requested.strip(),
            lambda name: self.usual is not None and name == self.usual.strip(),
            lambda name: name.lower() == "smiles",
            lambda name: parts and "smiles" in name.lower(),
        ]
        every = ([i for i, name in enumerate(bare) if rule(name)] for rule in rules)
        return list(filter(None, every))

    def find(self, columns: Sequence[str], parts: bool = True) -> list[int]:
        """Return the first of the `candidates`; no position if no name is suitable."""
        return next(iter(self.candidates(columns, parts)), [])

    def choose(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
        """Choose the column of molecules by names and first rows: its position, or several, or none.

        The first `candidates` count of which a cell is a molecule, so a column `smiles_id` of numbers is none of them;
        or those blank in the first rows, as far as one can see. Without such candidates, the columns whose cells are
        molecules count, and then the names alone.
        """
        cells = list(zip(*rows, strict=True)) or [()] * len(columns)
        named = self.candidates(columns)
        for group in named:
            if likely := [i for i in group if any(map(is_molecule, cells[i]))]:
                return likely
            if columns[group[0]].strip().lower() in self.names and all(map(is_blank, cells[group[0]])):
                return group
        return molecule_columns(rows) or next(iter(named), [])


def find_column(columns: Sequence[str], name: str) -> int:
    """Return the position of the column with a name, spaces around it ignored; `InputError` unless there is one."""
    places = [i for i, column in enumerate(columns) if column == name]
    places = places or [i for i, column in enumerate(columns) if column.strip() == name.strip()]
    if not places:
        several = [part.strip() for part in name.split(",")]
        words = " ".join(repr(part) if " " in part else part for part in several)
        hint = f"; spaces separate names: {words};" if set(several) <= {*columns} else did_you_mean(name, columns)
        raise InputError(f"there is no column {name!r}{hint or ';'} the columns are {listed(columns)}")
    if len(places) > 1:
        raise InputError(f"{len(places)} columns are called {name!r}; the columns are {listed(columns)}")
    return places[0]


def notes_on_names(columns: Sequence[str], smiles: int) -> tuple[str, ...]:
    """Say of each name that several columns have whether one is read; `smiles` is the position of the molecules."""
    several = [(name, count) for name, count in Counter(columns).items() if count > 1 and name.strip()]
    read = f"the molecules are those of column {smiles + 1} of {len(columns)}"
    which = {name: read if name == columns[smiles] else "none is read" for name, _ in several}
    return tuple(f"column {printable(repr(name))}: {count} are called so, and {which[name]}" for name, count in several)


def find_columns(columns: Sequence[str], names: Sequence[str]) -> dict[int, int]:
    """Return the positions of the columns that a table has once, by the index of their name; see `find_column`."""
    places: dict[int, int] = {}
    for i, name in enumerate(names):
        with suppress(InputError):
            places[i] = find_column(columns, name)
    return places


def smiles_index(
    columns: Sequence[str],
    wanted: MoleculeColumn,
    first_rows: Callable[[], Sequence[Sequence[str]]],
    remedy: str = "say which with `smiles_column`",
) -> int:
    """Return the position of the column of molecules, which has a suitable name, or is the only column whose cells can
    be read as molecules; see `MoleculeColumn.choose`. The first rows are asked for only if no name is requested.
    """
    if wanted.requested is not None:
        return find_column(columns, wanted.requested)
    places = wanted.choose(columns, first_rows())
    if len(places) != 1:
        why = "several columns are called so"
        if len({columns[i].strip() for i in places}) == 1:
            remedy = "rename all of them but one"
        if not any(set(places) <= set(group) for group in wanted.candidates(columns)):
            number = "several columns" if places else "no column"
            why = f"there is no column called 'smiles', and {number} of which the first rows can be read as molecules"
        raise InputError(f"which column holds the SMILES? {why}: {remedy}; the columns are {listed(columns)}")
    name = columns[places[0]].strip()
    if name.lower() not in wanted.names and is_molecule(name):  # no name, but the first molecule
        advice = "put a line with names above it: smiles,y"
        raise InputError(f"the header has the molecule {printable(name)!r}: {advice}; if it is a name, {remedy}")
    return places[0]


def molecule_columns(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the positions of the columns of whose filled cells at least half can be read as molecules."""
    filled = ([cell for cell in cells if not is_blank(cell)] for cells in zip(*rows, strict=True))
    return [i for i, cells in enumerate(filled) if cells and 2 * sum(map(is_molecule, cells)) >= len(cells)]


def is_molecule(text: str) -> bool:
    """Return whether a text can be read as a SMILES or reaction SMILES, or is a mol block; long ones are not tried."""
    try:
        return "M  END" in text or (len(text) <= _LONGEST and bool(read_sides(text)))
    except MoleculeError:
        return False


def listed(columns: Sequence[str], most: int = 40) -> str:
    """Join the names of columns for a message."""
    names = ", ".join(f"'{printable(column)}'" for column in columns[:most])
    return names + (f" and {len(columns) - most} more" if len(columns) > most else "")


# --- A row of a table, and a table as a stream of rows.


class RowFeatures(NamedTuple):
    """Extra features of one row, which the model reads in addition to the molecule.

    Attributes:
        molecule: features of the molecule, float32 `[F]`.
        lists: features of atoms and bonds by column, float64 `[a]`, with a number for each atom or bond in the order of
            the text of the molecule. Columns with a blank cell are left out.
    """

    molecule: np.ndarray
    lists: dict[str, np.ndarray]


class Row(NamedTuple):
    """One row of a table: the cells, the text of the molecule, and an error if the row cannot be used.

    Attributes:
        number: number of the row, from 1, without the header.
        cells: one string per column, as written in the file. If a row has too many cells, the surplus cells are joined
            to the last.
        text: text of the molecule, a SMILES or a mol block.
        coordinates: coordinates of the atoms in Å, float32, flat, if the table has coordinates.
        error: reason why the row cannot be used, or None.
        record: typed cells of a Parquet file: a batch of its rows, and the index in it.
        features: extra features of the row, see `gtx.data.FeatureColumns`.
        others: texts of further molecules (components) of the row, see `gtx.data.rows.add_component_columns`.
        category: category of the error, see `gtx.data.RowLog.error`.
        warnings: warnings about cells of the row.
    """

    number: int
    cells: list[str]
    text: str
    coordinates: np.ndarray | None = None
    error: str | None = None
    record: Record | None = None
    features: RowFeatures | None = None
    others: tuple[str, ...] = ()
    category: str = "with a broken row"
    warnings: tuple[str, ...] = ()

    @classmethod
    def of_text(cls, number: int, columns: Sequence[str], cells: list[str], text: str, error: str | None = None) -> Row:
        """Make a row of a text file; bytes that are not UTF-8, except in the molecule, are read as Windows-1252."""
        if "".join(cells).isascii():
            return cls(number, cells, text, error=error or damage(text))
        decoded = list(map(decode_stray_bytes, cells))
        pairs = zip(columns, cells, decoded, strict=True)
        stray = [name for name, before, after in pairs if before != after and before != text]
        warnings = tuple(f'column "{printable(name)}" is not UTF-8 text: it is {STRAY}' for name in stray)
        return cls(number, decoded, text, error=error or damage(text), warnings=warnings)

    @property
    def weight(self) -> int:
        """Approximate size in memory, in bytes."""
        return sum(map(len, self.cells)) + 50 * len(self.cells) + len(self.text)

    @property
    def readable(self) -> Text:
        """Text of the molecule to featurise, or a tuple of texts for several components; empty after an error."""
        if self.others:
            return ("",) * (1 + len(self.others)) if self.error else (self.text, *self.others)
        return "" if self.error else self.text

    def locate(self, column: str) -> tuple[str | None, str | None]:
        """Return the column and the text of the molecule for a message, without a mol block; several components name it
        themselves.
        """
        return (None, None) if self.others else (column, None if "\nM  END" in self.text else self.text)


@dataclass(frozen=True)
class Table:
    """Table that is open for reading; like a file, it can be read once, from start to end.

    Attributes:
        columns: names in order, repeated names included.
        smiles_column: name of the column of molecules (for an SDF, of the column with the SMILES of the molecules).
        rows: all rows, one by one.
        length: number of rows, if the number is known without reading the rows.
        schema: types of the columns of a Parquet file.
        notes: notes on names that several columns have.
    """

    columns: list[str]
    smiles_column: str
    rows: Iterator[Row]
    length: int | None = None
    schema: pa.Schema | None = None
    notes: tuple[str, ...] = ()

    def chunks(self, size: int, heaviest: int | None = None) -> Iterator[list[Row]]:
        """Yield lists of `size` rows; the last list, and those of large rows, by default of more than `LIMITS.heaviest`
        bytes, are shorter.
        """
        chunk, weight = [], 0
        for row in self.rows:
            chunk.append(row)
            weight += row.weight
            if len(chunk) == size or weight > (heaviest or LIMITS.heaviest):
                yield chunk
                chunk, weight = [], 0
        if chunk:
            yield chunk

    def index(self, column: str) -> int:
        """Return the position of a column; raise `InputError` if no column or several columns have the name."""
        return find_column(self.columns, column)


# --- Rows of several texts: the sides of a reaction, components such as solute and solvent.

ARROW = ">>"
"""Arrow of a reaction, between the texts of its sides or the names of their columns."""


def first_side(name: str | None) -> str | None:
    """Return the column of reactants from the name `reactants>>products`; another name as it is."""
    return name and name.partition(ARROW)[0]


def join_sides(table: Table, requested: str | None, usual: str | None) -> Table:
    """Return a table whose texts are those of two columns, the sides of reactions, `reactants>>products` by name.

    The usual name, that of training, counts if none is requested and the table has both columns.
    """
    names = (requested or usual or "").split(ARROW)
    if len(names) < 2 or not (requested or set(names) <= set(table.columns)):
        return table
    places = [table.index(name) for name in names]
    rows = (row._replace(text=ARROW.join(row.cells[place] for place in places)) for row in table.rows)
    return replace(table, smiles_column=ARROW.join(names), rows=rows)


def add_component_columns(table: Table, columns: Sequence[str]) -> Table:
    """Add the molecules of further columns to each row, as components such as solute and solvent."""
    places = [table.index(column) for column in columns]

    def rows() -> Iterator[Row]:
        for row in table.rows:
            others = tuple(row.cells[place] for place in places)
            named = zip(columns, map(damage, others), strict=True)
            reason = next((f'column "{printable(name)}" {why}' for name, why in named if why), None)
            yield row._replace(others=others, error=row.error or reason)

    return replace(table, rows=rows())


# --- Bytes that are not UTF-8, and other damage.

STRAY = "read as Windows-1252, of which Latin-1 is a part, and written as UTF-8"
_STRAY = re.compile("[\udc80-\udcff]+")


def decode_stray_bytes(text: str) -> str:
    """Read the bytes that are not UTF-8, which Python keeps as surrogates, as Windows-1252, or else as U+FFFD."""
    return _STRAY.sub(lambda match: match[0].encode("utf-8", "surrogateescape").decode("cp1252", "replace"), text)


def damage(text: str) -> str | None:
    """Describe damage that makes a text unreadable, or return None; RDKit would silently stop at a NUL."""
    if "\0" in text:
        return "holds a NUL byte"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "is not UTF-8 text; save the table as UTF-8"
    return None


# --- The row log: every row of a table has an outcome.


class RowLog:
    """Record of which rows of a table were read and which failed, with their errors and warnings.

    Counts are permanent; messages are stored until `pop` removes them, so that streams of any length need bounded
    memory.

    Args:
        on_error: "report" records an error and continues; "fail" raises `InputError` at the first error.

    Attributes:
        rows: number of rows entered.
        error_counts: number of rows with an error, by the category of the first error of the row.
        first_errors: the first message of each of these categories.
        warned: number of rows with a warning.
        left_out: messages of rows that can be used and are in no part of the split, by reason.
        errors, warnings: messages by row number, for rows that were not yet removed by `pop`.
    """

    def __init__(self, on_error: Literal["report", "fail"] = "report") -> None:
        if on_error not in ("report", "fail"):
            raise InputError(f"on_error must be 'report' or 'fail', not {on_error!r}")
        self.on_error = on_error
        self.rows: int = 0
        self.error_counts: Counter[str] = Counter()
        self.first_errors: dict[str, str] = {}
        self.warned: int = 0
        self.left_out: dict[str, list[str]] = {}
        self.errors: dict[int, str] = {}
        self.warnings: dict[int, list[str]] = {}

    def enter(self, rows: Iterable[Row]) -> None:
        """Count rows that were read, and record the errors of rows that could not be read."""
        for row in rows:
            self.rows += 1
            if row.error:
                self.error(row.number, None, None, row.error, row.category)
            for warning in row.warnings:
                self.warn(row.number, None, None, warning)

    def add(self, row: Row, column: str, error: str | None, warnings: Sequence[str]) -> None:
        """Record the error and the warnings of the molecule of a row that was entered."""
        place = row.locate(column)
        if error and not row.error:
            blank = any(map(is_blank, (row.text, *row.others)))
            self.error(row.number, *place, error, "without a molecule" if blank else "with an unusable molecule")
        for warning in warnings:
            self.warn(row.number, *place, warning)

    def error(
        self, row: int, column: str | None, value: str | None, reason: str, category: str = "with an unusable molecule"
    ) -> None:
        """Record that a row cannot be used; raise `InputError` if `on_error` is "fail".

        Args:
            row: number of the row, from 1, without the header.
            column, value: name of the column and text of the cell with the error, if there is one such cell.
            reason: description of the error, in one line.
            category: category of the error in the summary, worded to follow a number, such as "with an unusable
                molecule".
        """
        message = format_row_message(row, column, value, reason)
        if self.on_error == "fail":
            raise InputError(message)
        if row in self.errors:
            self.errors[row] += f"; {message}"
        else:
            self.errors[row] = message
            self.error_counts[category] += 1
            self.first_errors.setdefault(category, message)

    def warn(self, row: int, column: str | None, value: str | None, reason: str) -> None:
        """Record a warning about a row that can be used."""
        self.warned += row not in self.warnings
        self.warnings.setdefault(row, []).append(format_row_message(row, column, value, reason))

    def leave_out(self, row: int, column: str | None, value: str, reason: str, hint: str = "") -> None:
        """Record a row that can be used, but is in no part of the split; the row gets a warning too.

        Args:
            row, column, value: as in `error`.
            reason: description of what is wrong with the value, unless it is blank.
            hint: further words about the value, after the reason.
        """
        reason = reason if value.strip() else "is blank"
        self.left_out.setdefault(reason, []).append(format_row_message(row, column, value, reason + hint))
        self.warn(row, column, value, f"{reason}; the row is in no part of the split{hint}")

    def pop(self, row: int) -> tuple[str | None, list[str]]:
        """Remove and return the error (or None) and the warnings of a row; the counts stay."""
        return self.errors.pop(row, None), self.warnings.pop(row, [])

    @property
    def num_errors(self) -> int:
        """Number of rows with an error."""
        return self.error_counts.total()

    def summary(self) -> str:
        """Summarise: `12,050 rows: 12,000 read, 50 errors (48 with an unusable molecule, ...), 7 with warnings`."""
        line = f"{plural(self.rows, 'row')}: {self.rows - self.num_errors:,} read, {plural(self.num_errors, 'error')}"
        if self.error_counts:
            line += f" ({', '.join(f'{n:,} {category}' for category, n in self.error_counts.most_common())})"
        return line + (f", {self.warned:,} with warnings" if self.warned else "")


def format_row_message(row: int, column: str | None, value: str | None, reason: str) -> str:
    """Format a message about a cell on one line: `row 17, column "smiles", value "C1CC": reason`."""
    place = f"row {row}"
    if column is not None:
        place += f', column "{printable(column)}"'
    if value is not None:
        place += f', value "{printable(value)}"'
    return f"{place}: {printable(reason, None)}"


def plural(number: int, noun: str) -> str:
    """Write a number and its noun: `1 row`, `1,128 rows`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def in_unit(unit: str) -> str:
    """Write ` (unit)`, or nothing without one."""
    return f" ({unit})" if unit else ""


def percent(share: float) -> str:
    """Write a share in whole percent: 0% is none, and 100% is all; otherwise `<1%` or `>99%`."""
    if 0 < share <= 0.005:  # the half would be rounded to an even 0
        return "<1%"
    return ">99%" if 0.995 <= share < 1 else f"{share:.0%}"


# --- A file that was read to its end: its rows, and what is wrong with them.


@dataclass(frozen=True)
class InputFile:
    """Input table that was read; its rows have the numbers `start` to `start + len(rows)` among the rows of all files.

    Where a row has several molecules, `components` names their columns, of which `smiles_column` is the first.
    """

    source: str
    columns: list[str]
    smiles_column: str
    rows: list[Row]
    row_log: RowLog
    start: int
    components: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def cells(self, column: str) -> list[str]:
        """Return the cells of a column, but for rows that are broken; `InputError` unless there is one such column."""
        with named(self.source):
            place = find_column(self.columns, column)
        return [row.cells[place] for row in self.rows if not row.error]


@contextmanager
def named(source: str) -> Iterator[None]:
    """Add the name of a file to any `InputError` raised within."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
