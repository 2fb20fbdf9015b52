"""Virtual nodes: each is joined to every node of its molecule, and carries what concerns the whole molecule."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from gtx.graph.complete import CompleteGraph


class WithVirtual(NamedTuple):
    """A graph with virtual nodes, and where the old nodes and pairs went.

    Attributes:
        graph: the larger graph; a molecule's virtual nodes come after its own.
        nodes: int64 `[N]`, the new number of each old node.
        virtual: int64 `[B * count]`, or `[sum of the counts]`, the numbers of the virtual nodes, molecule by molecule.
        pairs: int64 `[num_pairs]`, the new number of each old pair.
    """

    graph: CompleteGraph
    nodes: Tensor
    virtual: Tensor
    pairs: Tensor


def with_virtual(graph: CompleteGraph, count: int | Tensor = 1) -> WithVirtual:
    """Add virtual nodes that attend to all nodes of their molecule and are attended to by all.

    Source: Gilmer et al. 2017, the "master node" (arXiv:1704.01212); Ying et al. 2021, Graphormer's VNode
    (arXiv:2106.05234).

    Args:
        graph: of the molecules; masked pairs stay masked, and a node that has no edge at all gets none.
        count: virtual nodes per molecule; int64 `[B]` where molecules have unlike numbers of them.
    """
    device = graph.ptr.device
    larger = graph.grown(count)
    if isinstance(count, Tensor):
        before = count.cumsum(0) - count
        nodes = torch.arange(graph.num_nodes, device=device) + before[graph.batch]
        of = torch.repeat_interleave(count)
        virtual = torch.arange(len(of), device=device) + graph.ptr[of + 1]
    else:
        if count < 1:
            raise ValueError(f"expected at least one virtual node, got {count}")
        nodes = torch.arange(graph.num_nodes, device=device) + count * graph.batch
        virtual = (larger.ptr[1:, None] - count + torch.arange(count, device=device)).flatten()
    sender, receiver = graph.pair_index
    pairs = larger.pair_of(torch.stack([nodes[sender], nodes[receiver]]))
    if graph.mask is not None:
        edges = torch.zeros(larger.num_nodes, dtype=torch.long, device=device).index_fill_(0, virtual, 1)
        for end in (sender, receiver):
            edges.index_add_(0, nodes[end], graph.mask.long())
        mask = (edges > 0)[larger.pair_index].all(0)
        mask[pairs] = graph.mask
        larger = larger.masked(mask)
    return WithVirtual(larger, nodes, virtual, pairs)
