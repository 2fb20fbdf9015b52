"""Similarity of test molecules to the training molecules, on which prediction errors depend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

MOST_SCORED, MOST_TRAINED = 1_000, 20_000  # of more molecules, as many are drawn at random: ten seconds of work at most
CHUNK = 100  # scored molecules at a time
NEARLY_SAME = 0.9


@dataclass(frozen=True)
class NearestNeighbours:
    """Most similar training molecule (nearest neighbour) of each of m other molecules, with its Tanimoto similarity.

    Attributes:
        rows: rows of the m molecules, int `[m]`, ascending.
        similarity: Tanimoto similarity of each molecule to its nearest neighbour, `[m]`.
        neighbour: row of the nearest neighbour of each molecule, int `[m]`.
    """

    rows: np.ndarray
    similarity: np.ndarray
    neighbour: np.ndarray

    def summary(self) -> str:
        """Summarise the similarities: `median 0.45, for 80 % of them 0.31 to 0.72; 0.9 or more for 2 %`."""
        low, middle, high = np.quantile(self.similarity, [0.1, 0.5, 0.9])
        alike = (self.similarity >= NEARLY_SAME).mean()
        usual = f"median {middle:.2f}, for 80 % of them {low:.2f} to {high:.2f}"
        return f"{usual}; {NEARLY_SAME} or more for {100 * alike:.0f} %"


def find_nearest_neighbours(
    smiles: Sequence[str], split: Mapping[str, np.ndarray], scored: str = "test", rows: np.ndarray | None = None
) -> NearestNeighbours:
    """Find the most similar training molecule of each test molecule, by Morgan count fingerprints (radius 2, 2048
    bits).

    Args:
        smiles: canonical SMILES of each row.
        split: row indices by name.
        scored: name of the part of the split that is compared with "train"; neither part is empty.
        rows: rows of the part that are compared; by default a sample, see `sample_rows`.
    """
    from gtx.molecules import morgan_counts

    sample, trained = sample_rows(split, scored)
    rows = sample if rows is None else rows
    counts = (sparse.csr_array(morgan_counts([smiles[row] for row in some])) for some in (rows, trained))
    similarity, index = find_most_similar(*counts)
    return NearestNeighbours(rows, similarity, trained[index])


def find_most_similar(counts: sparse.csr_array, others: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    r"""Find for each of m count fingerprints the most similar of n other fingerprints, by Tanimoto similarity.

    The function returns the Tanimoto similarity and the index of the most similar fingerprint, `[m]` each.

    Of counts a and b it is \(\sum_k \min(a_k, b_k) / \sum_k \max(a_k, b_k)\), where min(a, b) is the number of levels
    1, 2, 3 and so on that both a and b reach: a product of sparse matrices of zeros and ones.
    """
    top = int(min(counts.max(), others.max()))
    ours, theirs = (
        sparse.hstack([matrix >= level for level in range(1, top + 1)], format="csr").astype(np.float32)
        for matrix in (counts, others)
    )
    sizes, sizes_of_others = (np.asarray(matrix.sum(axis=1, dtype=np.float64)) for matrix in (counts, others))
    best, index = [], []
    for start in range(0, len(sizes), CHUNK):
        shared = (ours[start : start + CHUNK] @ theirs.T).toarray()
        similar = shared / (sizes[start : start + CHUNK, None] + sizes_of_others - shared)
        index.append(similar.argmax(axis=1))
        best.append(similar.max(axis=1))
    return np.concatenate(best), np.concatenate(index)


def sample_rows(split: Mapping[str, np.ndarray], scored: str) -> tuple[np.ndarray, np.ndarray]:
    """Sample the rows that are compared: test rows and training rows."""
    return _sample(split[scored], MOST_SCORED), _sample(split["train"], MOST_TRAINED)


def _sample(rows: np.ndarray, most: int) -> np.ndarray:
    return np.sort(rows if len(rows) <= most else np.random.default_rng(0).choice(rows, most, replace=False))
