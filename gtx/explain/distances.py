"""How attention depends on the distance along bonds."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path


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
