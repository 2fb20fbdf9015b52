"""Atoms and bonds as small integer codes, one per column of `ATOM_COLUMNS` and `BOND_COLUMNS`.

Code 0 means "other": a value the table does not list. Value i of a column has code i + 1.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from rdkit import Chem
from rdkit.Chem import BondType, HybridizationType

from gtx.molecules.stereo import LABEL

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


def atom_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per atom and column: uint8 `[n, len(ATOM_COLUMNS)]`; chirality as `label_stereo` left it."""
    ring_size = mol.GetRingInfo().MinAtomRingSize
    rows = []
    for i in range(mol.GetNumAtoms()):  # by index: a third of the time of iterating over GetAtoms()
        atom = mol.GetAtomWithIdx(i)
        rows.append(
            _atom_row(
                atom.GetAtomicNum(),
                atom.GetFormalCharge(),
                atom.GetTotalNumHs(),
                atom.GetDegree(),
                atom.GetHybridization(),
                atom.GetIsAromatic(),
                ring_size(i),
                atom.GetProp(LABEL) if atom.HasProp(LABEL) else "none",
                atom.GetNumRadicalElectrons(),
                atom.GetIsotope() > 0,
            )
        )
    return np.frombuffer(bytearray().join(rows), dtype=np.uint8).reshape(-1, len(ATOM_COLUMNS))


def bond_ends(mol: Chem.Mol) -> np.ndarray:
    """Sender (row 0) and receiver (row 1) of every bond, both ways: int32 `[2, 2m]`; bond k is at 2k and 2k + 1."""
    return ends_and_codes(mol)[0]


def bond_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per directed bond and column, in the order of `bond_ends`: uint8 `[2m, len(BOND_COLUMNS)]`."""
    return ends_and_codes(mol)[1]


def ends_and_codes(mol: Chem.Mol) -> tuple[np.ndarray, np.ndarray]:
    """`bond_ends` and `bond_codes` in one pass."""
    ends, rows = [], []
    for k in range(mol.GetNumBonds()):
        bond = mol.GetBondWithIdx(k)
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        row = _bond_row(
            bond.GetBondType(),
            bond.GetProp(LABEL) if bond.HasProp(LABEL) else "none",
            bond.GetIsConjugated(),
            bond.IsInRing(),
        )
        ends += (i, j, j, i)
        rows += (row, row)
    return (
        np.ascontiguousarray(np.array(ends, dtype=np.int32).reshape(-1, 2).T),
        np.frombuffer(bytearray().join(rows), dtype=np.uint8).reshape(-1, len(BOND_COLUMNS)),
    )


_ATOM = [{value: code for code, value in enumerate(values, 1)} for values in ATOM_COLUMNS.values()]
_BOND = [{value: code for code, value in enumerate(values, 1)} for values in BOND_COLUMNS.values()]


@cache
def _atom_row(*values: object) -> bytes:
    return _row(_ATOM, values)


@cache
def _bond_row(*values: object) -> bytes:
    return _row(_BOND, values)


def _row(tables: list[dict], values: tuple) -> bytes:
    names = (v.name if isinstance(v, (HybridizationType, BondType)) else v for v in values)
    return bytes(table.get(v, 0) for table, v in zip(tables, names, strict=True))
