"""Fingerprints, for baselines and splits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.DataStructs import ExplicitBitVect

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
    for row, mol in zip(counts, _read(texts), strict=True):
        row[:] = np.minimum(generator.GetCountFingerprintAsNumPy(mol), 255)
    return counts


def morgan_bits(texts: Sequence[str], radius: int = 2, bits: int = 2048) -> list[ExplicitBitVect]:
    """Which circular substructures occur: `morgan_counts` without the counts, as RDKit keeps them."""
    generator = GetMorganGenerator(radius=radius, fpSize=bits)
    return [generator.GetFingerprint(mol) for mol in _read(texts)]


def _read(texts: Sequence[str]) -> Iterator[Chem.Mol]:
    for i, text in enumerate(texts):
        try:
            yield read_smiles(text)
        except MoleculeError as reason:
            raise MoleculeError(f"number {i}, counted from 0: {text!r} {reason}") from None
