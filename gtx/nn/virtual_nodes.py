"""Virtual nodes with learned features, joined to every atom of a molecule."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from gtx.graph import CompleteGraph, with_virtual


class Nodes(NamedTuple):
    """Which nodes are atoms, int64 `[N]`, and which are virtual, int64 `[B * count]` (None if there are none)."""

    atoms: Tensor
    virtual: Tensor | None


class VirtualNodes(nn.Module):
    """Adds virtual nodes with learned features, and a learned feature for every pair that has one.

    Source: Ying et al. 2021, Graphormer, section 3.1.3 (arXiv:2106.05234).

    Args:
        count: virtual nodes per molecule.
        channels: of the nodes.
        pair_channels: of the pairs, or None.

    Shapes:
        a graph, x `[N, channels]` and pairs `[num_pairs, pair_channels]` or None, to the larger graph, its `Nodes`, its
        node features and its pair features. A node without any edge, not even from itself, gets none.
    """

    def __init__(self, count: int, channels: int, pair_channels: int | None) -> None:
        super().__init__()
        self.node = nn.Parameter(torch.empty(count, channels))
        self.pair = None if pair_channels is None else nn.Parameter(torch.empty(pair_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.node)
        if self.pair is not None:
            nn.init.normal_(self.pair, std=0.1)

    def forward(
        self, graph: CompleteGraph, x: Tensor, pairs: Tensor | None
    ) -> tuple[CompleteGraph, Nodes, Tensor, Tensor | None]:
        larger, nodes, virtual, old_pairs = with_virtual(graph, len(self.node))
        everything = x.new_empty(larger.num_nodes, x.shape[1])
        everything = everything.index_copy(0, nodes, x)
        everything = everything.index_copy(0, virtual, self.node.to(x.dtype).repeat(graph.num_graphs, 1))
        if pairs is not None:
            pairs = self.pair.to(x.dtype).repeat(larger.num_pairs, 1).index_copy(0, old_pairs, pairs)
        return larger, Nodes(nodes, virtual), everything, pairs

    def __repr__(self) -> str:
        return f"VirtualNodes({self.node.shape[0]}, {self.node.shape[1]})"
