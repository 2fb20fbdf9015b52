"""Descriptors of molecules, by groups, and named features that a model may read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import Descriptors, rdMolDescriptors, rdPartialCharges
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem.EState import EStateIndices
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator

from gtx.molecules.graphs import FeaturisedMolecules

# --- RDKit's two-dimensional descriptors, all but four.
#
# `compute_descriptors` holds those cheap enough to be read with every molecule.

LEFT_OUT = ("Ipc", "AvgIpc", "qed", "SPS")
"""Ipc overflows and AvgIpc takes as long; qed is a function of the others; SPS takes as long as a hundred of them."""

_ELECTROTOPOLOGICAL: dict[str, Callable[[np.ndarray], float]] = {
    "MaxEStateIndex": np.max,
    "MinEStateIndex": np.min,
    "MaxAbsEStateIndex": lambda indices: np.max(np.abs(indices)),
    "MinAbsEStateIndex": lambda indices: np.min(np.abs(indices)),
}
"""Four functions of the same indices, which RDKit would compute four times."""

_PLAIN = {
    name: function
    for name, function in Descriptors.descList
    if name not in LEFT_OUT and name not in _ELECTROTOPOLOGICAL
}

RDKIT_DESCRIPTORS: tuple[str, ...] = (*_PLAIN, *_ELECTROTOPOLOGICAL)
"""RDKit's names of the descriptors of `rdkit_descriptors`, in order."""


def rdkit_descriptors(mol: Chem.Mol) -> np.ndarray:
    """Compute `RDKIT_DESCRIPTORS` of a molecule: float64 `[K]`, NaN where RDKit has no finite value; some 5 ms."""
    numbers = [_value(function, mol) for function in _PLAIN.values()]
    try:
        indices = EStateIndices(mol)
        numbers += [float(function(indices)) for function in _ELECTROTOPOLOGICAL.values()]
    except (ValueError, RuntimeError, ZeroDivisionError):
        numbers += [math.nan] * len(_ELECTROTOPOLOGICAL)
    values = np.array(numbers, np.float64)
    return np.where(np.isfinite(values), values, np.nan)


def _value(function: Callable[[Chem.Mol], float], mol: Chem.Mol) -> float:
    try:
        return float(function(mol))
    except (ValueError, RuntimeError, ZeroDivisionError):
        return math.nan


# --- Global features of a molecule: those of RDKit's two-dimensional descriptors that are cheap and order-independent.
#
# RDKit takes longer to find them than to read the molecule; the annex `gtx.fast` finds the same values faster.
#
# Left out for their cost, each as much as reading the molecule or more: Crippen's sums with hydrogens, chi and kappa
# beyond order 1, BCUT. Left out because they depend on the order of atoms: AUTOCORR2D.

PROPERTY_NAMES = (
    "amw",
    "FractionCSP3",
    "lipinskiHBA",
    "lipinskiHBD",
    "NumHBD",
    "NumHeteroatoms",
    "NumAmideBonds",
    "NumRings",
    "NumAromaticRings",
    "NumAliphaticRings",
    "NumSaturatedRings",
    "NumHeterocycles",
    "NumAromaticHeterocycles",
    "NumSaturatedHeterocycles",
    "NumAliphaticHeterocycles",
    "NumSpiroAtoms",
    "NumBridgeheadAtoms",
    "labuteASA",
    "tpsa",
    "chi0v",
    "chi1v",
    "chi0n",
    "chi1n",
    "hallKierAlpha",
    "kappa1",
)
"""Descriptors that RDKit computes in one call."""

_ASK = rd.Properties(PROPERTY_NAMES)

_CHARGE_RANGES = 14

DESCRIPTOR_NAMES: tuple[str, ...] = (
    *PROPERTY_NAMES,
    "CrippenLogP_heavy",
    "CrippenMR_heavy",
    *(f"SlogP_VSA{i}" for i in range(1, 13)),
    *(f"SMR_VSA{i}" for i in range(1, 11)),
    *(f"PEOE_VSA{i}" for i in range(1, _CHARGE_RANGES + 1)),
    *(f"MQN{i}" for i in range(1, 43)),
)
"""Names of the global descriptors, in order: RDKit properties; Crippen's logP and molar refractivity, contributions of
heavy atoms alone; van der Waals surface (Å²) by ranges of these contributions and of Gasteiger's charge; molecular
quantum numbers (Nguyen et al. 2009)."""


def compute_descriptors(mol: Chem.Mol) -> np.ndarray:
    """Compute the descriptors of a molecule: float32 `[len(DESCRIPTOR_NAMES)]`, NaN where RDKit cannot compute one."""
    # RDKit has no public function of the contributions of single atoms
    contributions = np.array(rd._CalcCrippenContribs(mol)).reshape(-1, 2)  # noqa: SLF001
    return to_float32(
        np.concatenate(
            [
                _ASK.ComputeProperties(mol),
                contributions.cumsum(0)[-1],
                rd.SlogP_VSA_(mol),
                rd.SMR_VSA_(mol),
                _charged_surface(mol),
                rd.MQNs_(mol),
            ]
        )
    )


def to_float32(values: np.ndarray) -> np.ndarray:
    """Round to float32, with NaN for values outside its range."""
    return np.where(abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)


def missing_descriptors(values: np.ndarray) -> tuple[str, ...]:
    """Return the warning that some descriptors of a molecule, `[D]`, are NaN; empty if none is."""
    names = dict.fromkeys(DESCRIPTOR_NAMES[j].rstrip("0123456789") for j in np.flatnonzero(np.isnan(values)))
    return (f"descriptors RDKit cannot compute: {', '.join(names)}",) if names else ()


def _charged_surface(mol: Chem.Mol) -> list[float]:
    """Compute PEOE_VSA, NaN if an atom lacks parameters of charge; RDKit would count it in the last range."""
    try:
        rdPartialCharges.ComputeGasteigerCharges(mol, throwOnParamFailure=True)
    except ValueError:
        rdPartialCharges.ComputeGasteigerCharges(mol)
        if any(np.isnan(atom.GetDoubleProp("_GasteigerCharge")) for atom in mol.GetAtoms()):
            return [np.nan] * _CHARGE_RANGES
    return list(rd.PEOE_VSA_(mol))


# --- Further features of a whole molecule, by name: what a model may read beside its cheap descriptors.

_MORGAN = GetMorganGenerator(radius=2, fpSize=2048)


class MoleculeFeatures(NamedTuple):
    """Features of a molecule that are computed together, such as the bits of a fingerprint.

    Attributes:
        names: names of the F features.
        compute: function of a molecule without hydrogen atoms that returns `[F]`, NaN where there is no value.
    """

    names: Sequence[str]
    compute: Callable[[Chem.Mol], np.ndarray]


MOLECULE_FEATURES: dict[str, MoleculeFeatures] = {
    "morgan": MoleculeFeatures([f"morgan{i}" for i in range(2048)], _MORGAN.GetCountFingerprintAsNumPy),
    "maccs": MoleculeFeatures(
        [f"maccs{i}" for i in range(167)], lambda mol: np.array(list(rdMolDescriptors.GetMACCSKeysFingerprint(mol)))
    ),
    "rdkit": MoleculeFeatures(RDKIT_DESCRIPTORS, rdkit_descriptors),
}
"""Precomputed molecule features (fingerprints and descriptors), by name.

`morgan`: counts of the circular substructures of radius 2, folded to 2,048 (Rogers and Hahn 2010,
10.1021/ci100050t); `maccs`, the 166 keys after one that is always 0 (Durant et al. 2002, 10.1021/ci010132r); `rdkit`,
RDKit's two-dimensional descriptors, some 5 ms a molecule."""


def with_molecule_features(
    chosen: Sequence[str], molecules: FeaturisedMolecules, read: Callable[[int], Chem.Mol]
) -> FeaturisedMolecules:
    """Append features to the descriptors of molecules.

    Args:
        chosen: names of `MOLECULE_FEATURES`.
        molecules: with the descriptors that they have so far.
        read: function from the number of a readable text to its molecule without hydrogen atoms.
    """
    several = [MOLECULE_FEATURES[name] for name in chosen]
    names = [name for features in several for name in features.names]
    rows, warnings = [], list(molecules.warnings)
    for i, error in enumerate(molecules.errors):
        if error is not None:
            continue
        mol = read(i)
        rows.append(to_float32(np.concatenate([features.compute(mol) for features in several]).astype(np.float64)))
        if missing := [names[j] for j in np.flatnonzero(np.isnan(rows[-1]))]:
            warnings[i] += (f"features RDKit cannot compute: {', '.join(missing)}",)
    values = np.array(rows, np.float32).reshape(len(rows), len(names))
    return molecules._replace(descriptors=np.concatenate([molecules.descriptors, values], axis=1), warnings=warnings)
