"""One layer of a graph transformer: attention, bond messages and an MLP, each a residual.

Read next: `gtx/nn/edge_attention.py`, the attention.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.utils import degree

from gtx.gelu import GELU
from gtx.graph import CompleteGraph
from gtx.nn.degree_scaler import DegreeScaler
from gtx.nn.dropout import Dropout
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.edge_update import EdgeUpdate
from gtx.nn.stochastic_depth import StochasticDepth


class GraphTransformerLayer(nn.Module):
    r"""Attention over the pairs, message passing over the bonds beside it, and an MLP, each a residual.

    With norms first (pre-norm),

    \[ v \leftarrow v + \mathrm{attend}(\mathrm{norm}(v)) + \mathrm{local}(\mathrm{norm}(v)), \qquad
       v \leftarrow v + \mathrm{MLP}(\mathrm{norm}(v)) \]

    and with norms last (post-norm) \(v \leftarrow \mathrm{norm}(v + \ldots)\), twice. Edge features stay as they are,
    or are states that an edge update changes; with norms first the attention then sees \(\mathrm{norm}(e)\).

    Sources: Vaswani et al. 2017 (arXiv:1706.03762) for the layer; Xiong et al. 2020 (arXiv:2002.04745) for pre-norm;
    Rampášek et al. 2022, GPS (arXiv:2205.12454) for a local branch beside the global one.

    Args:
        attention: attention from `channels` to `channels`.
        local: message passing over the bonds, called as `local(x, bond_index, bond_attr)`, or None.
        channels: width of the nodes.
        hidden: width within the MLP; default `2 * channels`.
        dropout: on every branch's output and within the MLP, in training.
        norm_first: pre-norm; if False, post-norm.
        edge_update: how edge states change, or None.
        scaler: of what the attention gives, by the number of bonds, or None.
        stochastic_depth: probability that a molecule's branch is left out in training.

    Shapes:
        x `[N, channels]` to `[N, channels]`; edge_attr flat as the attention wants it; bond_attr `[E, *]`.
    """

    def __init__(
        self,
        attention: EdgeAttention,
        local: nn.Module | None,
        channels: int,
        hidden: int | None = None,
        dropout: float = 0.0,
        norm_first: bool = True,
        edge_update: EdgeUpdate | None = None,
        scaler: DegreeScaler | None = None,
        stochastic_depth: float = 0.0,
    ) -> None:
        super().__init__()
        if attention.width != channels:
            raise ValueError(f"expected attention that gives {channels} channels, got {attention.width}")
        if edge_update is not None and attention.edge_dim is None:
            raise ValueError("edge updates need edge states: expected attention with an edge_dim, got None")
        self.attention, self.local = attention, local
        self.edge_update, self.scaler = edge_update, scaler
        self.norm_attention, self.norm_mlp = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.norm_edge = nn.LayerNorm(attention.edge_dim) if edge_update is not None and norm_first else None
        self.mlp = feed_forward(channels, hidden, dropout)
        self.dropout = Dropout(dropout)
        self.stochastic_depth = StochasticDepth(stochastic_depth)
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None = None,
        bond_index: Tensor | None = None,
        bond_attr: Tensor | None = None,
        batch: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Update the nodes, and the edge states if there are any.

        Args:
            x: node features.
            edge_index: the pairs that attend, an edge list or a complete graph.
            edge_attr: features of those pairs.
            bond_index: int64 `[2, E]`, the bonds, for the local branch and the scaler.
            bond_attr: features of the bonds.
            batch: int64 `[N]`, the molecule of each node, for stochastic depth.
            weights: a list to put the attention weights into, `[E, H]`.

        Returns:
            Nodes and edge features.
        """
        edges = edge_attr if self.norm_edge is None else self.norm_edge(edge_attr)
        normed = self.norm_attention(x) if self.norm_first else x
        mixed, alpha, states = self.attention.attend(
            normed, edge_index, edges, weights is not None, self.edge_update is not None
        )
        if weights is not None:
            weights.append(alpha)
        if self.scaler is not None:
            if bond_index is None:
                raise ValueError("the degree scaler counts bonds: expected bond_index [2, E], got None")
            mixed = self.scaler(mixed, degree(bond_index[1], len(x)))
        if self.local is not None:
            mixed = mixed + self.local(normed, bond_index, bond_attr)
        x = x + self.stochastic_depth(self.dropout(mixed), batch)
        if not self.norm_first:
            x = self.norm_attention(x)
        x = x + self.stochastic_depth(self.dropout(self.mlp(self.norm_mlp(x) if self.norm_first else x)), batch)
        if not self.norm_first:
            x = self.norm_mlp(x)
        return x, edge_attr if self.edge_update is None else self.edge_update(edge_attr, states, edge_index)


def feed_forward(channels: int, hidden: int | None, dropout: float) -> nn.Sequential:
    """The MLP of a layer: `hidden` wide within, by default twice as wide as without."""
    hidden = 2 * channels if hidden is None else hidden
    return nn.Sequential(nn.Linear(channels, hidden), GELU(), Dropout(dropout), nn.Linear(hidden, channels))
