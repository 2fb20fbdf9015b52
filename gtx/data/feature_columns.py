"""What a table knows of a row beside its molecule, such as a temperature, as further inputs of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gtx.data.columns import column_index
from gtx.data.magnitude import LARGEST
from gtx.data.rows import Row, Table
from gtx.data.targets import parse_number
from gtx.errors import InputError, printable


@dataclass(frozen=True)
class FeatureColumns:
    """Columns of numbers that join the descriptors of the molecule: scaled on the training rows, seen at the readout.

    Attributes:
        names: of the columns; prediction needs all of them.
        blanks: a cell may be blank. It then counts as the mean of the training rows, and a second number of each
            column, 1 where it is blank and 0 elsewhere, says so. Otherwise a blank is an error of its row.

    Raises:
        InputError: a name is there twice.
    """

    names: tuple[str, ...]
    blanks: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if twice := [name for name in self.names if self.names.count(name) > 1]:
            raise InputError(f"feature column {twice[0]!r} is given twice")

    @property
    def width(self) -> int:
        """F, how many numbers a row has."""
        return len(self.names) * (1 + self.blanks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"names": list(self.names), "blanks": self.blanks}

    def of_table(self, table: Table) -> Table:
        """The same table, its rows with `features`, float32 `[F]`; a cell that cannot be used is its row's error.

        Raises:
            InputError: the table lacks a column, or has several of that name.
        """
        places = [self._place(table.columns, name) for name in self.names]

        def rows() -> Iterator[Row]:
            for row in table.rows:
                if row.error:
                    yield row
                    continue
                numbers = [parse_number(row.cells[place]) for place in places]
                wrong = self._wrong(numbers)
                if wrong is None:
                    yield row._replace(features=self._features(np.array(numbers)))
                else:
                    name, cell = printable(self.names[wrong]), printable(row.cells[places[wrong]])
                    yield row._replace(error=f'column "{name}", value "{cell}": {self._expected}')

        return replace(table, rows=rows())

    def of_columns(self, given: Mapping[str, Sequence[Any]], count: int) -> np.ndarray:
        """Features of molecules that are no rows of a table, float32 `[n, F]`.

        Args:
            given: columns by name, such as a pandas table; others may be there.
            count: n.

        Raises:
            InputError: a column is missing, of another length, or holds what cannot be used.
        """
        columns = []
        for name in self.names:
            if name not in given:
                raise InputError(f"this model needs the feature {name!r}: give a table with a column of that name")
            column = [_number(value) for value in np.atleast_1d(np.asarray(given[name], dtype=object))]
            if len(column) != count:
                raise InputError(f"feature {name!r}: expected {count} values, one for each molecule, got {len(column)}")
            columns.append(column)
        numbers = np.array(columns, np.float64).T.reshape(count, len(self.names))
        for i, row in enumerate(numbers):
            if (wrong := self._wrong(row)) is not None:
                value = np.atleast_1d(np.asarray(given[self.names[wrong]], dtype=object))[i]
                said = f"feature {self.names[wrong]!r} of number {i}, counted from 0, {printable(repr(value))}"
                raise InputError(f"{said}: {self._expected}")
        return self._features(numbers)

    @property
    def _expected(self) -> str:
        return f"expected a number of at most {LARGEST:g}" + (" or a blank" if self.blanks else ", not a blank")

    def _place(self, columns: Sequence[str], name: str) -> int:
        try:
            return column_index(columns, name)
        except InputError as error:
            raise InputError(f"feature column {name!r}: {error}") from None

    def _wrong(self, numbers: Sequence[float]) -> int | None:
        """Which column of a row cannot be used; None if all can."""
        fine = (abs(number) <= LARGEST or (self.blanks and np.isnan(number)) for number in numbers)
        return next((i for i, one in enumerate(fine) if not one), None)

    def _features(self, numbers: np.ndarray) -> np.ndarray:
        """Of numbers `[..., C]` that can be used."""
        parts = [numbers, np.isnan(numbers)] if self.blanks else [numbers]
        return np.concatenate(parts, axis=-1).astype(np.float32)


def _number(value: Any) -> float:
    return np.nan if value is None else parse_number(str(value))
