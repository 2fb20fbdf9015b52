"""Molecules in order of size, and padded side by side with others of like size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor


def offsets(lengths: Tensor) -> Tensor:
    """Return the start of each list, and the end of the last, from the lengths of lists: int64 `[n]` to `[n + 1]`."""
    return torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])


def ragged(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Row i has `counts[i]` entries (int64 `[R]`): the row of every entry and its place in the row, each `[sum]`."""
    row = torch.repeat_interleave(counts)
    return row, torch.arange(row.shape[0], device=counts.device) - (counts.cumsum(0) - counts)[row]


class SizeBucket(NamedTuple):
    """Molecules of similar size: positions `first` to `stop` by size, with `least` <= n <= `most` atoms."""

    first: int
    stop: int
    least: int
    most: int


class MoleculesBySize(NamedTuple):
    """Positions of the molecules of a batch when sorted by size, ascending or descending.

    Attributes:
        molecules: first node, first pair and size n of each molecule, int64 `[3, M]`, contiguous.
        ranges: bounds on the sizes that are known without reading from the device, in the same order; molecules in no
            range are empty.
        complete: whether all molecules are listed, so that every node and every pair belongs to one of them.
    """

    molecules: Tensor
    ranges: tuple[SizeBucket, ...]
    complete: bool = True

    @property
    def least(self) -> int:
        """The bound of the smallest molecules, 0 where there is none."""
        return min([r.most for r in self.ranges] or [0])

    @property
    def most(self) -> int:
        """No molecule has more nodes."""
        return max([0, *(r.most for r in self.ranges)])


# --- Graphs of like size, padded to one size for matrix products.


class Buckets(NamedTuple):
    """Slots of nodes and pairs when graphs are put into a few buckets of similar size.

    Attributes:
        nodes: packing of the N receivers into slots.
        senders: packing of the senders; in a complete graph, the nodes.
        pairs: packing of the pairs into slots.
        shapes: (count, receivers, senders) of each bucket: how many graphs, padded to so many of both.
    """

    nodes: FlatToPaddedMap
    senders: FlatToPaddedMap
    pairs: FlatToPaddedMap
    shapes: tuple[tuple[int, ...], ...]

    def split_nodes(self, nodes: Tensor) -> list[Tensor]:
        """Receivers `[N, *]` by bucket, `[count, receivers, *]` each, with 0 in the padding."""
        return _cut(self.nodes.pack(nodes), [(count, n) for count, n, _ in self.shapes])

    def split_senders(self, senders: Tensor, fill: float = 0.0) -> list[Tensor]:
        """Senders `[M, *]` by bucket, `[count, senders, *]` each, with `fill` in the padding."""
        return _cut(self.senders.pack(senders, fill), [(count, m) for count, _, m in self.shapes])

    def split_pairs(self, pairs: Tensor, fill: float = 0.0) -> list[Tensor]:
        """Pairs `[num_pairs, *]` by bucket, `[count, receivers, senders, *]` each, with `fill` in the padding."""
        return self.cut_pairs(self.pairs.pack(pairs, fill))

    def cut_pairs(self, slots: Tensor) -> list[Tensor]:
        """Packed pairs `[S2, *]` cut into buckets `[count, receivers, senders, *]` (views)."""
        return _cut(slots, self.shapes)

    def join_nodes(self, buckets: Sequence[Tensor]) -> Tensor:
        """Receivers of at least one bucket, `[count, receivers, *]` each, to `[N, *]`."""
        return self.nodes.unpack(torch.cat([bucket.flatten(0, 1) for bucket in buckets]))

    def join_pairs(self, buckets: Sequence[Tensor]) -> Tensor:
        """Pairs of at least one bucket, `[count, receivers, senders, *]` each, to `[num_pairs, *]`."""
        return self.pairs.unpack(torch.cat([bucket.flatten(0, 2) for bucket in buckets]))

    @classmethod
    def of(cls, ptr: Tensor, source_ptr: Tensor, most: int) -> Buckets:
        """Divide graphs of receivers `ptr` and senders `source_ptr` into at most `most` buckets."""
        n, m = torch.stack([ptr, source_ptr]).diff().cpu()
        sizes = (n.clamp(min=1) * m.clamp(min=1) * ((n > 0) | (m > 0))).sqrt()  # with nodes in one set, slots too
        starts, shapes = torch.zeros(4, len(n), dtype=torch.long), []
        slots = torch.zeros(3, 1, dtype=torch.long)  # of the buckets so far: receivers, senders, pairs
        for graphs in group_by_size(sizes, most):
            rows, columns = (max(1, int(each[graphs].max())) for each in (n, m))
            each = torch.tensor([[rows], [columns], [rows * columns]])
            starts[:3, graphs] = slots + each * torch.arange(len(graphs))
            starts[3, graphs] = columns
            slots = slots + each * len(graphs)
            shapes.append((len(graphs), rows, columns))
        first_row, first_column, first_pair, width = starts.to(ptr.device)
        row_slots, column_slots, pair_slots = slots.flatten().tolist()

        def nodes(offsets: Tensor, first: Tensor, count: int) -> tuple[Tensor, Tensor, FlatToPaddedMap]:
            owner, place = ragged(offsets.diff())
            return owner, place, FlatToPaddedMap.of(first[owner] + place, count)

        owner, row, receivers = nodes(ptr, first_row, row_slots)
        senders = receivers if source_ptr is ptr else nodes(source_ptr, first_column, column_slots)[2]
        counts = source_ptr.diff()[owner]  # the pairs of a row lie side by side, and so do their slots
        shift = first_pair[owner] + row * width[owner] - (counts.cumsum(0) - counts)
        pairs = torch.repeat_interleave(shift, counts)
        pairs += torch.arange(len(pairs), device=ptr.device)
        return cls(receivers, senders, FlatToPaddedMap.of(pairs, pair_slots), tuple(shapes))


def _cut(slots: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    parts = slots.split([math.prod(shape) for shape in shapes])
    return [part.view(*shape, *slots.shape[1:]) for part, shape in zip(parts, shapes, strict=True)]


def group_by_size(sizes: Tensor, most: int) -> list[Tensor]:
    """Divide graphs by size into at most `most` groups, cut where padding costs most; empty graphs are left out."""
    sizes, order = sizes.double().sort(stable=True)
    order, square = order[sizes > 0], sizes[sizes > 0].square()
    if not len(order):
        return []
    cuts = [0, len(order)]
    overhead = 4096.0  # pairs: about what one more round of small matrix products costs
    while len(cuts) <= most:
        best, at = overhead, None
        for lo, hi in itertools.pairwise(cuts):
            saved = torch.arange(1, hi - lo) * (square[hi - 1] - square[lo : hi - 1])
            if len(saved) and float(saved.max()) > best:
                best, at = float(saved.max()), lo + 1 + int(saved.argmax())
        if at is None:
            break
        cuts = sorted([*cuts, at])
    return [order[lo:hi] for lo, hi in itertools.pairwise(cuts)]


# --- Flat rows into padded slots and back, by indices made once per batch.


class FlatToPaddedMap(NamedTuple):
    """One-to-one map of R rows into S >= R slots of a padded tensor.

    Attributes:
        row_of_slot: int64 `[S]`; where a slot is padding, any row.
        slot_of_row: int64 `[R]`.
        padding: the slots that hold no row, int64 `[S - R]`, or bool `[S]` where their number is not constant.
    """

    row_of_slot: Tensor
    slot_of_row: Tensor
    padding: Tensor

    @classmethod
    def of(cls, slot_of_row: Tensor, num_slots: int) -> FlatToPaddedMap:
        """Return the packing that puts row i into slot `slot_of_row[i]`."""
        row_of_slot = slot_of_row.new_full((num_slots,), -1)
        row_of_slot.scatter_(0, slot_of_row, torch.arange(len(slot_of_row), device=slot_of_row.device))
        padding = (row_of_slot < 0).nonzero().squeeze(1)
        return cls(row_of_slot.clamp_(min=0), slot_of_row, padding)

    def pack(self, rows: Tensor, fill: float = 0.0) -> Tensor:
        """`[R, *]` to `[S, *]`, with `fill` in the padding."""
        if torch.compiler.is_compiling() or are_transformed():
            return _filled(rows.index_select(0, self.row_of_slot), self.padding, fill)
        return _Pack.apply(rows, *self, fill)

    def unpack(self, slots: Tensor) -> Tensor:
        """`[S, *]` to `[R, *]`."""
        if torch.compiler.is_compiling() or are_transformed():
            return slots.index_select(0, self.slot_of_row)
        return _Unpack.apply(slots, *self)


def are_transformed() -> bool:
    """Return whether `torch.func` transforms what runs now; torch has no public function that says so."""
    return torch._C._are_functorch_transforms_active()  # noqa: SLF001


def _filled(slots: Tensor, padding: Tensor, fill: float) -> Tensor:
    """Write `fill` into the padding, in place where that is allowed."""
    if padding.dtype == torch.bool:
        return slots.masked_fill(padding.view(-1, *[1] * (slots.dim() - 1)), fill)
    return slots.index_fill(0, padding, fill) if torch.compiler.is_compiling() else slots.index_fill_(0, padding, fill)


# Each map is the other's transpose, so both directions of both are gathers: no scatter, nothing added twice, the same
# result on every run, and derivatives of any order.


class _Pack(torch.autograd.Function):
    @staticmethod
    def forward(rows: Tensor, row_of_slot: Tensor, slot_of_row: Tensor, padding: Tensor, fill: float) -> Tensor:
        if len(rows) == 0:
            return rows.new_full((len(row_of_slot), *rows.shape[1:]), fill)
        return _filled(rows.index_select(0, row_of_slot), padding, fill)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:4])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _Unpack.apply(grad, *ctx.saved_tensors), None, None, None, None


class _Unpack(torch.autograd.Function):
    @staticmethod
    def forward(slots: Tensor, row_of_slot: Tensor, slot_of_row: Tensor, padding: Tensor) -> Tensor:
        return slots.index_select(0, slot_of_row)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:4])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:
        return _Pack.apply(grad, *ctx.saved_tensors, 0.0), None, None, None
