"""The complete graph of every molecule in a batch: an object that knows its pairs without holding them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import torch
import torch.utils._pytree as pytree
from torch import Tensor

from gtx.graph.packing import Packing


@dataclass(frozen=True)
class CompleteGraph:
    r"""Every ordered pair of nodes of each graph, a node with itself included.

    Pairs are receiver-major: in graph b with \(n_b\) nodes, the pair (receiver r, sender s) is number
    \(p = \mathrm{pair\_ptr}_b + r\, n_b + s\), so that `edge_index[0] = s` and `edge_index[1] = r`. A tensor of pair
    features is flat, `[num_pairs, K]` with `num_pairs` \(= \sum_b n_b^2\).

    Where only some of the pairs are edges, `where(mask)` says which; an absent edge is a pair that attends to nothing.
    Features stay flat over all pairs.

    For matrix products the graphs are put into a few buckets of like size. Bucket k holds `buckets[k] = (count, size)`
    graphs padded to `size` nodes; its nodes fill the next `count * size` slots of `nodes`, its pairs the next
    `count * size**2` slots of `pairs`. The indices are made once here and shared by all layers.

    Make one with `from_batch` or `from_ptr`.

    Attributes:
        ptr: int64 `[B + 1]`; graph b has the nodes `ptr[b]` to `ptr[b + 1]`.
        batch: int64 `[N]`, the graph of each node.
        nodes: packing of the N nodes into slots.
        pairs: packing of the pairs into slots.
        buckets: (count, size) of each bucket.
        mask: bool `[num_pairs]`, the pairs that are edges, or None if all are.
    """

    ptr: Tensor
    batch: Tensor
    nodes: Packing
    pairs: Packing
    buckets: tuple[tuple[int, int], ...]
    mask: Tensor | None = None

    @classmethod
    def from_ptr(cls, ptr: Tensor, max_buckets: int = 4) -> CompleteGraph:
        """From offsets.

        Args:
            ptr: int64 `[B + 1]`, from 0, never descending.
            max_buckets: at most this many buckets of like size; 1 pads every graph to the largest.
        """
        sizes = ptr.diff()
        host = sizes.tolist()
        if ptr.dim() != 1 or len(ptr) == 0 or int(ptr[0]) != 0 or min(host, default=0) < 0:
            raise ValueError(f"expected ptr [B + 1] that starts at 0 and never descends, got {ptr.tolist()[:8]}...")
        buckets = _buckets(host, max_buckets)
        order, caps, starts, pair_starts = [], [], [], []
        slot = pair_slot = 0
        for graphs, cap in buckets:
            for graph in graphs:
                order.append(graph)
                caps.append(cap)
                starts.append(slot)
                pair_starts.append(pair_slot)
                slot += cap
                pair_slot += cap * cap
        per_graph = torch.zeros(3, len(host), dtype=torch.long)
        per_graph[:, order] = torch.tensor([caps, starts, pair_starts], dtype=torch.long)
        cap, start, pair_start = per_graph.to(ptr.device)

        batch = torch.repeat_interleave(torch.arange(len(host), device=ptr.device), sizes)
        local = torch.arange(len(batch), device=ptr.device) - ptr[batch]
        rows = torch.repeat_interleave(sizes[batch])  # the receiver of every pair
        sender = torch.arange(len(rows), device=ptr.device) - _starts(sizes[batch])[rows]
        pair_slots = (pair_start[batch] + local * cap[batch])[rows] + sender
        return cls(
            ptr,
            batch,
            Packing.of(start[batch] + local, slot),
            Packing.of(pair_slots, pair_slot),
            tuple((len(graphs), cap) for graphs, cap in buckets),
        )

    @classmethod
    def from_batch(cls, batch: Tensor, num_graphs: int | None = None, max_buckets: int = 4) -> CompleteGraph:
        """From a batch vector.

        Args:
            batch: int64 `[N]`, the graph of each node, sorted.
            num_graphs: B, where the last graphs have no nodes; default `batch.max() + 1`.
            max_buckets: as in `from_ptr`.
        """
        if batch.dim() != 1:
            raise ValueError(f"expected a batch vector [N], got {list(batch.shape)}")
        step = batch.diff()
        if bool((step < 0).any()):
            at = int((step < 0).nonzero()[0]) + 1
            raise ValueError(
                f"expected a sorted batch vector, but node {at} is of graph {int(batch[at])} "
                f"after a node of graph {int(batch[at - 1])}"
            )
        counts = torch.bincount(batch, minlength=num_graphs or 0)
        return cls.from_ptr(torch.cat([counts.new_zeros(1), counts.cumsum(0)]), max_buckets)

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_nodes(self) -> int:
        return len(self.batch)

    @property
    def num_pairs(self) -> int:
        r"""The number of pairs, \(\sum_b n_b^2\)."""
        return len(self.pairs.slot_of_row)

    @property
    def num_edges(self) -> int:
        """The number of pairs that are edges: all, if there is no mask."""
        return self.num_pairs if self.mask is None else int(self.mask.sum())

    @cached_property
    def pair_index(self) -> Tensor:
        """All pairs written out: int64 `[2, num_pairs]`, senders and receivers."""
        sizes = self.ptr.diff()[self.batch]
        receiver = torch.repeat_interleave(sizes)
        sender = torch.arange(len(receiver), device=self.ptr.device) - (_starts(sizes) - self.ptr[self.batch])[receiver]
        return torch.stack([sender, receiver])

    @property
    def edge_index(self) -> Tensor:
        """The edges written out: int64 `[2, num_edges]`, senders and receivers."""
        return self.pair_index if self.mask is None else self.pair_index[:, self.mask]

    def select(self, pairs: Tensor) -> Tensor:
        """Features of all pairs, `[num_pairs, *]`, to those of the edges, `[num_edges, *]`, ordered as `edge_index`."""
        return pairs if self.mask is None else pairs[self.mask]

    def where(self, mask: Tensor | None) -> CompleteGraph:
        """The same nodes with fewer edges.

        Args:
            mask: bool `[num_pairs]`, the pairs that stay edges; None keeps all.

        Raises:
            ValueError: the mask is not bool or not of that length.
        """
        if mask is None:
            return self
        if mask.dtype != torch.bool or mask.shape != (self.num_pairs,):
            raise ValueError(f"expected a mask bool [{self.num_pairs}], got {mask.dtype} {list(mask.shape)}")
        return replace(self, mask=mask if self.mask is None else mask & self.mask)

    @cached_property
    def pair_ptr(self) -> Tensor:
        """int64 `[B + 1]`: graph b has the pairs `pair_ptr[b]` to `pair_ptr[b + 1]`."""
        squares = self.ptr.diff().square()
        return torch.cat([squares.new_zeros(1), squares.cumsum(0)])

    def pair_of(self, edge_index: Tensor) -> Tensor:
        """The pair number of each edge (int64 `[2, E]`, both ends in one graph): int64 `[E]`."""
        sender, receiver = edge_index
        graph = self.batch[receiver]
        start = self.ptr[graph]
        return self.pair_ptr[graph] + (receiver - start) * self.ptr.diff()[graph] + sender - start

    @cached_property
    def diagonal(self) -> Tensor:
        """The pair of each node with itself: int64 `[N]`."""
        each = torch.arange(self.num_nodes, device=self.ptr.device)
        return self.pair_of(torch.stack([each, each]))

    def node_buckets(self, slots: Tensor) -> list[Tensor]:
        """Packed nodes `[S, *]` cut into buckets `[count, size, *]` (views)."""
        parts = slots.split([count * size for count, size in self.buckets])
        return [p.view(c, n, *slots.shape[1:]) for p, (c, n) in zip(parts, self.buckets, strict=True)]

    def pair_buckets(self, slots: Tensor) -> list[Tensor]:
        """Packed pairs `[S2, *]` cut into buckets `[count, size, size, *]`, receiver before sender (views)."""
        parts = slots.split([count * size * size for count, size in self.buckets])
        return [p.view(c, n, n, *slots.shape[1:]) for p, (c, n) in zip(parts, self.buckets, strict=True)]

    def to(self, device: torch.device | str) -> CompleteGraph:
        """The same graph with its indices on `device`."""
        return pytree.tree_map_only(Tensor, lambda t: t.to(device), self)

    def __repr__(self) -> str:
        edges = f"num_edges={self.num_edges}" + ("" if self.mask is None else f" of {self.num_pairs}")
        return f"CompleteGraph(num_graphs={self.num_graphs}, num_nodes={self.num_nodes}, {edges})"


def _starts(counts: Tensor) -> Tensor:
    """Exclusive cumulative sum."""
    return counts.cumsum(0) - counts


def _buckets(sizes: list[int], most: int) -> list[tuple[list[int], int]]:
    """Graphs by size, cut where padding costs most: [(graphs, size of the largest)]; empty graphs are left out."""
    order = sorted((i for i, n in enumerate(sizes) if n), key=lambda i: sizes[i])
    if not order:
        return []
    square = torch.tensor([sizes[i] for i in order], dtype=torch.float64).square()
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
    return [(order[lo:hi], sizes[order[hi - 1]]) for lo, hi in itertools.pairwise(cuts)]


def _flatten(graph: CompleteGraph) -> tuple[list, tuple]:
    return [graph.ptr, graph.batch, graph.nodes, graph.pairs, graph.mask], graph.buckets


def _unflatten(children: list, buckets: tuple) -> CompleteGraph:
    *rest, mask = children
    return CompleteGraph(*rest, buckets, mask)


pytree.register_pytree_node(
    CompleteGraph,
    _flatten,
    _unflatten,
    serialized_type_name="gtx.graph.CompleteGraph",
    to_dumpable_context=list,
    from_dumpable_context=lambda context: tuple(map(tuple, context)),
)
