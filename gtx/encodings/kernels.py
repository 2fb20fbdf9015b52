"""Compiled loops of the encodings: bonds of a batch, shortest paths and random walks."""

from __future__ import annotations

import numpy as np
from numba import njit

from gtx.base.jit import compiled_loop

# --- Compiled loops over the bonds of a batch.


@compiled_loop
def neighbours(sender, receiver, num_nodes, once):
    """Return the edges by receiver: `Neighbours`."""
    num_edges = len(sender)
    start = np.zeros(num_nodes + 1, np.int64)
    senders, edges = np.empty(num_edges, np.int64), np.empty(num_edges, np.int64)
    for e in range(num_edges):
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
    return start, senders, edges


# --- Compiled loops for shortest paths.


@compiled_loop
def distances(first, last, ptr, pair_ptr, start, sender, largest, codes):
    r"""Return the codes of `gtx.encodings.ShortestPathLength`, molecule by molecule.

    \(d_{rs} = \min(d_{rs}, 1 + d_{ms})\) for the neighbours m of r, over whole rows, until nothing changes. Nodes are
    gone through forwards and backwards in turn: along a chain of consecutive numbers two turns do. At most `largest`
    are needed, as turn k at the latest finds all distances k.

    Args:
        first: molecule.
        last: molecule, not included.
        ptr: `[B + 1]`.
        pair_ptr: `[B + 1]`.
        start: of `Neighbours`.
        sender: of `Neighbours`.
        largest: distance with a code of its own.
        codes: `[num_pairs]`, the result.
    """
    most = 0
    for graph in range(first, last):
        most = max(most, ptr[graph + 1] - ptr[graph])
    space, label = np.empty(most * most, np.int32), np.empty(most, np.int64)
    for graph in range(first, last):
        begin, pairs = ptr[graph], pair_ptr[graph]
        n = ptr[graph + 1] - begin
        far = np.int32(min(largest, n) + 1)
        distance, result = space[: n * n], codes[pairs : pairs + n * n]
        distance[:] = far
        for r in range(n):
            distance[r * n + r] = 0
        changed, backwards = True, False
        while changed:
            changed = False
            for i in range(n):
                r = n - 1 - i if backwards else i
                row, gain = distance[r * n : r * n + n], np.int32(0)
                for at in range(start[begin + r], start[begin + r + 1]):
                    other = distance[(sender[at] - begin) * n :][:n]
                    for s in range(n):
                        through = np.int32(other[s] + 1)
                        least = through if through < row[s] else row[s]
                        gain |= np.int32(row[s] - least)
                        row[s] = least
                changed |= gain != 0
            backwards = not backwards
        reached = True
        for p in range(n * n):
            result[p] = distance[p]
            reached &= distance[p] < far
        if not reached:
            name_parts(begin, n, start, sender, label)
            for r in range(n):
                for s in range(n):
                    if distance[r * n + s] == far:
                        result[r * n + s] = largest + 1 + np.int64(label[r] != label[s])


@njit
def name_parts(begin, n, start, sender, label):
    """Label each of the n nodes from `begin` with the smallest node of its connected component, from `begin`."""
    for r in range(n):
        label[r] = r
    changed = True
    while changed:
        changed = False
        for r in range(n):
            for at in range(start[begin + r], start[begin + r + 1]):
                s = sender[at] - begin
                least = min(label[r], label[s])
                if least < label[r] or least < label[s]:
                    label[r], label[s], changed = least, least, True


@compiled_loop
def along(first, last, ptr, pair_ptr, start, sender, edge, bond, types, distance, farthest, counts):
    """Find the bonds along shortest paths, `gtx.encodings.ShortestPathBonds`, molecule by molecule.

    Args:
        first: molecule.
        last: molecule, not included.
        ptr: `[B + 1]`.
        pair_ptr: `[B + 1]`.
        start: of `Neighbours`.
        sender: of `Neighbours`.
        edge: of `Neighbours`.
        bond: `[E]`, the type of each bond.
        types: T, how many there are.
        distance: `[num_pairs]`, of `distances`.
        farthest: distance that counts.
        counts: `[num_pairs, L * T]`, zeros, the result.
    """
    length = counts.shape[1] // types
    most = 0
    for graph in range(first, last):
        most = max(most, ptr[graph + 1] - ptr[graph])
    paths, order, place = np.empty(most, counts.dtype), np.empty(most, np.int64), np.empty(most + 2, np.int64)
    for graph in range(first, last):
        begin = ptr[graph]
        n = ptr[graph + 1] - begin
        for r in range(n):
            pairs = pair_ptr[graph] + r * n
            away = distance[pairs : pairs + n]
            reached = by_distance(away, min(farthest, n), place, order)
            paths[:n] = 0
            paths[r] = 1
            for i in range(reached):
                s = order[i]
                d, count = away[s], counts[pairs + s]
                for at in range(start[begin + s], start[begin + s + 1]):
                    before = sender[at] - begin
                    if away[before] + 1 == d:
                        paths[s] += paths[before]
                        less = counts[pairs + before]
                        for c in range(min(d - 1, length) * types):
                            count[c] += less[c]
                        if d <= length:
                            count[(d - 1) * types + bond[edge[at]]] += paths[before]
            for i in range(reached):
                s = order[i]
                d, count = min(away[s], length), counts[pairs + s]
                bonds = counts.dtype.type(max(paths[s] * d, 1))
                for c in range(d * types):
                    count[c] /= bonds


@njit
def by_distance(distance, farthest, place, order):
    """Put the nodes no farther than `farthest` into `order`, nearest first, and say how many they are."""
    place[: farthest + 2] = 0
    for d in distance:
        if d <= farthest:
            place[d + 1] += 1
    for d in range(farthest + 1):
        place[d + 1] += place[d]
    for s in range(len(distance)):
        if distance[s] <= farthest:
            order[place[distance[s]]] = s
            place[distance[s]] += 1
    return place[farthest]


@compiled_loop
def simple_paths(first, last, ptr, pair_ptr, start, sender, most, counts, paths):
    """Count the simple paths from each node, depth first, `gtx.encodings.SimplePathCounts`, molecule by molecule.

    Args:
        first: molecule.
        last: molecule, not included.
        ptr: `[B + 1]`.
        pair_ptr: `[B + 1]`.
        start: of `Neighbours`, each once.
        sender: of `Neighbours`.
        most: number of paths of a molecule at which the count ends.
        counts: `[num_pairs, K]`, zeros, the result.
        paths: `[B]`, the number of paths of each molecule, at most `most + 1`.
    """
    longest = counts.shape[1]
    node, place = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    for graph in range(first, last):
        begin, found = ptr[graph], 0
        n = ptr[graph + 1] - begin
        on_path = np.zeros(n, np.bool_)
        for r in range(n):
            depth, node[0], place[0], on_path[r] = 0, r, start[begin + r], True
            while depth >= 0 and found <= most:
                at = place[depth]
                if depth == longest or at == start[begin + node[depth] + 1]:
                    on_path[node[depth]] = False
                    depth -= 1
                    continue
                place[depth] += 1
                s = sender[at] - begin
                if not on_path[s]:
                    depth += 1
                    found += 1
                    node[depth], place[depth], on_path[s] = s, start[begin + s], True
                    counts[pair_ptr[graph] + r * n + s, depth - 1] += 1
        paths[graph] = found


# --- Compiled loops for random walks.


@compiled_loop
def walks(first, last, ptr, pair_ptr, start, sender, powers, back):
    r"""Powers of \(M = D^{-1} A\), molecule by molecule.

    Row r of \(M^{k+1} = M M^k\) is the mean of the rows of \(M^k\) that belong to the neighbours of r.

    Args:
        first: molecule.
        last: molecule, not included.
        ptr: `[B + 1]`.
        pair_ptr: `[B + 1]`.
        start: of `Neighbours`, each once.
        sender: of `Neighbours`.
        powers: `[R, num_pairs]`; power k goes to row k modulo R, for k below K. R is K, or 2 where they are not wanted.
        back: `[N, K]`, the diagonals of the powers 1 to K.
    """
    steps, kept = back.shape[1], len(powers)
    most = 0
    for graph in range(first, last):
        most = max(most, ptr[graph + 1] - ptr[graph])
    spare, one = np.empty(most, back.dtype), back.dtype.type(1)
    for graph in range(first, last):
        begin, pairs = ptr[graph], pair_ptr[graph]
        n = ptr[graph + 1] - begin
        powers[0, pairs : pairs + n * n] = 0
        for r in range(n):
            powers[0, pairs + r * n + r] = 1
        for k in range(steps):
            now = powers[k % kept, pairs : pairs + n * n]
            then = powers[(k + 1) % kept, pairs : pairs + n * n]
            for r in range(n):
                row = then[r * n : r * n + n] if k + 1 < steps else spare[:n]
                low, high = start[begin + r], start[begin + r + 1]
                if low == high:
                    row[:] = 0
                else:
                    each = one / back.dtype.type(high - low)
                    other = now[(sender[low] - begin) * n :][:n]
                    for s in range(n):
                        row[s] = other[s] * each
                    for at in range(low + 1, high):
                        other = now[(sender[at] - begin) * n :][:n]
                        for s in range(n):
                            row[s] += other[s] * each
                back[begin + r, k] = row[r]
