"""What each atom brings to a prediction: Shapley values of taking sets of atoms away."""

from __future__ import annotations

from collections.abc import Callable
from math import factorial
from typing import NamedTuple

import numpy as np

EXACT = 10
"""Up to so many players all their sets are taken, 1,024 of them."""


class Shapley(NamedTuple):
    """Shapley values of n players.

    Attributes:
        values: `[n]`; they sum to the worth of all players less that of none.
        errors: `[n]`, the standard error of each value where sets were drawn, 0 where all were taken.
        sets: how many sets were taken away.
    """

    values: np.ndarray
    errors: np.ndarray
    sets: int


def shapley(change: Callable[[np.ndarray], np.ndarray], players: int, permutations: int = 50, seed: int = 0) -> Shapley:
    r"""The mean of what a player adds to the players before it, over all orders of the players:

    \[ \phi_i = \sum_{S \not\ni i} \frac{|S|!\,(n - |S| - 1)!}{n!} \bigl(v(S \cup i) - v(S)\bigr) \]

    v(S) is the prediction with only the players S, so players that are alike have equal values, one that changes
    nothing has 0, and the values sum to v(all) - v(none) (efficiency).

    Up to `EXACT` players the sum is worked out. Above, orders are drawn, each together with its reverse; the values of
    one order sum to v(all) - v(none) too, and so does their mean.

    Sources: Shapley 1953; sampled orders: Castro et al. 2009 (10.1016/j.cor.2008.04.004), with reverses: Mitchell et
    al. 2022 (arXiv:2104.12199).

    Args:
        change: from sets of players, bool `[m, n]`, to the change of the prediction `[m]` when each set is taken away.
        players: how many there are, n.
        permutations: orders drawn, beside as many reverses; 2 or more.
        seed: of the orders.
    """
    return _exact(change, players) if players <= EXACT else _sampled(change, players, permutations, seed)


def _exact(change: Callable[[np.ndarray], np.ndarray], n: int) -> Shapley:
    sets = np.arange(2**n)
    present = (sets[:, None] >> np.arange(n)) % 2 == 1
    worth, size = change(~present), present.sum(1)
    weight = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])
    values = np.empty(n)
    for i in range(n):
        without = sets[~present[:, i]]
        values[i] = weight[size[without]] @ (worth[without | 1 << i] - worth[without])
    return Shapley(values, np.zeros(n), len(sets))


def _sampled(change: Callable[[np.ndarray], np.ndarray], n: int, permutations: int, seed: int) -> Shapley:
    generator = np.random.default_rng(seed)
    ends = change(np.array([[True] * n, [False] * n]))
    pairs = np.empty((permutations, n))
    for k in range(permutations):
        order = generator.permutation(n)
        gains = np.empty((2, n))
        for gain, players in zip(gains, (order, order[::-1]), strict=True):
            place = np.empty(n, dtype=int)
            place[players] = np.arange(n)
            absent = place[None] >= np.arange(1, n)[:, None]  # row s: all but the first s + 1
            gain[players] = np.diff(np.concatenate([ends[:1], change(absent), ends[1:]]))
        pairs[k] = gains.mean(0)
    errors = pairs.std(0, ddof=1) / np.sqrt(permutations)
    return Shapley(pairs.mean(0), errors, 2 * permutations * (n - 1) + 2)
