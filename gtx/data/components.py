"""Rows of several molecules, such as a solute and a solvent, each in a column of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gtx.data.rows import Row, Table, damage
from gtx.errors import printable


def with_components(table: Table, columns: Sequence[str]) -> Table:
    """The same table, its rows with further molecules.

    Args:
        table: its own molecules are the first component.
        columns: of the other components.

    Raises:
        InputError: the table lacks a column, or has several of that name.
    """
    places = [table.index(column) for column in columns]

    def rows() -> Iterator[Row]:
        for row in table.rows:
            others = tuple(row.cells[place] for place in places)
            named = zip(columns, map(damage, others), strict=True)
            wrong = next((f'column "{printable(name)}" {why}' for name, why in named if why), None)
            yield row._replace(others=others, error=row.error or wrong)

    return replace(table, rows=rows())
