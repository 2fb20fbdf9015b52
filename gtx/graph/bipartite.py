"""Edges between two sets of nodes: every token with every atom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import torch
from torch import Tensor

from gtx.graph.complete import CompleteGraph

# --- Every sender of one set to every receiver of another: the edges of cross-attention.


def list_bipartite_edges(source_ptr: Tensor, target_ptr: Tensor) -> Tensor:
    """List the edges from every source node to every target node of the same graph, sorted by target.

    The edges join two sets of nodes, such as atoms and the tokens that attend to them (Vaswani et al. 2017, section
    3.2.3, arXiv:1706.03762). Pass the edges to `gtx.nn.EdgeAttention` with `x=(source, target)`.

    Args:
        source_ptr: int64 `[B + 1]`; graph b has the source nodes `source_ptr[b]` to `source_ptr[b + 1]`.
        target_ptr: int64 `[B + 1]`; graph b has the target nodes `target_ptr[b]` to `target_ptr[b + 1]`.

    Returns:
        The edges, int64 `[2, E]`, from senders among the source nodes to receivers among the target nodes.

    Raises:
        ValueError: the two are of different numbers of graphs.
    """
    return BipartiteGraph.between(source_ptr, target_ptr, pack=False).pair_index


# --- Every sender of one set with every receiver of another, without their pairs: the graph of cross-attention.


@dataclass(frozen=True)
class BipartiteGraph(CompleteGraph):
    r"""Graph for cross-attention: edges from each sender (such as an atom) to each receiver (such as a token) of a
    graph.

    Unlike a `CompleteGraph`, the graph has two sets of nodes. The attributes `ptr`, `batch` and `num_nodes` describe
    the receivers. In graph b with \(n_b\) receivers and \(m_b\) senders, the pair (r, s) is number
    \(\mathrm{pair\_ptr}_b + r\, m_b + s\), and `edge_index` is
    `gtx.graph.list_bipartite_edges(source_ptr, ptr)`. The method `between` makes a `BipartiteGraph`.

    Source: Vaswani et al. 2017, section 3.2.3 (arXiv:1706.03762).

    Attributes:
        source_ptr: int64 `[B + 1]`; graph b has the senders `source_ptr[b]` to `source_ptr[b + 1]`.
    """

    source_ptr: Tensor = field(kw_only=True)

    @classmethod
    def between(cls, source_ptr: Tensor, target_ptr: Tensor, max_buckets: int = 4, pack: bool = True) -> Self:
        """Build the graph from the offsets of both sets.

        Args:
            source_ptr: int64 `[B + 1]`, offsets of the senders.
            target_ptr: int64 `[B + 1]`, offsets of the receivers.
            max_buckets: at most this many buckets of like size.
            pack: as in `from_ptr`.

        Raises:
            ValueError: `source_ptr` and `target_ptr` have different lengths.
        """
        if source_ptr.shape != target_ptr.shape or source_ptr.dim() != 1:
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


def split_by_receivers(graph: CompleteGraph, most: int) -> Iterator[tuple[slice, slice, BipartiteGraph]]:
    """Split a complete graph into blocks with some of the receivers and all senders of their graphs.

    A block has at most `most` pairs, unless a single receiver has more. Yields the receivers and the pairs of a block,
    and its graph.
    """
    ends = graph.ptr.diff()[graph.batch].cumsum(0)  # of each receiver's pairs
    first, before = 0, 0
    while first < graph.num_nodes:
        stop = max(first + 1, int(torch.searchsorted(ends, before + most, right=True)))
        pairs = slice(before, int(ends[stop - 1]))
        block = BipartiteGraph.between(graph.ptr, graph.ptr.clamp(first, stop) - first, graph.max_buckets, pack=False)
        yield slice(first, stop), pairs, block.masked(None if graph.mask is None else graph.mask[pairs])
        first, before = stop, pairs.stop
