"""Compiled loops that cut molecules out of a store."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit


@njit(cache=True, nogil=True)
def cut(index, atom_ptr, bond_ptr, atoms, bonds, bond_codes, descriptors, positions, y):
    """Concatenate the molecules `index`, one table after the other, as `gtx.data.MoleculeStore.batch` describes them.

    Returns:
        The offsets of bonds, `ptr`, `x`, `edge_index`, `edge_attr`, `u`, `batch`, `pos`, `y`.

    Raises:
        IndexError: a number that no molecule has.
    """
    count = len(index)
    for i in index:
        if i < 0 or i >= len(atom_ptr) - 1:
            raise IndexError("no molecule has this number")
    ptr, bond_at = offsets(index, atom_ptr), offsets(index, bond_ptr)
    num_nodes, num_bonds = ptr[-1], bond_at[-1]

    x = np.empty((num_nodes, atoms.shape[1]), np.int64)
    copy(atoms.reshape(-1), x.reshape(-1), atoms.shape[1], index, atom_ptr, ptr)
    pos = np.empty((num_nodes, positions.shape[1]), np.float32)
    copy(positions.reshape(-1), pos.reshape(-1), positions.shape[1], index, atom_ptr, ptr)
    edge_attr = np.empty((num_bonds, bond_codes.shape[1]), np.int64)
    copy(bond_codes.reshape(-1), edge_attr.reshape(-1), bond_codes.shape[1], index, bond_ptr, bond_at)

    batch = np.empty(num_nodes, np.int64)
    u = np.empty((count, descriptors.shape[1]), np.float32)
    targets = np.empty((count, y.shape[1]), np.float32)
    edge_index = np.empty((2, num_bonds), np.int64)
    for b in range(count):
        batch[ptr[b] : ptr[b + 1]] = b
    for b, i in enumerate(index):
        for d in range(u.shape[1]):
            u[b, d] = descriptors[i, d]
        for t in range(targets.shape[1]):
            targets[b, t] = y[i, t]
    for end in range(2):
        for b, i in enumerate(index):
            first, old, new = ptr[b], bonds[end, bond_ptr[i] :], edge_index[end, bond_at[b] :]
            for e in range(bond_at[b + 1] - bond_at[b]):
                new[e] = first + old[e]
    return bond_at, ptr, x, edge_index, edge_attr, u, batch, pos, targets


@njit(cache=True, nogil=True)
def offsets(index, ptr):
    """Compute the offsets of the concatenated molecules `index`, the end of the last included."""
    starts = np.zeros(len(index) + 1, np.int64)
    for b, i in enumerate(index):
        starts[b + 1] = starts[b] + ptr[i + 1] - ptr[i]
    return starts


@njit(cache=True, nogil=True)
def copy(source, goal, columns, index, ptr, starts):
    """Copy the rows of the molecules `index`, concatenated, from one flat table to another."""
    for b, i in enumerate(index):
        old, new = source[ptr[i] * columns :], goal[starts[b] * columns :]
        for k in range((starts[b + 1] - starts[b]) * columns):
            new[k] = old[k]
