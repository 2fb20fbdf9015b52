"""The largest fragment, neutral: counter-ions and solvents off, protonation undone."""

from __future__ import annotations

from rdkit import Chem, rdBase
from rdkit.Chem.MolStandardize import rdMolStandardize

from gtx.molecules.errors import MoleculeError

_LARGEST = rdMolStandardize.LargestFragmentChooser()
_NEUTRAL = rdMolStandardize.Uncharger()


def standardise(mol: Chem.Mol) -> Chem.Mol:
    """The largest fragment of `mol`, neutralised where adding or removing protons can do it; a new molecule.

    Charges that protons cannot undo stay, as in quaternary ammonium; so do zwitterions of such (betaine). Nothing else
    is changed: tautomers, isotopes and stereochemistry are kept.

    Raises:
        MoleculeError: RDKit could not do it.
    """
    try:
        with rdBase.BlockLogs():
            return _NEUTRAL.uncharge(_LARGEST.choose(mol))
    except (RuntimeError, ValueError) as error:
        raise MoleculeError.because("cannot be standardised", error) from None
