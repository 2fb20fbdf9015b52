"""Atoms and bonds as small integer codes, one per column of `ATOM_COLUMNS` and `BOND_COLUMNS`.

Code 0 means "other": a value the table does not list. Value i of a column has code i + 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import BondStereo, BondType, ChiralType, HybridizationType

from gtx.molecules.stereo import label_of

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
        ends: first and second atom of each bond, one after the other.
        bonds: a row of codes per bond, as if it were in no ring; the stereo of a bond that has any is 0.
        rings: the atoms of each ring, in order along it.
    """

    atoms: bytearray
    ends: Sequence[int]
    bonds: bytearray
    rings: Sequence[Sequence[int]]

    def of_atoms(self, name: str) -> bytearray:
        """The codes of all atoms in one column."""
        return self.atoms[_ATOM_PLACE[name] :: len(ATOM_COLUMNS)]

    def of_bonds(self, name: str) -> bytearray:
        """The codes of all bonds in one column."""
        return self.bonds[_BOND_PLACE[name] :: len(BOND_COLUMNS)]

    @property
    def has_stereo(self) -> bool:
        """Whether there are centres or bonds to label."""
        return 0 in self.of_atoms("chirality") or 0 in self.of_bonds("stereo")


def plain_parts(mol: Chem.Mol) -> Parts:
    """`Parts` by RDKit's getters, which is slow: each call from Python costs 0.3 µs; see `gtx.molecules.binary`."""
    atoms, bonds = list(mol.GetAtoms()), list(mol.GetBonds())
    return Parts(
        bytearray().join(
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
        [end for bond in bonds for end in (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())],
        bytearray().join(
            bond_row(bond.GetBondType(), bond.GetStereo() != BondStereo.STEREONONE, bond.GetIsConjugated())
            for bond in bonds
        ),
        mol.GetRingInfo().AtomRings(),
    )


def put_labels(mol: Chem.Mol, parts: Parts) -> bool:
    """Put the CIP labels that `label_stereo` gave to `mol` in their columns; whether all of them are known ones."""
    for i in _open(parts.of_atoms("chirality")):
        parts.atoms[i * len(ATOM_COLUMNS) + _ATOM_PLACE["chirality"]] = _CHIRALITY.get(
            label_of(mol.GetAtomWithIdx(i)), 0
        )
    for k in _open(parts.of_bonds("stereo")):
        label = label_of(mol.GetBondWithIdx(k))
        parts.bonds[k * len(BOND_COLUMNS) + _BOND_PLACE["stereo"]] = _STEREO.get(label, 0)
    return not parts.has_stereo


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


def _open(codes: bytearray) -> list[int]:
    return [i for i, code in enumerate(codes) if code == 0]


def _row(tables: list[dict], values: tuple) -> bytes:
    return bytes(table.get(value, 0) for table, value in zip(tables, values, strict=True))


_ATOM = [{value: code for code, value in enumerate(values, 1)} for values in ATOM_COLUMNS.values()]
_BOND = [{value: code for code, value in enumerate(values, 1)} for values in BOND_COLUMNS.values()]
_ATOM_PLACE = {name: place for place, name in enumerate(ATOM_COLUMNS)}
_BOND_PLACE = {name: place for place, name in enumerate(BOND_COLUMNS)}
_CHIRALITY, _STEREO = _ATOM[_ATOM_PLACE["chirality"]], _BOND[_BOND_PLACE["stereo"]]
