"""Descriptors of the bonds and rings of many molecules, in compiled loops."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit

_DEGREE, _RING, _IN_RING = 3, 6, 3  # columns of atoms, of bonds
_LARGEST_DEGREE, _LARGEST_RING, _NO_RING = 8, 24, 1_000_000


@njit(cache=True, nogil=True)
def follow(atoms, tags, bonds, ends, rings, atom_ptr, bond_ptr, ring_ptr, member_ptr):
    """Fill the columns "degree" and "ring" of atoms and "ring" of bonds.

    Args:
        atoms, tags, bonds, ends, rings, atom_ptr, bond_ptr, ring_ptr, member_ptr: as in `Graphs`.

    Returns:
        The other arrays of it: near_ptr, near_atoms, near_bonds, atom_rings, bond_rings, ring_bonds.
    """
    near_ptr = np.zeros(len(atoms) + 1, np.int64)
    near_atoms, near_bonds = np.zeros(2 * len(bonds), np.int32), np.zeros(2 * len(bonds), np.int32)
    atom_rings, bond_rings = np.zeros(len(atoms), np.int32), np.zeros(len(bonds), np.int32)
    ring_bonds = np.zeros(len(rings), np.int32)
    smallest = np.full(len(atoms), _NO_RING)
    filled = np.zeros(len(atoms), np.int64)
    for k in range(len(atom_ptr) - 1):
        i, b = atom_ptr[k], bond_ptr[k]
        for bond in range(b, bond_ptr[k + 1]):
            near_ptr[i + ends[bond, 0] + 1] += 1
            near_ptr[i + ends[bond, 1] + 1] += 1
        for atom in range(i, atom_ptr[k + 1]):
            degree = near_ptr[atom + 1]
            atoms[atom, _DEGREE] = degree + 1 if degree <= _LARGEST_DEGREE else 0
            near_ptr[atom + 1] += near_ptr[atom]
        for bond in range(b, bond_ptr[k + 1]):
            for side in range(2):
                atom = i + ends[bond, side]
                to = near_ptr[atom] + filled[atom]
                near_atoms[to], near_bonds[to] = ends[bond, 1 - side], bond - b
                filled[atom] += 1
        for ring in range(ring_ptr[k], ring_ptr[k + 1]):
            first, last = member_ptr[ring], member_ptr[ring + 1] - 1
            before = rings[last]
            for j in range(first, last + 1):
                here = rings[j]
                atom_rings[i + here] += 1
                smallest[i + here] = min(smallest[i + here], last + 1 - first)
                for to in range(near_ptr[i + here], near_ptr[i + here + 1]):
                    if near_atoms[to] == before:
                        bond_rings[b + near_bonds[to]] += 1
                        ring_bonds[j] = near_bonds[to]
                before = here
        for atom in range(i, atom_ptr[k + 1]):
            size = smallest[atom]
            atoms[atom, _RING] = 1 if size == _NO_RING else size - 1 if size <= _LARGEST_RING else 0
        for bond in range(b, bond_ptr[k + 1]):
            bonds[bond, _IN_RING] = 2 if bond_rings[bond] else 1
    return near_ptr, near_atoms, near_bonds, atom_rings, bond_rings, ring_bonds
