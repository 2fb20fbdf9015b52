"""The removal test: the change of a prediction when attention is removed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr
from torch import Tensor

# --- How attention depends on the distance along bonds.


def bond_distances(bonds: np.ndarray, num_atoms: int) -> np.ndarray:
    """The number of bonds on the shortest path between every two atoms.

    Args:
        bonds: int `[2, E]`, both directions of every bond.
        num_atoms: n.

    Returns:
        float64 `[n, n]`, infinite where no path connects them.
    """
    ones = np.ones(bonds.shape[1])
    return shortest_path(coo_array((ones, (bonds[0], bonds[1])), shape=(num_atoms, num_atoms)).tocsr(), unweighted=True)


def by_distance(weights: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean weight of all pairs that lie equally far apart.

    Args:
        weights: `[..., n, n]`, receivers in rows.
        distance: `[n, n]`, bonds on the shortest path, infinite where there is none.

    Returns:
        The distances that occur, `[D]`, ascending (0 is an atom with itself, infinity last), and the means `[..., D]`.
    """
    distances = np.unique(distance)
    return distances, np.stack([weights[..., distance == d].mean(-1) for d in distances], axis=-1)


# --- Weights of an edge list as matrices.


def dense(values: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """A value per edge and head as a matrix per head; 0 where there is no edge.

    Args:
        values: `[E, H]`.
        edge_index: int64 `[2, E]`, senders and receivers, no edge twice.
        num_nodes: n.

    Returns:
        `[H, n, n]`, receivers in rows and senders in columns.
    """
    sender, receiver = edge_index
    matrix = values.new_zeros(num_nodes, num_nodes, values.shape[1])
    return matrix.index_put((receiver, sender), values).permute(2, 0, 1)


# --- Do the atoms with the highest scores matter to the prediction? Take their attention away and see.


class Removal(NamedTuple):
    """Change of the prediction when the attention of k atoms is masked.

    Attributes:
        k: how many atoms lost their attention.
        change: of the prediction, for the k atoms with the highest scores.
        random: `[d]`, the changes for d random sets of k atoms.
    """

    k: int
    change: float
    random: np.ndarray

    @property
    def mean(self) -> float:
        """The size of a random change, on average."""
        return float(np.abs(self.random).mean())

    @property
    def sd(self) -> float:
        """The spread of that size."""
        return float(np.abs(self.random).std())

    @property
    def less(self) -> float:
        """The share of random removals that change the prediction less: chance gives about a half."""
        return float((np.abs(self.random) < abs(self.change) - 1e-9 * abs(self.change)).mean())


def faithfulness(
    change: Callable[[np.ndarray], np.ndarray],
    scores: Mapping[str, np.ndarray],
    sizes: tuple[int, ...] | None = None,
    draws: int = 50,
    seed: int = 0,
) -> dict[str, list[Removal]]:
    """Compare removing the atoms with the highest scores with removing as many random atoms.

    All scores meet the same random sets. Where there are no more than `draws` sets of k atoms, all of them are taken
    instead of random ones.

    Source: deletion tests of attributions, as in Samek et al. 2017 (arXiv:1509.06321), with random order as baseline.

    Args:
        change: from sets of atoms, bool `[m, n]`, to the change of the prediction `[m]` when each set is removed.
        scores: by name, `[n]`.
        sizes: how many atoms to remove, each from 1 to n - 1; default `set_sizes(n)`.
        draws: random sets for each size.
        seed: of the random sets.

    Returns:
        A table per score, one `Removal` per size; empty for a single atom, where there is nothing to compare.
    """
    n = len(next(iter(scores.values())))
    sizes = set_sizes(n) if sizes is None else sizes
    generator = np.random.default_rng(seed)
    randoms = {k: change(_random_sets(n, k, draws, generator)) for k in sizes}
    return {
        name: [Removal(k, float(change(_top(score, k)[None])[0]), randoms[k]) for k in sizes]
        for name, score in scores.items()
    }


def set_sizes(n: int) -> tuple[int, ...]:
    """One, two and three atoms, a quarter and a half of them."""
    return tuple(sorted({k for k in (1, 2, 3, n // 4, n // 2) if 1 <= k < n}))


def highest(scores: np.ndarray, k: int) -> np.ndarray:
    """The k atoms with the highest scores, int `[k]`; of equals (up to rounding, by symmetry) those that come first."""
    return np.argsort(-_rounded(scores), kind="stable")[:k]


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Spearman's rank correlation of two scores of n atoms; NaN where one is the same everywhere or n < 3."""
    one, other = _rounded(one), _rounded(other)
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(spearmanr(one, other).statistic)


def _rounded(scores: np.ndarray) -> np.ndarray:
    """Relative to the largest, so that atoms that are equal by symmetry are equal in number."""
    return np.round(scores / (np.abs(scores).max(initial=0) or 1), 9)


def _top(scores: np.ndarray, k: int) -> np.ndarray:
    return np.isin(np.arange(len(scores)), highest(scores, k))


def _random_sets(n: int, k: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """bool `[d, n]`, k atoms in each row."""
    if comb(n, k) <= draws:
        chosen = np.array(list(combinations(range(n), k)))
    else:
        chosen = generator.random((draws, n)).argsort(1)[:, :k]
    sets = np.zeros((len(chosen), n), dtype=bool)
    np.put_along_axis(sets, chosen, True, axis=1)
    return sets
