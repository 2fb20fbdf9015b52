"""Atoms and bonds as small integer codes, one per column of `ATOM_COLUMNS` and `BOND_COLUMNS`.

Code 0 means "other": a value the table does not list. Value i of a column has code i + 1.
"""

from __future__ import annotations

ATOM_COLUMNS: dict[str, tuple] = {
    "element": tuple(range(1, 119)),
    "charge": tuple(range(-4, 5)),
    "hydrogens": tuple(range(5)),
    "degree": tuple(range(9)),
    "hybridisation": ("S", "SP", "SP2", "SP3", "SP2D", "SP3D", "SP3D2"),
    "aromatic": (False, True),
    "ring": (0, *range(3, 25)),
    "chirality": ("none", "R", "S", "r", "s"),
    "radical": tuple(range(5)),
    "isotope": (False, True),
}
"""Known values of each atom column.

element: atomic number. charge: formal, in e. hydrogens: attached ones that are not nodes. degree: neighbours that are
nodes. ring: size of the smallest ring through the atom, 0 outside rings. chirality: CIP label. radical: unpaired
electrons. isotope: a mass number is given.
"""

BOND_COLUMNS: dict[str, tuple] = {
    "type": ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC", "DATIVE"),
    "stereo": ("none", "E", "Z", "e", "z", "M", "P", "m", "p"),
    "conjugated": (False, True),
    "ring": (False, True),
}
"""Known values of each bond column; stereo is the CIP label."""


def atom_code(name: str, value: object) -> int:
    """The code of a value in a column of atoms."""
    return _ATOM[ATOM_PLACE[name]].get(value, 0)


def bond_code(name: str, value: object) -> int:
    """The code of a value in a column of bonds."""
    return _BOND[BOND_PLACE[name]].get(value, 0)


_ATOM = [{value: code for code, value in enumerate(values, 1)} for values in ATOM_COLUMNS.values()]
_BOND = [{value: code for code, value in enumerate(values, 1)} for values in BOND_COLUMNS.values()]
ATOM_PLACE = {name: place for place, name in enumerate(ATOM_COLUMNS)}
BOND_PLACE = {name: place for place, name in enumerate(BOND_COLUMNS)}
