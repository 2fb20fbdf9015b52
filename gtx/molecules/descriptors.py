"""Global features of a molecule: those of RDKit's two-dimensional descriptors that are cheap and order-independent.

Left out for their cost, each as much as reading the molecule or more: Crippen's sums with hydrogens, chi and kappa
beyond order 1, BCUT. Left out because they depend on the order of atoms: AUTOCORR2D.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem import rdPartialCharges

from gtx.molecules.binary import parts_of
from gtx.molecules.crippen import crippen
from gtx.molecules.features import ATOM_COLUMNS, Parts
from gtx.molecules.graphs import Graphs
from gtx.molecules.neighbours import Atoms
from gtx.molecules.quantum_numbers import quantum_numbers

_PROPERTIES = rd.Properties(
    [
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
    ]
)

_LOGP_EDGES = (-0.4, -0.2, 0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)  # as in RDKit, MolSurf.cpp
_REFRACTIVITY_EDGES = (1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0)
_PEOE = 14

_HYDROGEN = 1
_SP, _SP2, _SP3 = (ATOM_COLUMNS["hybridisation"].index(name) + 1 for name in ("SP", "SP2", "SP3"))
_HAVE_CHARGES = {  # elements and hybridisations with parameters of Gasteiger and Marsili; a few more are rare
    *((z, h) for z in (6, 7) for h in (_SP, _SP2, _SP3)),
    *((z, h) for z in (8, 15, 16) for h in (_SP2, _SP3)),
    *((z, _SP3) for z in (9, 17, 35, 53)),
}

DESCRIPTORS: tuple[str, ...] = (
    *_PROPERTIES.GetPropertyNames(),
    "CrippenLogP_heavy",
    "CrippenMR_heavy",
    *(f"SlogP_VSA{i}" for i in range(1, 13)),
    *(f"SMR_VSA{i}" for i in range(1, 11)),
    *(f"PEOE_VSA{i}" for i in range(1, _PEOE + 1)),
    *(f"MQN{i}" for i in range(1, 43)),
)
"""Names of what `descriptors` returns, in order: RDKit properties; Crippen's logP and molar
refractivity, contributions of heavy atoms alone; van der Waals surface (Å²) by ranges of these contributions and of
Gasteiger's charge; molecular quantum numbers (Nguyen et al. 2009)."""


class Measured(NamedTuple):
    """What RDKit computes of one molecule; the rest follows from its graph.

    Attributes:
        properties: those that `_PROPERTIES` lists.
        surface: van der Waals surface of each atom, in Å² (Labute 2000, 10.1016/S1093-3263(00)00068-1).
        charged_surface: surface by ranges of charge.
        contributions: Crippen's logP and molar refractivity of each atom, and
        numbers: the molecular quantum numbers, where the columns of codes do not suffice for them; otherwise None.
    """

    properties: Sequence[float]
    surface: Sequence[float]
    charged_surface: Sequence[float]
    contributions: Sequence[tuple[float, float]] | None
    numbers: Sequence[float] | None


def measure(mol: Chem.Mol, parts: Parts) -> Measured:
    """What `tabulate` needs of one molecule, whose `parts_of` are given."""
    properties = _PROPERTIES.ComputeProperties(mol)
    surface = rd._CalcLabuteASAContribs(mol)[0]
    odd = _HYDROGEN in parts.of_atoms("element") or 0 in parts.of_atoms("charge")
    contributions, numbers = (rd._CalcCrippenContribs(mol), rd.MQNs_(mol)) if odd else (None, None)
    return Measured(properties, surface, _charged_surface(mol, parts), contributions, numbers)


def tabulate(graphs: Graphs, measured: Sequence[Measured]) -> np.ndarray:
    """Descriptors `DESCRIPTORS` of m molecules: float32 `[m, len(DESCRIPTORS)]`, NaN where RDKit cannot compute one."""
    atoms, m = Atoms(graphs), len(measured)
    logp, refractivity = crippen(atoms)
    numbers = quantum_numbers(graphs, atoms)
    starts = np.cumsum(graphs.atom_counts) - graphs.atom_counts
    for k, one in enumerate(measured):
        if one.contributions is not None:
            at = slice(starts[k], starts[k] + graphs.atom_counts[k])
            logp[at], refractivity[at] = np.transpose(one.contributions)
            numbers[k] = one.numbers
    surface = np.fromiter(chain.from_iterable(one.surface for one in measured), float)

    def by_range(value: np.ndarray, edges: Sequence[float]) -> np.ndarray:
        bins = len(edges) + 1
        place = graphs.molecule * bins + np.digitize(value, edges)
        return np.bincount(place, surface, m * bins).reshape(m, bins)

    values = np.concatenate(
        [
            np.array([one.properties for one in measured]).reshape(m, len(_PROPERTIES.GetPropertyNames())),
            np.stack([np.bincount(graphs.molecule, value, m) for value in (logp, refractivity)], 1),
            by_range(logp, _LOGP_EDGES),
            by_range(refractivity, _REFRACTIVITY_EDGES),
            np.array([one.charged_surface for one in measured]).reshape(m, _PEOE),
            numbers,
        ],
        axis=1,
    )
    return np.where(abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)


def descriptors(mol: Chem.Mol) -> np.ndarray:
    """Descriptors `DESCRIPTORS` of one molecule: float32 `[len(DESCRIPTORS)]`, NaN where RDKit cannot compute one."""
    parts = parts_of(mol)
    return tabulate(Graphs.join([parts]), [measure(mol, parts)])[0]


def _charged_surface(mol: Chem.Mol, parts: Parts) -> Sequence[float]:
    """PEOE_VSA; atoms whose charge is NaN, for want of parameters, RDKit would file under the last range."""
    if not _HAVE_CHARGES.issuperset(zip(parts.of_atoms("element"), parts.of_atoms("hybridisation"), strict=True)):
        try:
            rdPartialCharges.ComputeGasteigerCharges(mol, throwOnParamFailure=True)
        except ValueError:
            rdPartialCharges.ComputeGasteigerCharges(mol)
            if any(np.isnan(atom.GetDoubleProp("_GasteigerCharge")) for atom in mol.GetAtoms()):
                return [np.nan] * _PEOE
    return rd.PEOE_VSA_(mol)
