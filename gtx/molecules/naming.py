"""Codes back to words."""

from __future__ import annotations

from rdkit import Chem

from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS


def name_code(kind: str, column: int, code: int) -> str:
    """What a code means, for messages: `element Xe`, `atom charge 3`, `bond type DATIVE`, `atom ring of another kind`.

    Args:
        kind: "atom" or "bond".
        column: place of the column in `ATOM_COLUMNS` or `BOND_COLUMNS`.
        code: as in `atom_codes` or `bond_codes`; 0 stands for any value the column does not list.
    """
    name, values = list((ATOM_COLUMNS if kind == "atom" else BOND_COLUMNS).items())[column]
    if name == "element":
        return f"element {Chem.GetPeriodicTable().GetElementSymbol(values[code - 1]) if code else 'unknown'}"
    return f"{kind} {name} {values[code - 1]}" if code else f"{kind} {name} of another kind"
