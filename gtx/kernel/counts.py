"""How often each substructure occurs in molecules, and how much molecules have in common."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Counts:
    """Counts of B molecules, E of them above 0.

    Attributes:
        ptr: int64 `[B + 1]`; molecule b has the entries `ptr[b]` to `ptr[b + 1]`.
        kind: int64 `[E]`, what is counted, ascending within a molecule.
        count: int64 `[E]`, 1 or more.
    """

    ptr: Tensor
    kind: Tensor
    count: Tensor

    @classmethod
    def of(cls, labels: Tensor, owner: Tensor, molecules: int) -> Counts:
        """Count labels.

        Args:
            labels: int64 `[n]`, any numbers.
            owner: int64 `[n]`, which molecule each belongs to.
            molecules: how many there are.
        """
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
        """int64 `[E]`: the molecule of each entry."""
        return torch.repeat_interleave(self.ptr.diff())

    @property
    def sizes(self) -> Tensor:
        """int64 `[B]`: the sum of each molecule's counts."""
        return torch.zeros_like(self.ptr[1:]).index_add_(0, self.owner, self.count)

    def known(self, kinds: Tensor) -> Counts:
        """The entries whose kind is one of `kinds`, int64 `[V]`, ascending; a kind is then its number there."""
        place = torch.searchsorted(kinds, self.kind).clamp(max=max(len(kinds) - 1, 0))
        same = kinds[place] == self.kind if len(kinds) else torch.zeros_like(self.kind, dtype=torch.bool)
        kept = torch.zeros_like(self.ptr[1:]).index_add_(0, self.owner, same.long())
        return Counts(offsets(kept), place[same], self.count[same])

    def subset(self, rows: Tensor) -> Counts:
        """The molecules `rows`, int64 `[b]`, in that order."""
        lengths = self.ptr.diff()[rows]
        ptr = offsets(lengths)
        entry = torch.arange(int(ptr[-1]), device=rows.device) - torch.repeat_interleave(
            ptr[:-1] - self.ptr[rows], lengths
        )
        return Counts(ptr, self.kind[entry], self.count[entry])

    def by_kind(self, kinds: int) -> Counts:
        """The same entries turned round: for each of so many kinds the molecules that have it, ascending."""
        order = self.kind.argsort(stable=True)
        return Counts(offsets(torch.bincount(self.kind, minlength=kinds)), self.owner[order], self.count[order])


def offsets(lengths: Tensor) -> Tensor:
    """Where each of so many entries starts, and where the last ends: int64 `[n]` to `[n + 1]`."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def shared(counts: Counts, turned: Counts, rows: int) -> Tensor:
    r"""What molecules have in common with others: \(\sum_k \min(a_k, b_k)\), float64 `[B, rows]`.

    Only kinds that both have are met, so the work grows with the entries that match.

    Args:
        counts: of B molecules; every kind is below `len(turned)`.
        turned: of the other molecules, `by_kind`.
        rows: how many others there are.
    """
    if counts.ptr.device.type == "cpu":
        from gtx.kernel.loops import add_shared

        found = torch.zeros(len(counts), rows, dtype=torch.float64)
        arrays = (part.numpy() for one in (counts, turned) for part in (one.ptr, one.kind, one.count))
        add_shared(*arrays, found.numpy())
        return found
    return shared_by_indices(counts, turned, rows)


MATCHES = 1 << 22  # written out at once by `shared_by_indices`, some 50 bytes each


def shared_by_indices(counts: Counts, turned: Counts, rows: int) -> Tensor:
    """`shared` by index arithmetic, wherever the counts lie: some entries of the molecules at a time, as many as have
    `MATCHES` matches, or one."""
    found = counts.ptr.new_zeros(len(counts) * rows, dtype=torch.float64)
    owner = counts.owner
    ends = turned.ptr.diff()[counts.kind].cumsum(0).tolist()
    first = 0
    while first < len(ends):
        before = ends[first - 1] if first else 0
        last = max(first + 1, bisect_right(ends, before + MATCHES))
        met = turned.subset(counts.kind[first:last])
        entry = first + met.owner
        least = torch.minimum(met.count, counts.count[entry])
        found.index_add_(0, owner[entry] * rows + met.kind.long(), least.double())
        first = last
    return found.view(len(counts), rows)
