"""Complete and bipartite graphs of every molecule in a batch: objects that know their pairs without holding them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
import torch.utils._pytree as pytree  # torch.export knows other containers by it alone
from torch import Tensor

from gtx.graph.packing import Buckets, MoleculesBySize, SizeBucket, offsets, ragged


@dataclass(frozen=True)
class CompleteGraph:
    r"""Batch of complete graphs: all ordered pairs of nodes of a graph are edges, including each node with itself.

    Pairs are sorted by receiver: in graph b with \(n_b\) nodes, the pair (receiver r, sender s) is number
    \(p = \mathrm{pair\_ptr}_b + r\, n_b + s\), so that `edge_index[0] = s` and `edge_index[1] = r`. A tensor of pair
    features is flat, `[num_pairs, K]` with `num_pairs` \(= \sum_b n_b^2\).

    With `masked(mask)`, only some of the pairs are edges; other pairs get no attention weight. Pair features have a row
    for every pair, with or without a mask.

    For matrix products, graphs of similar size are grouped into a few buckets. Bucket k has `count` graphs padded to
    `size` nodes, with `packed.shapes[k] = (count, size, size)`. The nodes of a bucket fill the next `count * size`
    slots of `packed.nodes`, and the pairs the next `count * size**2` slots of `packed.pairs`. All layers share these
    indices.

    With `torch.compile(dynamic=True)`, one compilation is used for all batches with the same number of buckets, so with
    `max_buckets=1` for all batches.

    The methods `from_batch` and `from_ptr` make a `CompleteGraph`.

    Attributes:
        ptr: int64 `[B + 1]`; graph b has the nodes `ptr[b]` to `ptr[b + 1]`.
        batch: int64 `[N]`, the graph of each node.
        pair_ptr: int64 `[B + 1]`; graph b has the pairs `pair_ptr[b]` to `pair_ptr[b + 1]`.
        num_pairs: number of pairs, \(\sum_b n_b^2\).
        mask: mask of the pairs that are edges, bool `[num_pairs]`, or None if all pairs are edges.
        max_buckets: largest number of buckets.
        shared: values computed once, by name, shared with the graphs that `masked` returns.
    """

    has_ghost: ClassVar[bool] = False  # whether the last graph is no molecule, and its pairs are not n²

    ptr: Tensor
    batch: Tensor
    pair_ptr: Tensor
    num_pairs: int
    mask: Tensor | None = None
    max_buckets: int = 4
    shared: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_ptr(cls, ptr: Tensor, max_buckets: int = 4, pack: bool = True) -> Self:
        """Build the graph from offsets.

        Args:
            ptr: offsets of the graphs, integers `[B + 1]`, ascending from 0.
            max_buckets: largest number of buckets; with 1, every graph is padded to the size of the largest graph.
            pack: whether the indices of the buckets are computed at once, as code under `torch.compile` needs, or at
                first use.
        """
        ptr = _check_ptr(ptr)
        sizes = ptr.diff()
        pair_ptr = torch.cat([ptr[:1], sizes.square().cumsum(0)])
        graph = cls(ptr, torch.repeat_interleave(sizes), pair_ptr, int(pair_ptr[-1]), max_buckets=max_buckets)
        if pack:
            graph.packed  # noqa: B018
        return graph

    @classmethod
    def from_batch(cls, batch: Tensor, num_graphs: int | None = None, max_buckets: int = 4, pack: bool = True) -> Self:
        """Build the graph from a batch vector.

        Args:
            batch: graph of each node, integers `[N]`, sorted, from 0.
            num_graphs: number B of graphs, needed if the last graphs have no nodes; default `batch.max() + 1`.
            max_buckets: as in `from_ptr`.
            pack: as in `from_ptr`.

        Raises:
            TypeError: `batch` is not a tensor (but for example a `torch_geometric.data.Batch`).
            ValueError: `batch` is not a vector of integers, not sorted, or has numbers that are of no graph.
        """
        if not isinstance(batch, Tensor):
            raise TypeError(
                f"expected a batch vector [N], such as batch.batch of a Batch, got {type(batch).__name__}; "
                "for one graph of N nodes use from_ptr(torch.tensor([0, N]))"
            )
        if batch.dim() != 1 or batch.dtype not in (torch.long, torch.int):
            raise ValueError(f"expected a batch vector of integers [N], got {batch.dtype} {list(batch.shape)}")
        below = batch.diff(prepend=batch.new_zeros(1)) < 0
        if bool(below.any()):
            at = int(below.nonzero()[0])
            raise ValueError(
                f"expected a sorted batch vector from 0 on, but node {at} is of graph {int(batch[at])}"
                + (f" after a node of graph {int(batch[at - 1])}" if at else "")
            )
        counts = torch.bincount(batch, minlength=num_graphs or 0)
        if num_graphs is not None and len(counts) > num_graphs:
            raise ValueError(f"expected nodes of {num_graphs} graphs, but the last is of graph {len(counts) - 1}")
        return cls.from_ptr(offsets(counts), max_buckets, pack)

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    @property
    def num_nodes(self) -> int:
        return self.batch.shape[0]

    @property
    def sender_ptr(self) -> Tensor:
        """Offsets of those that send, int64 `[B + 1]`: here of the nodes."""
        return self.ptr

    @property
    def num_senders(self) -> int:
        """Number of senders; in a complete graph, the number of nodes."""
        return self.num_nodes

    @property
    def packed(self) -> Buckets:
        """Packing of the graphs into buckets of similar size."""
        return self._once("packed", lambda: Buckets.of(self.ptr, self.sender_ptr, self.max_buckets))

    @property
    def size_order(self) -> MoleculesBySize:
        """Order of the molecules by size, with bounds on the sizes that are known without reading from the device."""
        return self._once("size_order", self._size_order)

    def _size_order(self) -> MoleculesBySize:
        sizes, order = self.ptr.diff().sort()
        first = self.num_graphs - sum(count for count, _, _ in self.packed.shapes)  # empty graphs come first
        least, ranges = 1, []
        for count, most, _ in self.packed.shapes:
            ranges.append(SizeBucket(first, first + count, least, most))
            first, least = first + count, most
        return MoleculesBySize(torch.stack([self.ptr[order], self.pair_ptr[order], sizes]), tuple(ranges))

    @property
    def num_edges(self) -> int:
        """Number of pairs that are edges; without a mask, all pairs."""
        return self.num_pairs if self.mask is None else int(self.mask.sum())

    @property
    def pair_index(self) -> Tensor:
        """Senders and receivers of all pairs, int64 `[2, num_pairs]`."""
        return self._once("pair_index", self._pair_index)

    def _pair_index(self) -> Tensor:
        receiver, place = ragged(self.sender_ptr.diff()[self.batch])
        return torch.stack([self.sender_ptr[self.batch[receiver]] + place, receiver])

    @property
    def _row_starts(self) -> Tensor:
        """Starts of the rows of pairs, int64 `[N]`: receiver r and sender s are pair number `_row_starts[r] + s`."""

        def starts() -> Tensor:
            senders = self.sender_ptr.diff()[self.batch]
            return senders.cumsum(0) - senders - self.sender_ptr[self.batch]

        return self._once("row_starts", starts)

    @property
    def edge_index(self) -> Tensor:
        """Senders and receivers of all edges, int64 `[2, num_edges]`."""
        return self.pair_index if self.mask is None else self.pair_index[:, self.mask]

    def select(self, pairs: Tensor) -> Tensor:
        """Select the features of the edges, `[num_edges, *]`, in the order of `edge_index`, from features of all pairs,
        `[num_pairs, *]`.
        """
        return pairs if self.mask is None else pairs[self.mask]

    def masked(self, mask: Tensor | None) -> Self:
        """Return a graph in which only some of the pairs are edges.

        Args:
            mask: mask of the pairs that remain edges, bool `[num_pairs]`; None for all pairs.

        Raises:
            ValueError: the mask is not bool or has another length.
        """
        if mask is None:
            return self
        if mask.dtype != torch.bool or mask.shape != (self.num_pairs,):
            raise ValueError(f"expected a mask bool [{self.num_pairs}], got {mask.dtype} {list(mask.shape)}")
        mask = mask.contiguous()  # kernels read it where it lies
        return replace(self, mask=mask if self.mask is None else mask & self.mask)

    def pair_of(self, edge_index: Tensor) -> Tensor:
        """Return the pair number of each edge (int64 `[2, E]`): int64 `[E]`.

        Raises:
            ValueError: on a CPU, an edge whose ends are not in one graph.
        """
        self._check(edge_index)
        sender, receiver = edge_index
        return self._row_starts.index_select(0, receiver) + sender

    def _check(self, edge_index: Tensor) -> None:
        """Check that edges are within graphs, on a CPU alone: on a GPU the answer would have to be waited for."""
        if edge_index.device.type != "cpu" or torch.compiler.is_compiling():
            return
        sender, receiver = edge_index
        inside = receiver.clamp(0, max(0, self.num_nodes - 1))
        graph = self.batch.index_select(0, inside)
        first, end = (ptr.index_select(0, graph) for ptr in (self.sender_ptr[:-1], self.sender_ptr[1:]))
        wrong = (receiver != inside) | (sender < first) | (sender >= end)
        if wrong.any():
            edge = int(wrong.nonzero()[0])
            raise ValueError(
                f"expected edges between nodes of one molecule, {self.num_nodes} nodes in all, "
                f"but edge {edge} is from node {int(sender[edge])} to node {int(receiver[edge])}"
            )

    @property
    def diagonal(self) -> Tensor:
        """Pair number of each node with itself, int64 `[N]`."""
        each = torch.arange(self.num_nodes, device=self.ptr.device)
        return self._once("diagonal", lambda: self.pair_of(torch.stack([each, each])))

    def grown(self, count: int | Tensor) -> Self:
        """Add `count` nodes to each graph, or `count[b]` to graph b, after the existing nodes; all pairs are edges."""
        if isinstance(count, Tensor):
            return type(self).from_ptr(self.ptr + offsets(count), self.max_buckets)
        nodes = count * torch.arange(self.num_graphs + 1, device=self.ptr.device)
        return type(self).from_ptr(self.ptr + nodes, self.max_buckets)

    def to(self, device: torch.device | str) -> Self:
        """Move the indices of the graph to `device`."""
        return pytree.tree_map_only(Tensor, lambda t: t.to(device), self)

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.shared:
            self.shared[name] = make()
        return self.shared[name]

    def __repr__(self) -> str:
        edges = f"num_edges={self.num_edges}" + ("" if self.mask is None else f" of {self.num_pairs}")
        return f"CompleteGraph(num_graphs={self.num_graphs}, num_nodes={self.num_nodes}, {edges})"


def _check_ptr(ptr: Tensor) -> Tensor:
    """Return offsets as int64 in one piece, as compiled loops read them, or refuse what are none."""
    if not isinstance(ptr, Tensor):
        raise TypeError(f"expected a tensor ptr of integers [B + 1], got {type(ptr).__name__}")
    if ptr.dim() != 1 or len(ptr) == 0 or ptr.dtype not in (torch.long, torch.int):
        raise ValueError(f"expected ptr of integers [B + 1], got {ptr.dtype} {list(ptr.shape)}")
    if int(ptr[0]) != 0 or bool((ptr.diff() < 0).any()):
        raise ValueError(f"expected ptr [B + 1] that starts at 0 and never descends, got {ptr.tolist()[:8]}...")
    return ptr.long().contiguous()


def _flatten(graph: CompleteGraph) -> tuple[list[Any], tuple[Any, ...]]:
    nodes, _, pairs, shapes = graph.packed
    sizes = (graph.num_pairs, graph.max_buckets, shapes)
    return [graph.ptr, graph.batch, graph.pair_ptr, graph.mask, nodes, pairs], sizes


def _unflatten(children: Iterable[Any], context: tuple[Any, ...]) -> CompleteGraph:
    (ptr, batch, pair_ptr, mask, nodes, pairs), (num_pairs, max_buckets, shapes) = children, context
    packed = Buckets(nodes, nodes, pairs, shapes)
    return CompleteGraph(ptr, batch, pair_ptr, num_pairs, mask, max_buckets, {"packed": packed})


pytree.register_pytree_node(
    CompleteGraph,
    _flatten,
    _unflatten,
    serialized_type_name="gtx.graph.CompleteGraph",
    to_dumpable_context=list,
    from_dumpable_context=lambda context: (*context[:2], tuple(map(tuple, context[2]))),
)


# --- Every sender of one set with every receiver of another, without their pairs: the graph of cross-attention.


@dataclass(frozen=True)
class BipartiteGraph(CompleteGraph):
    r"""Graph for cross-attention: edges from each sender (such as an atom) to each receiver (such as a token) of a
    graph.

    Unlike a `CompleteGraph`, the graph has two sets of nodes. The attributes `ptr`, `batch` and `num_nodes` describe
    the receivers. In graph b with \(n_b\) receivers and \(m_b\) senders, the pair (r, s) is number
    \(\mathrm{pair\_ptr}_b + r\, m_b + s\); `edge_index` lists the pairs as an edge list, from senders to receivers. The
    method `between` makes a `BipartiteGraph`; pass it to `gtx.nn.EdgeAttention` with `x=(source, target)`.

    Source: Vaswani et al. 2017, section 3.2.3 (arXiv:1706.03762).

    Attributes:
        source_ptr: int64 `[B + 1]`; graph b has the senders `source_ptr[b]` to `source_ptr[b + 1]`.
    """

    source_ptr: Tensor = field(kw_only=True)

    @classmethod
    def between(cls, source_ptr: Tensor, target_ptr: Tensor, max_buckets: int = 4, pack: bool = True) -> Self:
        """Build the graph from the offsets of both sets.

        Args:
            source_ptr: integers `[B + 1]`, offsets of the senders.
            target_ptr: integers `[B + 1]`, offsets of the receivers.
            max_buckets: at most this many buckets of like size.
            pack: as in `from_ptr`.

        Raises:
            ValueError: `source_ptr` and `target_ptr` have different lengths, or are no offsets.
        """
        source_ptr, target_ptr = _check_ptr(source_ptr), _check_ptr(target_ptr)
        if source_ptr.shape != target_ptr.shape:
            raise ValueError(
                f"expected ptr [B + 1] of as many graphs, got {list(source_ptr.shape)} and {list(target_ptr.shape)}"
            )
        receivers = target_ptr.diff()
        pair_ptr = torch.cat([target_ptr[:1], (receivers * source_ptr.diff()).cumsum(0)])
        batch = torch.repeat_interleave(receivers)
        graph = cls(target_ptr, batch, pair_ptr, int(pair_ptr[-1]), None, max_buckets, source_ptr=source_ptr)
        if pack:
            graph.num_senders, graph.packed  # noqa: B018
        return graph

    @property
    def sender_ptr(self) -> Tensor:
        return self.source_ptr

    @property
    def num_senders(self) -> int:
        """Number of senders in all graphs."""
        return self._once("num_senders", lambda: int(self.source_ptr[-1]))

    def to(self, device: torch.device | str) -> Self:
        moved = self.between(self.source_ptr.to(device), self.ptr.to(device), self.max_buckets)
        return moved.masked(None if self.mask is None else self.mask.to(device))

    def __repr__(self) -> str:
        edges = f"num_edges={self.num_edges}" + ("" if self.mask is None else f" of {self.num_pairs}")
        return f"BipartiteGraph(num_graphs={self.num_graphs}, {self.num_senders} to {self.num_nodes} nodes, {edges})"
