"""Relevance of atoms from the attention of all layers, and its test by removal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from scipy.stats import spearmanr
from torch import Tensor

# --- One score per atom from the attention of all layers.


def attention_rollout(weights: Tensor) -> Tensor:
    r"""Compute attention rollout: the share of each node's final state that comes from each other node.

    In each layer, attention and the residual connection have equal weight.

    \[ R = \tilde A^{(L)} \cdots \tilde A^{(2)} \tilde A^{(1)}, \qquad \tilde A = \tfrac12 A + \tfrac12 I \]

    The matrix A is the mean over heads. Values, norms and MLPs are not used.

    Source: Abnar & Zuidema 2020 (arXiv:2005.00928), eq. 1 and section 3.

    Args:
        weights: attention weights `[L, n, n]`, one matrix per layer from the first to the last, with receivers in rows.

    Returns:
        The shares `[n, n]`, with receivers of the last layer in rows and senders of the first layer in columns. If
        every row of the weights sums to 1, every row of the result sums to 1.
    """
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    reached = eye
    for layer in weights:
        reached = (0.5 * layer + 0.5 * eye) @ reached
    return reached


def gradient_weighted_attention(weights: Tensor, gradients: Tensor) -> Tensor:
    r"""Compute gradient-weighted attention: each attention weight times its gradient, where the product is positive.

    \[ \bar A = \tfrac1H \sum_h (\nabla A_h \circ A_h)^+, \qquad R \leftarrow R + \bar A R, \qquad R_0 = I \]

    layer by layer from the first; what is returned is \(R - I\), the part that went through attention.

    Source: Chefer, Gur & Wolf 2021 (arXiv:2103.15679), eqs. 5 and 6.

    Args:
        weights: `[L, H, n, n]`, receivers in rows.
        gradients: `[L, H, n, n]`, of one output by each of the weights.

    Returns:
        `[n, n]`, never negative, receivers in rows.
    """
    eye = torch.eye(weights.shape[-1], dtype=weights.dtype, device=weights.device)
    relevance = eye
    for layer in (gradients * weights).clamp(min=0).mean(1):
        relevance = relevance + layer @ relevance
    return relevance - eye


# --- How attention depends on the distance along bonds.


def shortest_path_lengths(bonds: np.ndarray, num_atoms: int) -> np.ndarray:
    """Count the bonds on the shortest path between every two of n atoms, float64 `[n, n]`, infinite without one, from
    both directions of every bond, int `[2, E]`.
    """
    ones = np.ones(bonds.shape[1])
    return shortest_path(coo_array((ones, (bonds[0], bonds[1])), shape=(num_atoms, num_atoms)).tocsr(), unweighted=True)


def average_attention_by_distance(weights: np.ndarray, distance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Average attention weights over all pairs of atoms that are the same number of bonds apart.

    Args:
        weights: `[..., n, n]`, receivers in rows.
        distance: `[n, n]`, bonds on the shortest path, infinite where there is none.

    Returns:
        The distances that occur, `[D]`, ascending (0 is an atom with itself, infinity last), and the means `[..., D]`.
    """
    distances = np.unique(distance)
    return distances, np.stack([weights[..., distance == d].mean(-1) for d in distances], axis=-1)


# --- The removal test: the change of the prediction without the attention of the atoms with the highest scores.


class AtomRemovalEffect(NamedTuple):
    """Change of a prediction when the k atoms with the highest scores, or k random atoms, are masked."""

    k: int
    change: float  # for the k atoms with the highest scores
    random: np.ndarray  # for d random sets of k atoms, [d]

    @property
    def mean(self) -> float:
        """Mean size of the random changes."""
        return float(np.abs(self.random).mean())

    @property
    def sd(self) -> float:
        """Standard deviation of the size of the random changes."""
        return float(np.abs(self.random).std())

    @property
    def less(self) -> float:
        """Share of random removals that change the prediction less; about a half by chance."""
        return float((np.abs(self.random) < abs(self.change) - 1e-9 * abs(self.change)).mean())


def measure_faithfulness(
    change: Callable[[np.ndarray], np.ndarray],
    scores: Mapping[str, np.ndarray],
    draws: int = 50,
    seed: int = 0,
) -> dict[str, list[AtomRemovalEffect]]:
    """Measure whether removing the atoms with the highest scores changes the prediction more than removing random
    atoms.

    One, two and three atoms, a quarter and a half of the n atoms are removed. All scores are compared with the same
    random sets. If there are at most `draws` sets of k atoms, all sets are used instead of random sets.

    Source: deletion tests of attributions, as in Samek et al. 2017 (arXiv:1509.06321), with random order as baseline.

    Args:
        change: function from sets of atoms, bool `[m, n]`, to the change of the prediction `[m]` when each set is
            removed.
        scores: atom scores by name, `[n]` each.
        draws: number of random sets for each size.
        seed: seed of the random sets.

    Returns:
        A table per score, one `AtomRemovalEffect` per size; empty for a single atom, where there is nothing to compare.
    """
    n = len(next(iter(scores.values())))
    sizes = sorted({k for k in (1, 2, 3, n // 4, n // 2) if 1 <= k < n})
    generator = np.random.default_rng(seed)
    randoms = {k: change(_random_sets(n, k, draws, generator)) for k in sizes}

    def effect(score: np.ndarray, k: int) -> AtomRemovalEffect:
        top = np.isin(np.arange(n), highest(score, k))
        return AtomRemovalEffect(k, float(change(top[None])[0]), randoms[k])

    return {name: [effect(score, k) for k in sizes] for name, score in scores.items()}


def highest(scores: np.ndarray, k: int) -> np.ndarray:
    """Find the k atoms with the highest scores, int `[k]`; of equals (up to rounding, by symmetry) the first."""
    return np.argsort(-_rounded(scores), kind="stable")[:k]


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Compute Spearman's rank correlation of two scores of n atoms; NaN if one is constant or n < 3."""
    one, other = _rounded(one), _rounded(other)
    if len(one) < 3 or np.ptp(one) == 0 or np.ptp(other) == 0:
        return float("nan")
    return float(spearmanr(one, other).statistic)


def _rounded(scores: np.ndarray) -> np.ndarray:
    """Round scores relative to the largest, so that atoms that are equal by symmetry have equal scores."""
    return np.round(scores / (np.abs(scores).max(initial=0) or 1), 9)


def _random_sets(n: int, k: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Draw sets of k atoms, bool `[d, n]`."""
    if comb(n, k) <= draws:
        chosen = np.array(list(combinations(range(n), k)))
    else:
        chosen = generator.random((draws, n)).argsort(1)[:, :k]
    sets = np.zeros((len(chosen), n), dtype=bool)
    np.put_along_axis(sets, chosen, True, axis=1)
    return sets
