"""A row of a table, and a table as a stream of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gtx.data import limits
from gtx.data.columns import column_index

if TYPE_CHECKING:
    import pyarrow as pa

    from gtx.molecules.featuriser import Text

    Record = tuple[pa.RecordBatch, int]


class RowFeatures(NamedTuple):
    """What one row says beside its molecule.

    Attributes:
        molecule: float32 `[F]`.
        atoms, bonds: float64 `[a]` by column, a number for each atom or bond as the text of the molecule has them;
            without the columns whose cell is blank.
    """

    molecule: np.ndarray
    atoms: dict[str, np.ndarray]
    bonds: dict[str, np.ndarray]


class Row(NamedTuple):
    """One row of a table.

    Attributes:
        number: from 1, the header not counted.
        cells: one string per column, as it stood in the file; surplus cells of a ragged row are joined to the last.
        text: the molecule, a SMILES or a mol block.
        coordinates: float32, flat, Å, if the table has them.
        error: why the row cannot be used, or None.
        record: of a Parquet file, the cells as they are there: some of its rows, and which of these it is.
        features: where a model takes more than the molecule, see `gtx.data.FeatureColumns`.
        others: further molecules of the row, see `gtx.data.with_components`.
        fault: what the error is counted under, see `gtx.data.Ledger.error`.
    """

    number: int
    cells: list[str]
    text: str
    coordinates: np.ndarray | None = None
    error: str | None = None
    record: Record | None = None
    features: RowFeatures | None = None
    others: tuple[str, ...] = ()
    fault: str = "with a broken row"

    @property
    def weight(self) -> int:
        """About how many bytes it takes."""
        return sum(map(len, self.cells)) + 50 * len(self.cells) + len(self.text)

    @property
    def readable(self) -> Text:
        """The text to featurise, or one for each of several components; empty for a row that is broken."""
        if self.others:
            return ("",) * (1 + len(self.others)) if self.error else (self.text, *self.others)
        return "" if self.error else self.text

    @property
    def shown(self) -> str | None:
        """The molecule as a message shows it: not a whole mol block."""
        return None if "\nM  END" in self.text else self.text

    def place(self, column: str) -> tuple[str | None, str | None]:
        """The column of the molecule and its text, for a message; neither where there are several molecules, of which
        the message names the one at fault."""
        return (None, None) if self.others else (column, self.shown)


@dataclass(frozen=True)
class Table:
    """A table open for reading; like a file, it is read once, from the front.

    Attributes:
        columns: their names, in order, repeated names included.
        smiles_column: the one that holds the molecules (for an SDF, the one that shows them).
        rows: all rows, one by one.
        length: how many rows there are, where that is known without reading them.
        schema: of a Parquet file, the types of the columns.
    """

    columns: list[str]
    smiles_column: str
    rows: Iterator[Row]
    length: int | None = None
    schema: pa.Schema | None = None

    def chunks(self, size: int) -> Iterator[list[Row]]:
        """Lists of `size` rows; the last may be shorter, and so may those of rows of which few fill the memory."""
        chunk, weight = [], 0
        for row in self.rows:
            chunk.append(row)
            weight += row.weight
            if len(chunk) == size or weight > limits.HEAVIEST:
                yield chunk
                chunk, weight = [], 0
        if chunk:
            yield chunk

    def index(self, column: str) -> int:
        """The position of a column; `InputError` if it is missing or there are several of that name."""
        return column_index(self.columns, column)


def passed_over(rows: Iterator[Row], first: int) -> Iterator[Row]:
    """The rows that have `first` rows or more before them in their file."""
    return (row for row in rows if row.number > first) if first else rows


def damage(text: str) -> str | None:
    """What keeps a text from being read at all: RDKit would stop at a NUL and take what stands before it."""
    if "\0" in text:
        return "holds a NUL byte"
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        return "is not UTF-8 text; save the table as UTF-8"
    return None
