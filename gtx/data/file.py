"""A file that was read whole: its rows, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gtx.data.columns import Row, column_index
from gtx.data.ledger import Ledger
from gtx.errors import InputError


@dataclass(frozen=True)
class File:
    """File that was read: its rows are `start` to `start + len(rows)` of all rows.

    Where a row has several molecules, `components` names their columns, of which `smiles_column` is the first.
    """

    source: str
    columns: list[str]
    smiles_column: str
    rows: list[Row]
    ledger: Ledger
    start: int
    components: tuple[str, ...] = ()

    def cells(self, column: str) -> list[str]:
        """Return the cells of a column, but for rows that are broken.

        Raises:
            InputError: there is no such column, or several.
        """
        with named(self):
            place = column_index(self.columns, column)
        return [row.cells[place] for row in self.rows if not row.error]


@contextmanager
def named(file: File) -> Iterator[None]:
    """Add the name of the file to any `InputError` raised within."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file.source}: {error}") from None
