"""The substructures that a chemist would name: what is left between the bonds that synthesis makes."""

from __future__ import annotations

import numpy as np
from rdkit import Chem
from rdkit.Chem.BRICS import FindBRICSBonds


def substructures(mol: Chem.Mol) -> np.ndarray:
    """To which substructure each atom belongs, int `[n]`, numbered from 0 in the order of their first atoms.

    Cuts the bonds of BRICS (Degen et al. 2008, 10.1002/cmdc.200800178). A molecule without such a bond is one.
    """
    cut = {frozenset(ends) for ends, _ in FindBRICSBonds(mol)}
    group = np.arange(mol.GetNumAtoms())
    for bond in mol.GetBonds():
        one, other = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        if frozenset((one, other)) not in cut:
            group[group == group[other]] = group[one]
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    return first.argsort().argsort()[number]
