"""RDKit's own two-dimensional descriptors, all but four: what a model is pretrained to tell of a molecule.

`gtx.molecules.descriptors` holds those cheap enough to be read with every molecule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from rdkit import Chem
from rdkit.Chem import Descriptors
from rdkit.Chem.EState import EStateIndices

from gtx.molecules.errors import MoleculeError

LEFT_OUT = ("Ipc", "AvgIpc", "qed", "SPS")
"""Ipc overflows and AvgIpc takes as long; qed is a function of the others; SPS takes as long as a hundred of them."""

_ELECTROTOPOLOGICAL = {
    "MaxEStateIndex": np.max,
    "MinEStateIndex": np.min,
    "MaxAbsEStateIndex": lambda indices: np.max(np.abs(indices)),
    "MinAbsEStateIndex": lambda indices: np.min(np.abs(indices)),
}
"""Four of them are functions of the same indices, which RDKit would find four times."""

_PLAIN = {
    name: function
    for name, function in Descriptors._descList
    if name not in LEFT_OUT and name not in _ELECTROTOPOLOGICAL
}

RDKIT_DESCRIPTORS: tuple[str, ...] = (*_PLAIN, *_ELECTROTOPOLOGICAL)
"""Names of what `rdkit_descriptors` returns, in order, as RDKit has them."""


def rdkit_descriptors(mol: Chem.Mol) -> np.ndarray:
    """`RDKIT_DESCRIPTORS` of a molecule: float64 `[K]`, NaN where RDKit has no finite value; some 5 ms."""
    found = [_value(function, mol) for function in _PLAIN.values()]
    try:
        indices = EStateIndices(mol)
        found += [float(function(indices)) for function in _ELECTROTOPOLOGICAL.values()]
    except (ValueError, RuntimeError, ZeroDivisionError):
        found += [math.nan] * len(_ELECTROTOPOLOGICAL)
    values = np.array(found, np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def rdkit_descriptors_of(read: Callable[[str], Chem.Mol], texts: Sequence[str]) -> np.ndarray:
    """Of texts, such as `Featuriser.read` reads them: float64 `[n, K]`, NaN for those that it cannot."""
    found = np.full((len(texts), len(RDKIT_DESCRIPTORS)), np.nan)
    for row, text in zip(found, texts, strict=True):
        with suppress(MoleculeError):
            row[:] = rdkit_descriptors(read(text))
    return found


def _value(function, mol: Chem.Mol) -> float:
    try:
        return float(function(mol))
    except (ValueError, RuntimeError, ZeroDivisionError):
        return math.nan
