"""The row log: every input row has an outcome, and nothing vanishes; and a file that was read, with its row log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from gtx.base.errors import InputError, printable
from gtx.data.columns import Row, find_column


class RowLog:
    """Record of which rows of a table were read and which failed, with their errors and warnings.

    Counts are permanent; messages are stored until `pop` removes them, so that streams of any length need bounded
    memory.

    Args:
        on_error: "report" records an error and continues; "fail" raises `InputError` at the first error.

    Attributes:
        rows: number of rows entered.
        error_counts: number of rows with an error, by the category of the first error of the row.
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

    def read(
        self, rows: Sequence[Row], column: str, errors: Sequence[str | None], warnings: Sequence[Sequence[str]]
    ) -> None:
        """Record rows with the errors and warnings of their molecules, as in `gtx.molecules.FeaturisedMolecules`."""
        self.enter(rows)
        for row, error, several in zip(rows, errors, warnings, strict=True):
            if error and not row.error:
                self.error(row.number, *row.locate(column), error)
            for warning in several:
                self.warn(row.number, *row.locate(column), warning)

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
        """Summarise: `12050 rows: 12000 read, 50 errors (48 with an unusable molecule, ...), 7 with warnings`."""
        line = f"{plural(self.rows, 'row')}: {self.rows - self.num_errors} read, {plural(self.num_errors, 'error')}"
        if self.error_counts:
            line += f" ({', '.join(f'{n} {category}' for category, n in self.error_counts.most_common())})"
        return line + (f", {self.warned} with warnings" if self.warned else "")


def format_row_message(row: int, column: str | None, value: str | None, reason: str) -> str:
    """Format a message about a cell on one line: `row 17, column "smiles", value "C1CC": reason`."""
    place = f"row {row}"
    if column is not None:
        place += f', column "{printable(column)}"'
    if value is not None:
        place += f', value "{printable(value)}"'
    return f"{place}: {printable(reason, None)}"


def plural(number: int, noun: str) -> str:
    """Write a number and its noun: `1 row`, `17 rows`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


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

    def cells(self, column: str) -> list[str]:
        """Return the cells of a column, but for rows that are broken; `InputError` unless there is one such column."""
        with named(self):
            place = find_column(self.columns, column)
        return [row.cells[place] for row in self.rows if not row.error]


@contextmanager
def named(file: InputFile) -> Iterator[None]:
    """Add the name of the file to any `InputError` raised within."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file.source}: {error}") from None
