"""Groups of molecules that are alike, and an order of molecules that are unlike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtx.data.splits import Split, ordered_split, part_counts
from gtx.errors import InputError
from gtx.molecules import butina_clusters, kennard_stone_order, morgan_counts

MOST_COMPARED = 20_000
"""Of so many different molecules all pairs are compared: half a minute and 400 MB."""
MOST_CLUSTERS = 100  # of k-means, and no more than a tenth of the molecules
CHUNK = 10_000  # molecules whose fingerprints are written out at a time


def cluster_groups(smiles: Sequence[str]) -> list[str]:
    """The Butina cluster of each row, see `gtx.molecules.butina_clusters`. The order of rows changes no cluster.

    Args:
        smiles: canonical SMILES per row.

    Raises:
        InputError: more than `MOST_COMPARED` different molecules.
    """
    molecules, row = _different(smiles)
    _check_number(molecules, "clusters", "split by 'kmeans' or 'scaffold'")
    return [str(cluster) for cluster in butina_clusters(molecules)[row]]


def kmeans_groups(smiles: Sequence[str], seed: int = 0) -> list[str]:
    """The cluster of each row by k-means of Morgan bits (radius 2, 2048 bits), by scikit-learn's `KMeans`.

    There is a cluster for ten different molecules, at least 3 and at most 100. The order of rows changes no cluster.
    Time and memory grow with the number of rows: 6,000 molecules of ZINC take 2 s on one core.

    Args:
        smiles: canonical SMILES per row.
        seed: of the first centres.
    """
    from scipy import sparse
    from sklearn.cluster import KMeans

    molecules, row = _different(smiles)
    chunks = (morgan_counts(molecules[start : start + CHUNK]) > 0 for start in range(0, len(molecules), CHUNK))
    bits = sparse.vstack([sparse.csr_array(chunk.astype(np.float32)) for chunk in chunks], format="csr")
    clusters = min(len(molecules), max(3, min(MOST_CLUSTERS, len(molecules) // 10)))
    labels = KMeans(clusters, n_init=1, random_state=seed).fit_predict(bits)
    return [str(cluster) for cluster in labels[row]]


def kennard_stone_split(smiles: Sequence[str], sizes: Sequence[float] = (0.8, 0.1, 0.1), seed: int = 0) -> Split:
    """The most unlike molecules train; of the others, all near to one of these, chance decides which validate.

    It is the easiest test: the model is never asked far from what it knows. See `gtx.molecules.kennard_stone_order`.
    All rows of a molecule are in one part.

    Args:
        smiles: canonical SMILES per row.
        sizes: as in `random_split`.
        seed: of the molecules that validate or are test.

    Raises:
        InputError: bad sizes, fewer than three different molecules, or more than `MOST_COMPARED`.
    """
    molecules, row = _different(smiles)
    _check_number(molecules, "an order of Kennard and Stone", "split by 'random' or 'kmeans'")
    train = part_counts(len(smiles), sizes)[0]
    picked = kennard_stone_order(molecules, min(len(molecules), max(2, train))) if len(molecules) > 1 else []
    rows_each = np.bincount(row)
    picked = picked[: 1 + int(np.searchsorted(rows_each[picked].cumsum(), train))]  # some molecules have several rows
    rest = np.setdiff1d(np.arange(len(molecules)), picked)
    order = np.concatenate([np.array(picked, int), np.random.default_rng(seed).permutation(rest)])
    held = np.split(np.argsort(row, kind="stable"), rows_each.cumsum()[:-1])
    return ordered_split([held[molecule] for molecule in order], sizes, "molecules")


def _different(smiles: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """The different molecules, sorted, and of each row the number of its molecule."""
    molecules, row = np.unique(np.array(smiles, dtype=object), return_inverse=True)
    return molecules.tolist(), row


def _check_number(molecules: Sequence[str], what: str, instead: str) -> None:
    if len(molecules) > MOST_COMPARED:
        found = f"there are {len(molecules):,} different ones: {instead}"
        raise InputError(f"{what} of molecules can be had of up to {MOST_COMPARED:,} different ones, and {found}")
