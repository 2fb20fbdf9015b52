"""The largest fragment, neutral: salts and counter-ions off, protonation undone."""

from __future__ import annotations

from rdkit import Chem, rdBase
from rdkit.Chem.MolStandardize import rdMolStandardize

from gtx.molecules.errors import MoleculeError


def standardise(mol: Chem.Mol) -> Chem.Mol:
    """Keep the largest fragment and neutralise it where protons alone can; a new molecule is returned.

    Raises:
        MoleculeError: RDKit could not standardise the molecule.
    """
    try:
        with rdBase.BlockLogs():
            return rdMolStandardize.Uncharger().uncharge(rdMolStandardize.LargestFragmentChooser().choose(mol))
    except (RuntimeError, ValueError) as error:
        raise MoleculeError(f"cannot be standardised: {' '.join(str(error).split())}") from None
