"""Descriptors, named features that a model may read, fingerprints, scaffolds, substructures and clusters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import Descriptors, rdMolDescriptors, rdPartialCharges
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem.BRICS import FindBRICSBonds
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
from rdkit.DataStructs import BulkTanimotoSimilarity, ExplicitBitVect
from rdkit.ML.Cluster.Butina import ClusterData

from gtx.molecules.graphs import FeaturisedMolecules
from gtx.molecules.reactions import read_largest, read_sides
from gtx.molecules.reading import MoleculeError, molecule_text, shortened

# --- RDKit's two-dimensional descriptors, all but four.
#
# `compute_descriptors` holds those cheap enough to be read with every molecule.

LEFT_OUT = ("Ipc", "AvgIpc", "qed", "SPS")
"""Ipc overflows and AvgIpc takes as long; qed is a function of the others; SPS takes as long as a hundred of them."""

_ELECTROTOPOLOGICAL = ("MaxEStateIndex", "MinEStateIndex", "MaxAbsEStateIndex", "MinAbsEStateIndex")
_FUNCTIONS: dict[str, Callable[[Chem.Mol], float]] = dict(Descriptors.descList)

RDKIT_DESCRIPTORS: tuple[str, ...] = (
    *(name for name in _FUNCTIONS if name not in (*LEFT_OUT, *_ELECTROTOPOLOGICAL)),
    *_ELECTROTOPOLOGICAL,
)
"""RDKit's names of the descriptors of `rdkit_descriptors`, in order."""


def rdkit_descriptors(mol: Chem.Mol) -> np.ndarray:
    """Compute `RDKIT_DESCRIPTORS` of a molecule: float64 `[K]`, NaN where RDKit has no finite value; some 5 ms."""
    values = np.full(len(RDKIT_DESCRIPTORS), np.nan)
    for i, name in enumerate(RDKIT_DESCRIPTORS):
        with suppress(ValueError, RuntimeError, ZeroDivisionError):
            values[i] = _FUNCTIONS[name](mol)
    return np.where(np.isfinite(values), values, np.nan)


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

PROPERTIES = rd.Properties(PROPERTY_NAMES)

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
                PROPERTIES.ComputeProperties(mol),
                contributions.cumsum(0)[-1],
                rd.SlogP_VSA_(mol),
                rd.SMR_VSA_(mol),
                charged_surface(mol),
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


def charged_surface(mol: Chem.Mol) -> list[float]:
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


# --- Fingerprints, for baselines and splits.


def morgan_counts(texts: Any, radius: int = 2, bits: int = 2048) -> np.ndarray:
    """Compute Morgan count fingerprints: uint8 `[len(texts), bits]`, clipped at 255.

    The fingerprints are Morgan fingerprints (Rogers and Hahn 2010, 10.1021/ci100050t) with counts, folded, without
    chirality. Those of a reaction are those of its reactants, in the first half of the bits, and of its products.

    Args:
        texts: SMILES or RDKit molecules: a list, an array, a column, or a table or array of one column.
        radius: radius of the substructures, in bonds; radius 2 corresponds to ECFP4.
        bits: length of the fingerprint.

    Raises:
        MoleculeError: a SMILES cannot be read; the message names it.
    """
    inputs = list(_read(texts))
    counts = np.zeros((len(inputs), bits), dtype=np.uint8)
    for row, sides in zip(counts, inputs, strict=True):
        for half, mol in zip(np.array_split(row, len(sides)), sides, strict=True):
            generator = GetMorganGenerator(radius=radius, fpSize=len(half))
            half[:] = np.minimum(generator.GetCountFingerprintAsNumPy(mol), 255)
    return counts


def morgan_bits(texts: Any) -> list[ExplicitBitVect]:
    """Compute binary Morgan fingerprints (radius 2, 2048 bits) as RDKit bit vectors, of reactions too."""
    prints = []
    for sides in _read(texts):
        generator = GetMorganGenerator(radius=2, fpSize=2048 // len(sides))
        prints.append(reduce(add, map(generator.GetFingerprint, sides)))
    return prints


def _read(texts: Any) -> Iterator[tuple[Chem.Mol, ...]]:
    """Yield the molecule of each text, or the two sides of a reaction."""
    if isinstance(texts, str):  # whose letters would be molecules
        raise MoleculeError(f"expected SMILES [n], got one text, {shortened(texts)!r}")
    column = np.asarray(texts if hasattr(texts, "__array__") else list(texts), dtype=object)
    if column.ndim == 2 and column.shape[1] == 1:
        column = column[:, 0]
    if column.ndim != 1:
        raise MoleculeError(f"expected SMILES [n], or a table of one column, got one of shape {list(column.shape)}")
    for i, text in enumerate(column):
        try:
            yield (text,) if isinstance(text, Chem.Mol) else read_sides(molecule_text(text) or "")
        except MoleculeError as reason:
            raise MoleculeError(f"number {i}, counted from 0: {text!r} {reason}") from None


# --- Bemis-Murcko scaffolds: rings and their linkers.


def murcko_scaffold(molecule: str | Chem.Mol) -> str:
    """Return the Bemis-Murcko scaffold of a molecule as canonical SMILES without stereochemistry; empty without a ring.

    The scaffold of Bemis and Murcko (1996, 10.1021/jm9602928) as MoleculeNet uses it: rings, the chains between them
    and atoms doubly bonded to either. The scaffold of a reaction is that of its largest reactant.

    Raises:
        MoleculeError: the SMILES cannot be read, or what is left of it is no molecule for RDKit.
    """
    mol = read_largest(molecule) if isinstance(molecule, str) else molecule
    try:
        with rdBase.BlockLogs():
            return MurckoScaffoldSmiles(mol=mol)
    except (RuntimeError, ValueError) as error:
        raise MoleculeError.because("has no scaffold", error) from None


# --- BRICS fragments: the substructures between bonds that synthesis makes.


def assign_substructures(*molecules: Chem.Mol) -> np.ndarray:
    """Divide molecules at their BRICS bonds (Degen et al. 2008, 10.1002/cmdc.200800178).

    Returns the number of the substructure of each atom of the molecules, one after the other, int `[n]`, from 0.
    """
    mol = reduce(Chem.CombineMols, molecules)
    Chem.GetSymmSSSR(mol)  # which several molecules lose
    cut = {frozenset(ends) for ends, _ in FindBRICSBonds(mol)}
    group = np.arange(mol.GetNumAtoms())
    for bond in mol.GetBonds():
        one, other = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        if frozenset((one, other)) not in cut:
            group[group == group[other]] = group[one]
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    return first.argsort().argsort()[number]


# --- Clusters of molecules, by the Tanimoto distance of Morgan fingerprints.

CUTOFF = 0.6
"""Two molecules of this distance or less are neighbours; DeepChem's Butina splitter has the same."""


def butina_clusters(texts: Sequence[str], cutoff: float = CUTOFF) -> np.ndarray:
    """Cluster molecules by the Butina algorithm: int64 `[n]`, 0 for the cluster whose centre has most neighbours.

    The molecule with most neighbours and its neighbours form the first cluster; the next clusters are formed in the
    same way from the remaining molecules (Butina 1999, https://doi.org/10.1021/ci9803381, RDKit's code). Time and
    memory grow with n²: 20,000 molecules take 400 MB.

    Args:
        texts: n SMILES; ties are resolved by their order.
        cutoff: largest Tanimoto distance of neighbours, of Morgan bits (radius 2, 2048 bits).
    """
    prints, n = morgan_bits(texts), len(texts)
    far = np.zeros((n, n), bool)
    for i, one in enumerate(prints):
        far[i, :i] = far[:i, i] = np.array(BulkTanimotoSimilarity(one, prints[:i])) < 1 - cutoff
    cluster = np.empty(n, np.int64)
    for number, members in enumerate(ClusterData(far, n, 0.5, isDistData=True)):
        cluster[list(members)] = number
    return cluster
