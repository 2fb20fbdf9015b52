"""A gate on each head of each receiver."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear
from torch_geometric.utils import scatter

from gtx.graph import CompleteGraph


class HeadGate(nn.Module):
    r"""GaAN's gate: how much each head counts for each receiver.

    \[ g_r = \sigma\Bigl( W_g \bigl[ v_r \,\|\, \max_{s \to r} W_m v_s \,\|\,
       \operatorname{mean}_{s \to r} v_s \bigr] \Bigr) \]

    The maximum and the mean over no sender are zero.

    Source: Zhang et al. 2018, "GaAN: gated attention networks", eq. 3 (arXiv:1803.07294).

    Args:
        in_channels: channels of the nodes, or of (source, target).
        heads: H.
        channels: width of the max-pooled projection.

    Shapes:
        target `[N, *]`, source `[M, *]`, an edge list or complete graph, to `[N, H]`.
    """

    def __init__(self, in_channels: int | tuple[int, int], heads: int, channels: int = 64) -> None:
        super().__init__()
        source, target = in_channels if isinstance(in_channels, tuple) else (in_channels, in_channels)
        self.heads = heads
        self.lin_max = Linear(source, channels)
        self.lin_gate = Linear(target + channels + source, heads)

    def reset_parameters(self) -> None:
        self.lin_max.reset_parameters()
        self.lin_gate.reset_parameters()

    def forward(self, target: Tensor, source: Tensor, edge_index: Tensor | CompleteGraph) -> Tensor:
        projected = self.lin_max(source)
        if (
            source is target and isinstance(edge_index, CompleteGraph) and edge_index.mask is None
        ):  # all receivers of a graph see the same
            graph, count = edge_index.batch, edge_index.num_graphs
            largest, mean = scatter(projected, graph, 0, count, "max"), scatter(source, graph, 0, count, "mean")
            pooled = torch.cat([largest, mean], -1)[graph]
        else:
            edges = edge_index.edge_index if isinstance(edge_index, CompleteGraph) else edge_index
            sender, receiver = edges
            largest = scatter(projected[sender], receiver, 0, len(target), "max")
            pooled = torch.cat([largest, scatter(source[sender], receiver, 0, len(target), "mean")], -1)
        return self.lin_gate(torch.cat([target, pooled], -1)).sigmoid()

    def __repr__(self) -> str:
        return f"HeadGate({self.lin_gate.in_channels}, {self.lin_gate.out_channels})"
