"""Compiled loops of the encodings: the bonds along shortest paths, and simple paths."""

from __future__ import annotations

import numpy as np
from numba import njit

from gtx.base.loops import compiled_loop


@compiled_loop
def along(first, last, ptr, pair_ptr, start, sender, bond, types, distance, farthest, counts):
    """Find the bonds along shortest paths, `gtx.encodings.ShortestPathBonds`, molecule by molecule.

    Args:
        first, last: the molecules, `last` not included.
        ptr, pair_ptr: `[B + 1]`, of the graph.
        start: `[N + 1]`; the bonds into node r are number `start[r]` to `start[r + 1]`.
        sender: `[E]`, where each comes from.
        bond: `[E]`, the type of each.
        types: T, how many there are.
        distance: `[num_pairs]`, codes of `ShortestPathLength`.
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
                            count[(d - 1) * types + bond[at]] += paths[before]
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
        first, last: the molecules, `last` not included.
        ptr, pair_ptr: `[B + 1]`, of the graph.
        start, sender: as in `along`, each pair of neighbours once.
        most: number of paths of a molecule at which the count ends.
        counts: `[num_pairs, K]`, zeros, the result.
        paths: `[B]`, the number of paths of each molecule, at most `most + 1`.
    """
    longest = counts.shape[1]
    node, place = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    for graph in range(first, last):
        begin, number = ptr[graph], 0
        n = ptr[graph + 1] - begin
        on_path = np.zeros(n, np.bool_)
        for r in range(n):
            depth, node[0], place[0], on_path[r] = 0, r, start[begin + r], True
            while depth >= 0 and number <= most:
                at = place[depth]
                if depth == longest or at == start[begin + node[depth] + 1]:
                    on_path[node[depth]] = False
                    depth -= 1
                    continue
                place[depth] += 1
                s = sender[at] - begin
                if not on_path[s]:
                    depth += 1
                    number += 1
                    node[depth], place[depth], on_path[s] = s, start[begin + s], True
                    counts[pair_ptr[graph] + r * n + s, depth - 1] += 1
        paths[graph] = number
