"""Atoms and bonds as small integer codes, one per column of `ATOM_COLUMNS` and `BOND_COLUMNS`.

Code 0 means "other": a value the table does not list. Value i of a column has code i + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import BondStereo, BondType, ChiralType, HybridizationType

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


class Parts(NamedTuple):
    """What RDKit says of the atoms and bonds of one molecule, before columns that follow from its graph.

    Attributes:
        atoms: a row of codes per atom, as if it had no neighbours and no ring; the chirality of a centre is 0.
        tags: RDKit's `ChiralType` of each atom.
        bonds: a row of codes per bond, as if it were in no ring; the stereo of a bond that has any is 0.
        ends: first and second atom of each bond, one after the other.
        rings: the atoms of each ring, in order along it.
    """

    atoms: bytes
    tags: bytes
    bonds: bytes
    ends: Sequence[int]
    rings: Sequence[Sequence[int]]


def plain_parts(mol: Chem.Mol) -> Parts:
    """`Parts` by RDKit's getters, which is slow: each call from Python costs 0.3 µs; see `gtx.molecules.binary`."""
    atoms, bonds = list(mol.GetAtoms()), list(mol.GetBonds())
    return Parts(
        b"".join(
            atom_row(
                atom.GetAtomicNum(),
                atom.GetFormalCharge(),
                atom.GetTotalNumHs(),
                atom.GetHybridization(),
                atom.GetIsAromatic(),
                atom.GetChiralTag(),
                atom.GetNumRadicalElectrons(),
                atom.GetIsotope() > 0,
            )
            for atom in atoms
        ),
        bytes(int(atom.GetChiralTag()) for atom in atoms),
        b"".join(
            bond_row(bond.GetBondType(), bond.GetStereo() != BondStereo.STEREONONE, bond.GetIsConjugated())
            for bond in bonds
        ),
        [end for bond in bonds for end in (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())],
        mol.GetRingInfo().AtomRings(),
    )


@cache
def atom_row(
    element: int,
    charge: int,
    hydrogens: int,
    hybridisation: HybridizationType,
    aromatic: bool,
    tag: ChiralType,
    radical: int,
    isotope: bool,
) -> bytes:
    """The codes of an atom, as in `Parts`."""
    chirality = "none" if tag == ChiralType.CHI_UNSPECIFIED else None
    return _row(_ATOM, (element, charge, hydrogens, 0, hybridisation.name, aromatic, 0, chirality, radical, isotope))


@cache
def bond_row(kind: BondType, stereo: bool, conjugated: bool) -> bytes:
    """The codes of a bond, as in `Parts`."""
    return _row(_BOND, (kind.name, None if stereo else "none", conjugated, False))


def atom_code(name: str, value: object) -> int:
    """The code of a value in a column of atoms."""
    return _ATOM[ATOM_PLACE[name]].get(value, 0)


def bond_code(name: str, value: object) -> int:
    """The code of a value in a column of bonds."""
    return _BOND[BOND_PLACE[name]].get(value, 0)


def _row(tables: list[dict], values: tuple) -> bytes:
    return bytes(table.get(value, 0) for table, value in zip(tables, values, strict=True))


_ATOM = [{value: code for code, value in enumerate(values, 1)} for values in ATOM_COLUMNS.values()]
_BOND = [{value: code for code, value in enumerate(values, 1)} for values in BOND_COLUMNS.values()]
ATOM_PLACE = {name: place for place, name in enumerate(ATOM_COLUMNS)}
BOND_PLACE = {name: place for place, name in enumerate(BOND_COLUMNS)}
