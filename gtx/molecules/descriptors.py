"""Global features of a molecule: the cheap, order-independent part of RDKit's two-dimensional descriptors."""

from __future__ import annotations

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd

_PROPERTIES = rd.Properties(
    [
        "amw", "FractionCSP3", "NumHBD", "NumHBA", "NumHeteroatoms", "NumRings", "NumAromaticRings",
        "NumAliphaticRings", "NumSaturatedRings", "NumHeterocycles", "NumSpiroAtoms", "NumBridgeheadAtoms",
        "labuteASA", "tpsa", "CrippenClogP", "CrippenMR", "chi0v", "chi1v", "chi0n", "chi1n", "hallKierAlpha", "kappa1",
    ]
)  # fmt: skip

DESCRIPTORS: tuple[str, ...] = tuple(_PROPERTIES.GetPropertyNames())
"""Names of what `descriptors` returns, in order."""


def descriptors(mol: Chem.Mol) -> np.ndarray:
    """Descriptors `DESCRIPTORS` of one molecule: float32 `[len(DESCRIPTORS)]`, NaN where RDKit cannot compute one."""
    with np.errstate(over="ignore"):
        values = np.array(_PROPERTIES.ComputeProperties(mol)).astype(np.float32)
    return np.where(np.isfinite(values), values, np.float32(np.nan))
