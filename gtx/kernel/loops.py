"""Compiled loops over counts of molecules and an inverted index of the reference molecules."""

from __future__ import annotations

import numpy as np

from gtx.base.loops import compiled_loop


@compiled_loop
def add_intersections(ptr, kind, count, inverted_ptr, inverted_row, inverted_count, out):
    """Add the intersections of molecules with the references to `out` `[B, rows]`, see `gtx.kernel.counts`."""
    for b in range(len(ptr) - 1):
        row = out[b]
        for e in range(ptr[b], ptr[b + 1]):
            k, c = kind[e], count[e]
            for p in range(inverted_ptr[k], inverted_ptr[k + 1]):
                row[inverted_row[p]] += min(c, inverted_count[p])


@compiled_loop
def add_weighted(ptr, kind, count, size, inverted_ptr, inverted_row, inverted_count, row_size, weight, out):
    """Add the product of Tanimoto similarities `[B, rows]` and `weight` `[rows, C]` to `out` `[B, C]`."""
    rows = len(row_size)
    common = np.empty(rows, np.int32)
    for b in range(len(ptr) - 1):
        common[:] = 0
        for e in range(ptr[b], ptr[b + 1]):
            k, c = kind[e], np.int32(count[e])
            for p in range(inverted_ptr[k], inverted_ptr[k + 1]):
                common[inverted_row[p]] += min(c, inverted_count[p])
        for r in range(rows):
            similarity = common[r] / (size[b] + row_size[r] - common[r])
            for c in range(out.shape[1]):
                out[b, c] += similarity * weight[r, c]
