"""Compiled loops for shortest paths."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit


@njit(cache=True, nogil=True)
def distances(first, last, ptr, pair_ptr, start, sender, largest, codes):
    r"""The codes of `gtx.encodings.ShortestPath`, molecule by molecule.

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


@njit(cache=True, nogil=True)
def name_parts(begin, n, start, sender, label):
    """The smallest node that each of the n nodes from `begin` is joined to by edges of any direction, from `begin`."""
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


@njit(cache=True, nogil=True)
def along(first, last, ptr, pair_ptr, start, sender, edge, bond, types, distance, farthest, counts):
    """The bonds along shortest paths, `gtx.encodings.EdgePath`, molecule by molecule.

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


@njit(cache=True, nogil=True)
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
