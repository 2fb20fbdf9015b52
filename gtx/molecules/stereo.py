"""Stereochemistry that does not depend on how the molecule was written: CIP labels."""

from __future__ import annotations

from rdkit import Chem
from rdkit.Chem import rdCIPLabeler

MAX_ITERATIONS = 100_000


def label_stereo(mol: Chem.Mol) -> bool:
    """Label stereocentres R, S, r, s and double bonds E, Z in place; False if the molecule is too symmetric to decide.

    The rules are those of Hanson et al. (2018) as implemented in RDKit's `rdCIPLabeler`; the older labels that reading
    leaves behind ignore rules 3 to 5 and rings.
    """
    try:
        rdCIPLabeler.AssignCIPLabels(mol, maxRecursiveIterations=MAX_ITERATIONS)
    except RuntimeError:
        return False
    return True
