"""Counts of substructures in molecules, and their intersections."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SubstructureCounts:
    """Sparse table of how often each kind of circular substructure occurs in each of B molecules; E counts are above 0.

    Attributes:
        ptr: offsets of the molecules, int64 `[B + 1]`; molecule b has the entries `ptr[b]` to `ptr[b + 1]`.
        kind: kind of substructure of each entry, int64 `[E]`, ascending within a molecule.
        count: number of occurrences of each entry, int64 `[E]`, 1 or more.
    """

    ptr: Tensor
    kind: Tensor
    count: Tensor

    @classmethod
    def from_labels(cls, labels: Tensor, owner: Tensor, molecules: int) -> SubstructureCounts:
        """Count the labels, int64 `[n]`, of each molecule; `owner` is the molecule of each label, int64 `[n]`."""
        order = labels.argsort()
        order = order[owner[order].argsort(stable=True)]
        owner, kind = owner[order], labels[order]
        new = torch.ones_like(kind, dtype=torch.bool)
        new[1:] = (kind[1:] != kind[:-1]) | (owner[1:] != owner[:-1])
        first = new.nonzero().flatten()
        count = torch.cat([first, first.new_full((1,), len(kind))]).diff()
        return cls(offsets(torch.bincount(owner[first], minlength=molecules)), kind[first], count)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def owner(self) -> Tensor:
        """Molecule of each entry, int64 `[E]`."""
        return torch.repeat_interleave(self.ptr.diff())

    @property
    def sizes(self) -> Tensor:
        """Sum of the counts of each molecule, int64 `[B]`."""
        return torch.zeros_like(self.ptr[1:]).index_add_(0, self.owner, self.count)

    def restrict(self, kinds: Tensor) -> SubstructureCounts:
        """Keep the entries whose kind is one of `kinds`, int64 `[V]`, ascending, and replace a kind by its position."""
        place = torch.searchsorted(kinds, self.kind).clamp(max=max(len(kinds) - 1, 0))
        same = kinds[place] == self.kind if len(kinds) else torch.zeros_like(self.kind, dtype=torch.bool)
        kept = torch.zeros_like(self.ptr[1:]).index_add_(0, self.owner, same.long())
        return SubstructureCounts(offsets(kept), place[same], self.count[same])

    def subset(self, rows: Tensor) -> SubstructureCounts:
        """Select the molecules with indices `rows`, int64 `[b]`, in the order of `rows`."""
        lengths = self.ptr.diff()[rows]
        ptr = offsets(lengths)
        entry = torch.arange(int(ptr[-1]), device=rows.device) - torch.repeat_interleave(
            ptr[:-1] - self.ptr[rows], lengths
        )
        return SubstructureCounts(ptr, self.kind[entry], self.count[entry])

    def inverted(self, kinds: int) -> SubstructureCounts:
        """Return the inverted index: for each of so many kinds the molecules that have it, ascending, as `kind`."""
        order = self.kind.argsort(stable=True)
        return SubstructureCounts(
            offsets(torch.bincount(self.kind, minlength=kinds)), self.owner[order], self.count[order]
        )


def offsets(lengths: Tensor) -> Tensor:
    """Return the start of each list, and the end of the last, from the lengths of lists: int64 `[n]` to `[n + 1]`."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def intersections(counts: SubstructureCounts, inverted: SubstructureCounts, rows: int) -> Tensor:
    r"""Compute the size of the intersection of molecules with others: \(\sum_k \min(a_k, b_k)\), float64 `[B, rows]`.

    The loops meet only kinds that both molecules have, so the work grows with the entries that match. `inverted` is
    `SubstructureCounts.inverted` of the others, which are `rows`; every kind is below its length.
    """
    if counts.ptr.device.type == "cpu":
        from gtx.kernel.loops import add_intersections

        common = torch.zeros(len(counts), rows, dtype=torch.float64)
        arrays = (part.numpy() for one in (counts, inverted) for part in (one.ptr, one.kind, one.count))
        add_intersections(*arrays, common.numpy())
        return common
    return intersections_by_indices(counts, inverted, rows)


MATCHES = 1 << 22  # matches that `intersections_by_indices` lists at a time, some 50 bytes each


def intersections_by_indices(counts: SubstructureCounts, inverted: SubstructureCounts, rows: int) -> Tensor:
    """Compute `intersections` by index arithmetic, on any device.

    Memory stays bounded: it takes as many entries at a time as have `MATCHES` matches, or one.
    """
    common = counts.ptr.new_zeros(len(counts) * rows, dtype=torch.float64)
    owner = counts.owner
    ends = inverted.ptr.diff()[counts.kind].cumsum(0).tolist()
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(first + 1, bisect_right(ends, before + MATCHES))
        met = inverted.subset(counts.kind[first:last])
        entry = first + met.owner
        least = torch.minimum(met.count, counts.count[entry])
        common.index_add_(0, owner[entry] * rows + met.kind.long(), least.double())
        first = last
    return common.view(len(counts), rows)
