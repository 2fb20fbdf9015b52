"""Which molecules are alike and which are far apart, by the Tanimoto distance of their Morgan fingerprints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rdkit.DataStructs import ExplicitBitVect
from rdkit.ML.Cluster.Butina import ClusterData
from rdkit.SimDivFilters.rdSimDivPickers import MaxMinPicker
from scipy import sparse

from gtx.molecules.fingerprints import morgan_bits

CUTOFF = 0.6
"""Two molecules of this distance or less are neighbours; DeepChem's Butina splitter has the same."""
CHUNK = 256  # molecules that are compared with all before them at a time


def butina_clusters(texts: Sequence[str], cutoff: float = CUTOFF) -> np.ndarray:
    """The cluster of each molecule: int64 `[n]`, 0 for the one whose centre has most neighbours.

    The molecule with most neighbours takes them all, then, of those that are left, the next (Butina 1999,
    https://doi.org/10.1021/ci9803381, RDKit's code). Time and memory grow with n²: 20,000 molecules take 400 MB.

    Args:
        texts: n SMILES; their order decides ties.
        cutoff: the largest Tanimoto distance of neighbours, of Morgan bits (radius 2, 2048 bits).
    """
    n = len(texts)
    far = np.empty((n, n), bool)
    for start, similarity in _similarities(morgan_bits(texts)):
        rows, before = slice(start, start + len(similarity)), slice(similarity.shape[1])
        far[rows, before] = similarity < 1 - cutoff
        far[before, rows] = far[rows, before].T
    cluster = np.empty(n, np.int64)
    for number, members in enumerate(ClusterData(far, n, 0.5, isDistData=True)):
        cluster[list(members)] = number
    return cluster


def kennard_stone_order(texts: Sequence[str], count: int) -> list[int]:
    """The first `count` molecules in the order of Kennard and Stone: numbers of `texts`.

    The two that are furthest apart come first, then always the one whose nearest among those before is furthest
    (Kennard & Stone 1969, https://doi.org/10.1080/00401706.1969.10490666), by Tanimoto distance of Morgan bits (radius
    2, 2048 bits). RDKit's MaxMin picker does the second part.

    Args:
        texts: n SMILES, 2 or more; their order decides ties.
        count: 2 to n.
    """
    prints = morgan_bits(texts)
    return list(MaxMinPicker().LazyBitVectorPick(prints, len(prints), count, firstPicks=_furthest(prints)))


def _furthest(prints: Sequence[ExplicitBitVect]) -> list[int]:
    """The first of the pairs that are furthest apart."""
    pair, least = [0, 1], np.inf
    for start, similarity in _similarities(prints):
        if similarity.min() < least:
            i, j = np.unravel_index(similarity.argmin(), similarity.shape)
            pair, least = [start + int(i), int(j)], similarity.min()
        if least == 0:
            break
    return pair


def _similarities(prints: Sequence[ExplicitBitVect]) -> Iterator[tuple[int, np.ndarray]]:
    """Tanimoto similarities of all pairs: for molecules `start` to `start + k` the rows `[k, start + k]`."""
    on = [np.array(one.GetOnBits()) for one in prints]
    sizes, bits = np.array([len(one) for one in on]), prints[0].GetNumBits()
    ptr = np.concatenate([[0], sizes.cumsum()])
    shape = (len(on), bits)
    matrix = sparse.csr_array((np.ones(ptr[-1], np.float32), np.concatenate(on), ptr), shape)
    for start in range(0, len(on), CHUNK):
        some = slice(start, start + CHUNK)
        common = (matrix[some] @ matrix[: start + CHUNK].T).toarray()
        yield start, common / (sizes[some, None] + sizes[: start + CHUNK] - common)
