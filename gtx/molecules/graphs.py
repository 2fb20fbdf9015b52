"""The atoms and bonds of an RDKit molecule as codes, column by column."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from rdkit import Chem

from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS, atom_code, bond_code
from gtx.molecules.stereo import label_of

_ATOM: dict[str, Callable[[Chem.Atom], object]] = {
    "element": Chem.Atom.GetAtomicNum,
    "charge": Chem.Atom.GetFormalCharge,
    "hydrogens": Chem.Atom.GetTotalNumHs,
    "degree": Chem.Atom.GetDegree,
    "hybridisation": lambda atom: atom.GetHybridization().name,
    "aromatic": Chem.Atom.GetIsAromatic,
    "ring": lambda atom: atom.GetOwningMol().GetRingInfo().MinAtomRingSize(atom.GetIdx()),
    "chirality": label_of,
    "radical": Chem.Atom.GetNumRadicalElectrons,
    "isotope": lambda atom: atom.GetIsotope() > 0,
}
_BOND: dict[str, Callable[[Chem.Bond], object]] = {
    "type": lambda bond: bond.GetBondType().name,
    "stereo": label_of,
    "conjugated": Chem.Bond.GetIsConjugated,
    "ring": Chem.Bond.IsInRing,
}


def atom_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per atom and column: uint8 `[n, len(ATOM_COLUMNS)]`; chirality as `label_stereo` left it."""
    rows = [[atom_code(name, _ATOM[name](atom)) for name in ATOM_COLUMNS] for atom in mol.GetAtoms()]
    return np.array(rows, np.uint8).reshape(-1, len(ATOM_COLUMNS))


def bond_ends(mol: Chem.Mol) -> np.ndarray:
    """Sender (row 0) and receiver (row 1) of every bond, both ways: int32 `[2, 2m]`; bond k is at 2k and 2k + 1."""
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    return np.array([way for i, j in ends for way in ((i, j), (j, i))], np.int32).reshape(-1, 2).T


def bond_codes(mol: Chem.Mol) -> np.ndarray:
    """One code per directed bond and column, in the order of `bond_ends`: uint8 `[2m, len(BOND_COLUMNS)]`."""
    rows = [[bond_code(name, _BOND[name](bond)) for name in BOND_COLUMNS] for bond in mol.GetBonds()]
    return np.array(rows, np.uint8).reshape(-1, len(BOND_COLUMNS)).repeat(2, axis=0)
