"""Surface of molecules by ranges of what their atoms contribute to a property, in compiled code."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit


@njit(cache=True, nogil=True)
def by_range(atom_ptr, value, surface, edges):
    """Surface of each molecule whose atoms' values are below the first edge, from it to the second, and so on.

    Args:
        atom_ptr: int64 `[m + 1]`; molecule k has atoms `atom_ptr[k]` to `atom_ptr[k + 1]`.
        value, surface: float64 `[N]`.
        edges: float64, ascending.

    Returns:
        float64 `[m, len(edges) + 1]`.
    """
    found = np.zeros((len(atom_ptr) - 1, len(edges) + 1))
    for k in range(len(found)):
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            place = 0
            while place < len(edges) and not value[i] < edges[place]:
                place += 1
            found[k, place] += surface[i]
    return found


@njit(cache=True, nogil=True)
def per_molecule(atom_ptr, value):
    """Sum of a value over the atoms of each molecule: float64 `[m]`."""
    found = np.zeros(len(atom_ptr) - 1)
    for k in range(len(found)):
        for i in range(atom_ptr[k], atom_ptr[k + 1]):
            found[k] += value[i]
    return found
