"""Which column is meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gtx.errors import InputError, did_you_mean, printable

FIRST_ROWS = 20  # that are looked at where no name says which column holds the molecules
_LONGEST = 1000  # characters of a cell that is tried


class Wanted(NamedTuple):
    """The column of molecules that is looked for: the one asked for, or else the usual one if there is one."""

    asked: str | None = None
    usual: str | None = None

    @property
    def names(self) -> list[str]:
        """What it may be called, in lower case."""
        return [name.strip().lower() for name in (self.asked, self.usual, "smiles") if name]

    def among(self, columns: Sequence[str], parts: bool = True) -> list[int]:
        """The positions of the columns that the best rule finds: the name asked for, the usual one, "smiles" in any
        case, and, with `parts`, any name that contains that."""
        bare = [column.strip() for column in columns]
        rules: list[Callable[[str], bool]] = [
            lambda name: self.asked is not None and name == self.asked.strip(),
            lambda name: self.usual is not None and name == self.usual.strip(),
            lambda name: name.lower() == "smiles",
            lambda name: parts and "smiles" in name.lower(),
        ]
        every = ([i for i, name in enumerate(bare) if rule(name)] for rule in rules)
        return next(filter(None, every), [])


def column_index(columns: Sequence[str], name: str) -> int:
    """The position of a column, blanks around its name aside; `InputError` if there is none, or more than one."""
    found = [i for i, column in enumerate(columns) if column == name]
    found = found or [i for i, column in enumerate(columns) if column.strip() == name.strip()]
    if not found:
        near = did_you_mean(name, columns)
        raise InputError(f"there is no column {name!r}{near or ';'} the columns are {listed(columns)}")
    if len(found) > 1:
        raise InputError(f"{len(found)} columns are called {name!r}; the columns are {listed(columns)}")
    return found[0]


def smiles_index(columns: Sequence[str], wanted: Wanted, first_rows: Callable[[], Sequence[Sequence[str]]]) -> int:
    """The position of the column of molecules, by its name or else because no other has cells that read as molecules.

    Args:
        columns: their names.
        wanted: which one is asked for, and which is usual.
        first_rows: gives the cells of some rows, if it comes to that.
    """
    if wanted.asked is not None:
        return column_index(columns, wanted.asked)
    found, why = wanted.among(columns), "several columns are called so"
    if not found:
        rows = first_rows()
        found = [i for i in range(len(columns)) if _are_molecules([row[i] for row in rows])]
        number = "several columns" if found else "no column"
        why = f"there is no column called 'smiles', and {number} of which the first rows can be read as molecules"
    if len(found) != 1:
        raise InputError(
            f"which column holds the SMILES? {why}: say which with --smiles-column; the columns are {listed(columns)}"
        )
    return found[0]


def is_molecule(text: str) -> bool:
    """Whether a text can be read as a SMILES, as far as it is short enough to be tried."""
    from gtx.molecules import MoleculeError, read_smiles

    try:
        return len(text) <= _LONGEST and bool(read_smiles(text))
    except MoleculeError:
        return False


def _are_molecules(cells: Sequence[str]) -> bool:
    """Whether half of the cells that are not blank or more, and at least one, can be read as molecules."""
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and 2 * sum(map(is_molecule, filled)) >= len(filled)


def listed(columns: Sequence[str], most: int = 40) -> str:
    """The names of columns as a message shows them."""
    names = ", ".join(f"'{printable(column)}'" for column in columns[:most])
    return names + (f" and {len(columns) - most} more" if len(columns) > most else "")
