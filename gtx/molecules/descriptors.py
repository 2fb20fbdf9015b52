"""Global features of a molecule: those of RDKit's two-dimensional descriptors that are cheap and order-independent.

All values are RDKit's. What it finds by many calls or by matching SMARTS is computed here for many molecules at once,
from their graphs; the rest is asked of it molecule by molecule.

Left out for their cost, each as much as reading the molecule or more: Crippen's sums with hydrogens, chi and kappa
beyond order 1, BCUT. Left out because they depend on the order of atoms: AUTOCORR2D.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem import rdPartialCharges

from gtx.molecules.binary import parts_of
from gtx.molecules.charges import PARAMETERS, charges
from gtx.molecules.crippen import crippen
from gtx.molecules.features import ATOM_COLUMNS, BOND_COLUMNS, Parts
from gtx.molecules.graphs import Graphs
from gtx.molecules.neighbours import Atoms
from gtx.molecules.quantum_numbers import quantum_numbers
from gtx.molecules.surface import surfaces

_PROPERTIES = (
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
_COUNTED = ("NumHBD", "NumHeteroatoms", "NumAmideBonds")  # SMARTS, to RDKit
_ASKED = [name for name in _PROPERTIES if name not in (*_COUNTED, "labuteASA")]
_ASK, _ASK_COUNTED = rd.Properties(_ASKED), rd.Properties(_COUNTED)

_LOGP_EDGES = (-0.4, -0.2, 0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)  # as in RDKit's `MolSurf.cpp`
_REFRACTIVITY_EDGES = (1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0)
_CHARGE_EDGES = (-0.3, -0.25, -0.2, -0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)

_HYDROGEN = 1  # codes
_NEUTRAL = bytes([ATOM_COLUMNS["charge"].index(0) + 1])
_ORDINARY = bytes(BOND_COLUMNS["type"].index(name) + 1 for name in ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC"))

DESCRIPTORS: tuple[str, ...] = (
    *_PROPERTIES,
    "CrippenLogP_heavy",
    "CrippenMR_heavy",
    *(f"SlogP_VSA{i}" for i in range(1, 13)),
    *(f"SMR_VSA{i}" for i in range(1, 11)),
    *(f"PEOE_VSA{i}" for i in range(1, 15)),
    *(f"MQN{i}" for i in range(1, 43)),
)
"""Names of what `descriptors` returns, in order: RDKit properties; Crippen's logP and molar
refractivity, contributions of heavy atoms alone; van der Waals surface (Å²) by ranges of these contributions and of
Gasteiger's charge; molecular quantum numbers (Nguyen et al. 2009)."""


class Rare(NamedTuple):
    """What RDKit says of a molecule whose codes do not say enough: one with hydrogen atoms, a great charge, odd bonds.

    Attributes:
        contributions: Crippen's logP and molar refractivity of each atom.
        numbers: the molecular quantum numbers.
        counts: `_COUNTED`.
    """

    contributions: Sequence[tuple[float, float]]
    numbers: Sequence[float]
    counts: Sequence[float]


class Measured(NamedTuple):
    """What RDKit is asked of one molecule; the rest follows from its graph.

    Attributes:
        properties: `_ASKED`.
        charged_surface: surface by ranges of charge, of a molecule with formal charges or unusual elements; or None.
        rare: see there; mostly None.
    """

    properties: Sequence[float]
    charged_surface: Sequence[float] | None
    rare: Rare | None


def measure(mol: Chem.Mol, parts: Parts) -> Measured:
    """What `tabulate` needs of one molecule, whose `parts_of` are given."""
    rare, charged = None, None
    element, charge, kind = parts.of_atoms("element"), parts.of_atoms("charge"), parts.of_bonds("type")
    if _HYDROGEN in element or 0 in charge or kind.translate(None, _ORDINARY):
        rare = Rare(rd._CalcCrippenContribs(mol), rd.MQNs_(mol), _ASK_COUNTED.ComputeProperties(mol))
    known = PARAMETERS.keys() >= set(zip(element, parts.of_atoms("hybridisation"), strict=True))
    if not known or charge.translate(None, _NEUTRAL):
        charged = _charged_surface(mol, known)
    return Measured(_ASK.ComputeProperties(mol), charged, rare)


def tabulate(graphs: Graphs, measured: Sequence[Measured]) -> np.ndarray:
    """Descriptors `DESCRIPTORS` of m molecules: float32 `[m, len(DESCRIPTORS)]`, NaN where RDKit cannot compute one."""
    atoms, m = Atoms(graphs), len(measured)
    surface, whole = surfaces(graphs, atoms)
    contributions = np.stack(crippen(atoms), 1)
    numbers = quantum_numbers(graphs, atoms)
    counts = _counts(graphs, atoms)

    def by_range(value: np.ndarray, edges: Sequence[float]) -> np.ndarray:
        bins = len(edges) + 1
        place = graphs.molecule * bins + np.digitize(value, edges)
        return np.bincount(place, surface, m * bins).reshape(m, bins)

    charged = by_range(charges(graphs, atoms), _CHARGE_EDGES)
    starts = np.cumsum(graphs.atom_counts) - graphs.atom_counts
    for k, one in enumerate(measured):
        if one.charged_surface is not None:
            charged[k] = one.charged_surface
        if one.rare is not None:
            contributions[starts[k] :][: graphs.atom_counts[k]], numbers[k], counts[k] = one.rare
    asked = np.array([one.properties for one in measured]).reshape(m, len(_ASKED))
    column = dict(zip((*_ASKED, *_COUNTED, "labuteASA"), (*asked.T, *counts.T, whole), strict=True))
    logp, refractivity = contributions.T
    values = np.concatenate(
        [
            np.stack([column[name] for name in _PROPERTIES], 1),
            np.stack([np.bincount(graphs.molecule, value, m) for value in (logp, refractivity)], 1),
            by_range(logp, _LOGP_EDGES),
            by_range(refractivity, _REFRACTIVITY_EDGES),
            charged,
            numbers,
        ],
        axis=1,
    )
    return np.where(abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)


def descriptors(mol: Chem.Mol) -> np.ndarray:
    """Descriptors `DESCRIPTORS` of one molecule: float32 `[len(DESCRIPTORS)]`, NaN where RDKit cannot compute one."""
    parts = parts_of(mol)
    return tabulate(Graphs.join([parts]), [measure(mol, parts)])[0]


def _counts(graphs: Graphs, atoms: Atoms) -> np.ndarray:
    """`_COUNTED` of m molecules, float64 `[m, 3]`: the SMARTS

    [N&!H0&v3, N&!H0&+1&v4, O&H1&+0, S&H1&+0, n&H1&+0]    [!#6;!#1]    C(=[O;!R])N
    """
    n, H, q, a, element = atoms.count, atoms.hydrogens, atoms.charge, atoms.aromatic, atoms.element
    C, N, oxygen, S = (~a & (element == z) for z in (6, 7, 8, 16))
    valence = H + n("-", ~a | a) + 2 * n("=", ~a | a) + 3 * n("#", ~a | a)
    ammonia = N & (H > 0) & ((valence == 3) | (q == 1) & (valence == 4))
    alcohol = (oxygen | S | a & (element == 7)) & (H == 1) & (q == 0)
    amides = C * n("=", oxygen & ~atoms.in_ring) * n("", N)
    found = (ammonia | alcohol, (element != 6) & (element != 1), amides)
    return np.stack([np.bincount(graphs.molecule, each, len(graphs.atom_counts)) for each in found], 1)


def _charged_surface(mol: Chem.Mol, known: bool) -> Sequence[float]:
    """PEOE_VSA by RDKit; atoms whose charge is NaN, for want of parameters, it would file under the last range."""
    if not known:
        try:
            rdPartialCharges.ComputeGasteigerCharges(mol, throwOnParamFailure=True)
        except ValueError:
            rdPartialCharges.ComputeGasteigerCharges(mol)
            if any(np.isnan(atom.GetDoubleProp("_GasteigerCharge")) for atom in mol.GetAtoms()):
                return [np.nan] * (len(_CHARGE_EDGES) + 1)
    return rd.PEOE_VSA_(mol)
