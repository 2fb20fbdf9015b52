"""Fingerprints, for baselines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from gtx.molecules.reading import read_smiles


def morgan_counts(texts: Sequence[str], radius: int = 2, bits: int = 2048) -> np.ndarray:
    """How often each circular substructure occurs: uint8 `[len(texts), bits]`, counts above 255 cut there.

    Morgan's fingerprint (Rogers and Hahn 2010, 10.1021/ci100050t) with counts, folded, without chirality.

    Args:
        texts: SMILES.
        radius: of the substructures, in bonds; 2 is ECFP4.
        bits: length of the fingerprint.

    Raises:
        MoleculeError: a SMILES cannot be read.
    """
    generator = GetMorganGenerator(radius=radius, fpSize=bits)
    counts = np.zeros((len(texts), bits), dtype=np.uint8)
    for row, text in zip(counts, texts, strict=True):
        row[:] = np.minimum(generator.GetCountFingerprintAsNumPy(read_smiles(text)), 255)
    return counts
