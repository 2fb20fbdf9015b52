"""All two-dimensional descriptors of RDKit: what a chemist would give a forest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rdkit import Chem, RDLogger, rdBase
from rdkit.Chem import Descriptors

NAMES = tuple(name for name, _ in Descriptors.descList)
"""In the order of the columns."""


def rdkit_descriptors(smiles: Sequence[str], cache: Path) -> np.ndarray:
    """The descriptors of `rdkit.Chem.Descriptors` (about 20 ms a molecule), or what the cache holds of them.

    Args:
        smiles: n molecules that can be read.
        cache: a folder.

    Returns:
        float64 `[n, D]`; NaN where a descriptor cannot be computed or is no finite number.
    """
    key = hashlib.sha256("\n".join([rdBase.rdkitVersion, *NAMES, *smiles]).encode()).hexdigest()
    file = cache / f"descriptors-{key[:32]}.npy"
    if file.is_file():
        return np.load(file)
    RDLogger.DisableLog("rdApp.*")
    values = np.array([_describe(text) for text in smiles]).reshape(len(smiles), len(NAMES))
    RDLogger.EnableLog("rdApp.*")
    values[~np.isfinite(values)] = np.nan
    cache.mkdir(parents=True, exist_ok=True)
    partial = file.with_suffix(f".{os.getpid()}.npy")
    np.save(partial, values)
    partial.replace(file)
    return values


def _describe(smiles: str) -> list[float]:
    mol = Chem.MolFromSmiles(smiles)
    found = Descriptors.CalcMolDescriptors(mol, missingVal=np.nan, silent=True)
    return [float(found[name]) for name in NAMES]
