"""Global features of a molecule: those of RDKit's two-dimensional descriptors that are cheap and order-independent.

RDKit takes longer to find them than to read the molecule; `gtx.molecules.fast` finds the same values faster.

Left out for their cost, each as much as reading the molecule or more: Crippen's sums with hydrogens, chi and kappa
beyond order 1, BCUT. Left out because they depend on the order of atoms: AUTOCORR2D.
"""

from __future__ import annotations

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem import rdPartialCharges

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
"""Those that RDKit computes in one call."""

_ASK = rd.Properties(PROPERTY_NAMES)

_CHARGE_RANGES = 14

DESCRIPTORS: tuple[str, ...] = (
    *PROPERTY_NAMES,
    "CrippenLogP_heavy",
    "CrippenMR_heavy",
    *(f"SlogP_VSA{i}" for i in range(1, 13)),
    *(f"SMR_VSA{i}" for i in range(1, 11)),
    *(f"PEOE_VSA{i}" for i in range(1, _CHARGE_RANGES + 1)),
    *(f"MQN{i}" for i in range(1, 43)),
)
"""Names of what `descriptors` returns, in order: RDKit properties; Crippen's logP and molar
refractivity, contributions of heavy atoms alone; van der Waals surface (Å²) by ranges of these contributions and of
Gasteiger's charge; molecular quantum numbers (Nguyen et al. 2009)."""


def descriptors(mol: Chem.Mol) -> np.ndarray:
    """Descriptors `DESCRIPTORS` of one molecule: float32 `[len(DESCRIPTORS)]`, NaN where RDKit cannot compute one."""
    contributions = np.array(rd._CalcCrippenContribs(mol)).reshape(-1, 2)
    return rounded(
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


def rounded(values: np.ndarray) -> np.ndarray:
    """As float32, NaN where one cannot hold a value."""
    return np.where(abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)


def lacking(values: np.ndarray) -> tuple[str, ...]:
    """The warning that some descriptors of a molecule, `[D]`, are NaN; empty if none is."""
    names = dict.fromkeys(DESCRIPTORS[j].rstrip("0123456789") for j in np.flatnonzero(np.isnan(values)))
    return (f"descriptors RDKit cannot compute: {', '.join(names)}",) if names else ()


def _charged_surface(mol: Chem.Mol) -> list[float]:
    """PEOE_VSA; atoms whose charge is NaN, for want of parameters, RDKit would file under the last range."""
    try:
        rdPartialCharges.ComputeGasteigerCharges(mol, throwOnParamFailure=True)
    except ValueError:
        rdPartialCharges.ComputeGasteigerCharges(mol)
        if any(np.isnan(atom.GetDoubleProp("_GasteigerCharge")) for atom in mol.GetAtoms()):
            return [np.nan] * _CHARGE_RANGES
    return list(rd.PEOE_VSA_(mol))
