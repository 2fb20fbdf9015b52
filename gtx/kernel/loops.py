"""Compiled loops over counts of molecules and, turned round, of the rows that have each kind."""

from __future__ import annotations

import numpy as np

from gtx.jit import njit


@njit(cache=True, nogil=True)
def add_shared(ptr, kind, count, turned_ptr, turned_row, turned_count, out):
    """Add to `out` `[B, rows]` what molecules share with the rows, see `gtx.kernel.counts.shared`."""
    for b in range(len(ptr) - 1):
        share(ptr[b], ptr[b + 1], kind, count, turned_ptr, turned_row, turned_count, out[b])


@njit(cache=True, nogil=True)
def add_weighted(ptr, kind, count, size, turned_ptr, turned_row, turned_count, row_size, weight, out):
    """Add to `out` `[B, C]` the Tanimoto similarity with the rows times `weight` `[rows, C]`, summed over rows."""
    common = np.empty(len(row_size), np.int64)
    for b in range(len(ptr) - 1):
        common[:] = 0
        share(ptr[b], ptr[b + 1], kind, count, turned_ptr, turned_row, turned_count, common)
        for r in range(len(common)):
            similarity = common[r] / (size[b] + row_size[r] - common[r])
            for c in range(out.shape[1]):
                out[b, c] += similarity * weight[r, c]


@njit(cache=True, nogil=True, inline="always")
def share(first, last, kind, count, turned_ptr, turned_row, turned_count, common):
    """Add to `common` `[rows]` what the entries from `first` to `last` share with each row."""
    for e in range(first, last):
        k, c = kind[e], count[e]
        for p in range(turned_ptr[k], turned_ptr[k + 1]):
            common[turned_row[p]] += min(c, turned_count[p])
