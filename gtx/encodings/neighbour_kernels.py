"""Compiled loops over the bonds of a batch."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit


@njit(cache=True, nogil=True)
def neighbours(sender, receiver, batch, once):
    """The first edge that leaves its molecule (or -1), and the edges by receiver: `Neighbours`."""
    num_nodes, num_edges = len(batch), len(sender)
    start = np.zeros(num_nodes + 1, np.int64)
    senders, edges = np.empty(num_edges, np.int64), np.empty(num_edges, np.int64)
    for e in range(num_edges):
        if leaves_molecule(sender[e], receiver[e], batch):
            return e, start, senders, edges
        start[receiver[e] + 1] += 1
    for r in range(num_nodes):
        start[r + 1] += start[r]
    place = start[:-1].copy()
    for e in range(num_edges):
        at = place[receiver[e]]
        senders[at], edges[at] = sender[e], e
        place[receiver[e]] += 1
    if once:
        kept, begin = 0, 0
        met = np.full(num_nodes, -1)  # the last receiver that each node was found to send to
        for r in range(num_nodes):
            end = start[r + 1]
            for at in range(begin, end):
                if met[senders[at]] != r:
                    met[senders[at]] = r
                    senders[kept], edges[kept] = senders[at], edges[at]
                    kept += 1
            begin, start[r + 1] = end, kept
    return -1, start, senders, edges


@njit(cache=True, nogil=True)
def mark(sender, receiver, codes, batch, ptr, pair_ptr, marked):
    """Write the codes `[E, F]` of each bond, plus one, to its pair in `marked` `[num_pairs, F]`.

    Returns:
        The first edge that leaves its molecule, where the loop stops, or -1.
    """
    for e in range(len(sender)):
        if leaves_molecule(sender[e], receiver[e], batch):
            return e
        graph = batch[receiver[e]]
        first = ptr[graph]
        pair = pair_ptr[graph] + (receiver[e] - first) * (ptr[graph + 1] - first) + sender[e] - first
        for f in range(codes.shape[1]):
            marked[pair, f] = codes[e, f] + 1
    return -1


@njit(cache=True, nogil=True)
def leaves_molecule(s, r, batch):
    """Whether s and r are not two nodes of one molecule."""
    return min(s, r) < 0 or max(s, r) >= len(batch) or batch[s] != batch[r]
