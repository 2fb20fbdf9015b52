"""Which column is meant."""

from __future__ import annotations

from collections.abc import Sequence

from gtx.errors import InputError, printable


def column_index(columns: Sequence[str], name: str) -> int:
    """The position of a column, blanks around its name aside; `InputError` if there is none, or more than one."""
    found = [i for i, column in enumerate(columns) if column == name]
    found = found or [i for i, column in enumerate(columns) if column.strip() == name.strip()]
    if not found:
        raise InputError(f"there is no column {name!r}; the columns are {listed(columns)}")
    if len(found) > 1:
        raise InputError(f"{len(found)} columns are called {name!r}; the columns are {listed(columns)}")
    return found[0]


def smiles_index(columns: Sequence[str], name: str | None) -> int:
    """The position of the column of molecules: the one asked for, or called "smiles", or whose name contains that."""
    if name is not None:
        return column_index(columns, name)
    found = [i for i, column in enumerate(columns) if column.strip().lower() == "smiles"]
    found = found or [i for i, column in enumerate(columns) if "smiles" in column.lower()]
    if len(found) != 1:
        which = "several columns" if found else "no column"
        raise InputError(f"{which} called 'smiles': say which one holds the SMILES; the columns are {listed(columns)}")
    return found[0]


def listed(columns: Sequence[str], most: int = 40) -> str:
    """The names of columns as a message shows them."""
    names = ", ".join(repr(printable(column)) for column in columns[:most])
    return names + (f" and {len(columns) - most} more" if len(columns) > most else "")
