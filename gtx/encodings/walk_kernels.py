"""Compiled loops for random walks."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit


@njit(cache=True, nogil=True)
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
