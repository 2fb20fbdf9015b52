"""Global features of a molecule: those of RDKit's two-dimensional descriptors that are cheap and order-independent.

All values are RDKit's, which takes longer to find them than to read the molecule. Here they are computed from the
graphs of many molecules at once, in compiled code; RDKit is asked about molecules that are out of the ordinary.

Left out for their cost, each as much as reading the molecule or more: Crippen's sums with hydrogens, chi and kappa
beyond order 1, BCUT. Left out because they depend on the order of atoms: AUTOCORR2D.
"""

from __future__ import annotations

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem import rdPartialCharges

from gtx.molecules.graphs import Graphs

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
_ASK = rd.Properties(_PROPERTIES)

_LOGP_EDGES = np.array([-0.4, -0.2, 0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6])  # as in RDKit's `MolSurf.cpp`
_REFRACTIVITY_EDGES = np.array([1.29, 1.82, 2.24, 2.45, 2.75, 3.05, 3.63, 3.8, 4.0])
_CHARGE_EDGES = np.array([-0.3, -0.25, -0.2, -0.15, -0.1, -0.05, 0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])

_TABLE = Chem.GetPeriodicTable()
RADII = np.array([_TABLE.GetRb0(element) for element in range(119)])
"""Of each element, in Å; 0 is a dummy atom."""

_WEIGHTS = np.array([_TABLE.GetAtomicWeight(element) for element in range(119)])
_ELECTRONS = np.array([0.0, *(_TABLE.GetNOuterElecs(element) for element in range(1, 119))])

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


def tabulate(graphs: Graphs) -> np.ndarray:
    """Descriptors from the graphs of m molecules, none of them `beyond`: float64 `[m, len(DESCRIPTORS)]`."""
    from gtx.molecules.charge_kernels import PARAMETERS, charges
    from gtx.molecules.count_kernels import groups, quantum_numbers
    from gtx.molecules.crippen_kernels import crippen
    from gtx.molecules.neighbour_kernels import look
    from gtx.molecules.property_kernels import PROPERTIES, properties
    from gtx.molecules.range_kernels import by_range, per_molecule
    from gtx.molecules.surface_kernels import surfaces

    near, ptr = look(graphs), graphs.atom_ptr
    surface, whole = surfaces(graphs, RADII)
    logp, refractivity = crippen(graphs, near)
    named = dict(zip(PROPERTIES, properties(graphs, near, _WEIGHTS, RADII, _ELECTRONS).T, strict=True))
    named |= zip(("NumHBD", "NumHeteroatoms", "NumAmideBonds"), groups(graphs, near).T, strict=True)
    named["labuteASA"] = whole
    return np.concatenate(
        [
            np.stack([named[name] for name in _PROPERTIES], 1),
            np.stack([per_molecule(ptr, logp), per_molecule(ptr, refractivity)], 1),
            by_range(ptr, logp, surface, _LOGP_EDGES),
            by_range(ptr, refractivity, surface, _REFRACTIVITY_EDGES),
            by_range(ptr, charges(graphs, PARAMETERS), surface, _CHARGE_EDGES),
            quantum_numbers(graphs, near),
        ],
        axis=1,
    )


def beyond(graphs: Graphs) -> np.ndarray:
    """Whether each molecule's graph does not say all: bool `[m]`.

    So it is with hydrogen atoms, isotopes, dummies, great charges, unusual bonds, and elements or hybridisations that
    Gasteiger and Marsili have no parameters for.
    """
    from gtx.molecules.charge_kernels import PARAMETERS
    from gtx.molecules.count_kernels import beyond

    return beyond(graphs, PARAMETERS)


def ask(mol: Chem.Mol) -> np.ndarray:
    """Descriptors of any molecule by RDKit's own functions, float64 `[len(DESCRIPTORS)]`; NaN where there is none."""
    contributions = np.array(rd._CalcCrippenContribs(mol)).reshape(-1, 2)
    parts = _ASK.ComputeProperties(mol), contributions.cumsum(0)[-1], rd.SlogP_VSA_(mol), rd.SMR_VSA_(mol)
    return np.concatenate([*map(list, parts), _charged_surface(mol), list(rd.MQNs_(mol))])


def rounded(values: np.ndarray) -> np.ndarray:
    """As float32, NaN where one cannot hold a value."""
    return np.where(abs(values) < np.finfo(np.float32).max, values, np.nan).astype(np.float32)


def descriptors(mol: Chem.Mol) -> np.ndarray:
    """Descriptors `DESCRIPTORS` of one molecule: float32 `[len(DESCRIPTORS)]`, NaN where RDKit cannot compute one."""
    graphs = Graphs.of([mol])
    return rounded(ask(mol) if beyond(graphs)[0] else tabulate(graphs)[0])


def _charged_surface(mol: Chem.Mol) -> list[float]:
    """PEOE_VSA; atoms whose charge is NaN, for want of parameters, RDKit would file under the last range."""
    try:
        rdPartialCharges.ComputeGasteigerCharges(mol, throwOnParamFailure=True)
    except ValueError:
        rdPartialCharges.ComputeGasteigerCharges(mol)
        if any(np.isnan(atom.GetDoubleProp("_GasteigerCharge")) for atom in mol.GetAtoms()):
            return [np.nan] * (len(_CHARGE_EDGES) + 1)
    return list(rd.PEOE_VSA_(mol))
