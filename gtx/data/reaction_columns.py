"""Reactions whose sides are in two columns of a table, named together: `reactants>>products`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gtx.data.columns import Table

ARROW = ">>"
"""Arrow of a reaction, between the texts of its sides or the names of their columns."""


def reactants_column(requested: str | None, usual: str | None, columns: Sequence[str] = ()) -> str | None:
    """Return the name of the column of reactants if the rows are reactions with their sides in two columns, else None.

    Args:
        requested: name of the column of molecules or reactions, or None.
        usual: its name in training, if no name is requested; it counts only if `columns` have both of its columns.
        columns: names of the columns of the table.
    """
    reactants, arrow, products = (requested or usual or "").partition(ARROW)
    return reactants if arrow and (requested or {reactants, products} <= set(columns)) else None


def join_sides(table: Table, name: str) -> Table:
    """Make the texts of a table reactions of two columns, whose names are the two parts of `name`.

    Raises:
        InputError: the table lacks a column, or has several of that name.
    """
    reactants, products = map(table.index, name.split(ARROW))
    rows = (row._replace(text=f"{row.cells[reactants]}{ARROW}{row.cells[products]}") for row in table.rows)
    return replace(table, smiles_column=name, rows=rows)
