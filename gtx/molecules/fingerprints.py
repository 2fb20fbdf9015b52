"""Fingerprints, for baselines."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from gtx.molecules.errors import MoleculeError
from gtx.molecules.reading import read_smiles


def morgan_counts(texts: Sequence[str], radius: int = 2, bits: int = 2048) -> np.ndarray:
    """How often each circular substructure occurs: uint8 `[len(texts), bits]`, counts above 255 cut there.

    Morgan's fingerprint (Rogers and Hahn 2010, 10.1021/ci100050t) with counts, folded, without chirality.

    Args:
        texts: SMILES.
        radius: of the substructures, in bonds; 2 is ECFP4.
        bits: length of the fingerprint.

    Raises:
        MoleculeError: a SMILES cannot be read; the message says which.
    """
    generator = GetMorganGenerator(radius=radius, fpSize=bits)
    counts = np.zeros((len(texts), bits), dtype=np.uint8)
    for i, (row, text) in enumerate(zip(counts, texts, strict=True)):
        try:
            mol = read_smiles(text)
        except MoleculeError as reason:
            raise MoleculeError(f"number {i}, counted from 0: {text!r} {reason}") from None
        row[:] = np.minimum(generator.GetCountFingerprintAsNumPy(mol), 255)
    return counts
