"""Compiled loops over counts of molecules and, turned round, of the rows that have each kind."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit


@njit(cache=True, nogil=True)
def add_shared(ptr, kind, count, turned_ptr, turned_row, turned_count, out):
    """Add to `out` `[B, rows]` what molecules share with the rows, see `gtx.kernel.counts.shared`."""
    for b in range(len(ptr) - 1):
        row = out[b]
        for e in range(ptr[b], ptr[b + 1]):
            k, c = kind[e], count[e]
            for p in range(turned_ptr[k], turned_ptr[k + 1]):
                row[turned_row[p]] += min(c, turned_count[p])


@njit(cache=True, nogil=True)
def add_weighted(ptr, kind, count, size, turned_ptr, turned_row, turned_count, place, table, row_size, weight, out):
    """Add to `out` `[B, C]` the Tanimoto similarity with the rows times `weight` `[rows, C]`, summed over rows.

    The counts of kinds that many rows have stand in `table` `[D, rows]` too, that of kind k in line `place[k]`, which
    is -1 for others: a line is added at once.
    """
    rows = len(row_size)
    common = np.empty(rows, np.int32)
    for b in range(len(ptr) - 1):
        common[:] = 0
        for e in range(ptr[b], ptr[b + 1]):
            k, c = kind[e], np.int32(count[e])
            if place[k] >= 0:
                line = table[place[k]]
                for r in range(rows):
                    common[r] += min(c, line[r])
            else:
                for p in range(turned_ptr[k], turned_ptr[k + 1]):
                    common[turned_row[p]] += min(c, turned_count[p])
        for r in range(rows):
            similarity = common[r] / (size[b] + row_size[r] - common[r])
            for c in range(out.shape[1]):
                out[b, c] += similarity * weight[r, c]
