"""Substructures: fingerprints, scaffolds, fragments, peelings and diverse subsets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem.BRICS import FindBRICSBonds
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles
from rdkit.DataStructs import BulkTanimotoSimilarity, ExplicitBitVect
from rdkit.ML.Cluster.Butina import ClusterData

from gtx.molecules.reactions import read_largest, read_sides
from gtx.molecules.reading import MoleculeError, molecule_text

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


def assign_substructures(mol: Chem.Mol) -> np.ndarray:
    """Divide a molecule at its BRICS bonds (Degen et al. 2008, 10.1002/cmdc.200800178).

    Returns the number of the substructure of each atom, int `[n]`, from 0.
    """
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
