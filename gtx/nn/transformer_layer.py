"""Layers of graph transformers: attention, bond messages and an MLP, each a residual; GPS; edge states."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.utils import degree

from gtx.graph import CompleteGraph
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.mlp import MLP, add_residual
from gtx.nn.readout import LearnedDegreeScaling

# --- The state of an edge, updated layer by layer.


class EdgeStateUpdate(nn.Module):
    r"""Residual update of the edge states from the state that the attention score has computed for each edge.

    With norms first, \(e \leftarrow e + W \hat e\), then \(e \leftarrow e + \mathrm{MLP}(\mathrm{norm}(e))\); with
    norms last, \(e \leftarrow \mathrm{norm}(e + W \hat e)\), then
    \(e \leftarrow \mathrm{norm}(e + \mathrm{MLP}(e))\). The vector \(\hat e\) is the state from
    `gtx.attention.Score.state`, with all heads concatenated: the score itself in EGT, a vector in GRIT. Between the two
    updates, edges may attend to each other, with a residual connection of the same form.

    Sources: Hussain et al. 2022, EGT (arXiv:2108.03348), eq. 6 to 9; Ma et al. 2023, GRIT (arXiv:2305.17589), eq. 3,
    without the MLP; Hussain et al. 2024, TGT (arXiv:2402.04538), with triplets.

    Args:
        channels: number K of channels of the edge states.
        state_width: channels of \(\hat e\), see `EdgeAttention.state_width`.
        hidden: width of the hidden layer of the MLP; 0 for no MLP.
        dropout: dropout rate on both branches, in training.
        norm_first: whether norms come first (pre-norm) or last (post-norm) in each branch.
        triplets: attention between edges, such as `gtx.nn.TripletAttention`, or None.

    Shapes:
        edge_attr `[E, K]` and states `[E, state_width]` to `[E, K]`; with triplets the edges too, an edge list or a
        complete graph.
    """

    def __init__(
        self,
        channels: int,
        state_width: int,
        hidden: int = 0,
        dropout: float = 0.0,
        norm_first: bool = True,
        triplets: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.lin_state: nn.Linear = nn.Linear(state_width, channels)
        self.norm_first = norm_first
        self.norm: nn.LayerNorm | nn.Identity = nn.LayerNorm(channels) if hidden or not norm_first else nn.Identity()
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        self.triplets = triplets
        self.norm_triplets: nn.Identity | nn.LayerNorm = nn.Identity() if triplets is None else nn.LayerNorm(channels)
        self.mlp: MLP | None = MLP(channels, hidden) if hidden else None
        self.norm_mlp: nn.LayerNorm | nn.Identity = (
            nn.LayerNorm(channels) if hidden and not norm_first else nn.Identity()
        )

    def forward(self, edge_attr: Tensor, states: Tensor, edges: Tensor | CompleteGraph | None = None) -> Tensor:
        e = edge_attr + self.dropout(self.lin_state(states))
        e = e if self.norm_first else self.norm(e)
        triplets = self.triplets
        if triplets is not None:
            if edges is None:
                raise ValueError("triplets are made of edges: expected an edge list or a complete graph, got None")
            e = add_residual(e, lambda e: triplets(e, edges), self.norm_triplets, self.dropout, self.norm_first)
        if self.mlp is None:
            return e
        return add_residual(e, self.mlp, self.norm if self.norm_first else self.norm_mlp, self.dropout, self.norm_first)


# --- One layer of a graph transformer: attention, bond messages and an MLP, each a residual.
#
# Read next: `gtx/nn/edge_attention.py`, the attention.


class GraphTransformerLayer(nn.Module):
    r"""Graph transformer layer: attention over pairs of nodes, message passing over bonds, and an MLP, each a residual.

    With norms first (pre-norm),

    \[ v \leftarrow v + \mathrm{attend}(\mathrm{norm}(v)) + \mathrm{local}(\mathrm{norm}(v)), \qquad
       v \leftarrow v + \mathrm{MLP}(\mathrm{norm}(v)) \]

    and with norms last (post-norm) \(v \leftarrow \mathrm{norm}(v + \ldots)\), twice. Edge features do not change,
    unless the layer has an edge update. With norms first and an edge update, the attention reads \(\mathrm{norm}(e)\).

    Sources: Vaswani et al. 2017 (arXiv:1706.03762) for the layer; Xiong et al. 2020 (arXiv:2002.04745) for pre-norm;
    Rampášek et al. 2022, GPS (arXiv:2205.12454) for a local branch beside the global one.

    Args:
        attention: attention from `channels` to `channels`.
        local: message passing over the bonds, called as `local(x, bond_index, bond_attr)`, or None.
        channels: width of the nodes.
        hidden: width of the hidden layer of the MLP; default `2 * channels`.
        dropout: dropout rate on the output of every branch and within the MLP, in training.
        norm_first: whether norms come first (pre-norm) or last (post-norm) in each branch.
        edge_update: module that updates edge states, or None.
        scaler: module that scales the output of the attention by the number of bonds, or None.

    Shapes:
        x `[N, channels]` to `[N, channels]`; edge_attr flat, as for the attention; bond_attr `[E, *]`.
    """

    def __init__(
        self,
        attention: EdgeAttention,
        local: nn.Module | None,
        channels: int,
        hidden: int | None = None,
        dropout: float = 0.0,
        norm_first: bool = True,
        edge_update: EdgeStateUpdate | None = None,
        scaler: LearnedDegreeScaling | None = None,
    ) -> None:
        super().__init__()
        if attention.width != channels:
            raise ValueError(f"expected attention that gives {channels} channels, got {attention.width}")
        if edge_update is not None and attention.edge_dim is None:
            raise ValueError("edge updates need edge states: expected attention with an edge_dim, got None")
        self.attention = attention
        self.local = local
        self.edge_update = edge_update
        self.scaler = scaler
        self.norm_attention: nn.LayerNorm = nn.LayerNorm(channels)
        self.norm_mlp: nn.LayerNorm = nn.LayerNorm(channels)
        self.norm_edge: nn.LayerNorm | None = (
            nn.LayerNorm(attention.edge_dim) if edge_update is not None and norm_first else None
        )
        self.mlp: MLP = MLP(channels, hidden, dropout)
        self.dropout: nn.Dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None = None,
        bond_index: Tensor | None = None,
        bond_attr: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Update the nodes, and the edge states if there are any.

        Args:
            x: node features.
            edge_index: pairs between which there is attention, an edge list or a complete graph.
            edge_attr: features of the pairs.
            bond_index: bonds, int64 `[2, E]`, for the local branch and the scaler.
            bond_attr: features of the bonds.
            weights: list to which the attention weights are appended, `[E, H]`.

        Returns:
            Nodes and edge features.
        """
        edges = edge_attr if self.norm_edge is None else self.norm_edge(edge_attr)
        normed = self.norm_attention(x) if self.norm_first else x
        mixed, alpha, states = self.attention.attend(
            normed, edge_index, edges, weights is not None, self.edge_update is not None
        )
        if weights is not None and alpha is not None:
            weights.append(alpha)
        if self.scaler is not None:
            if bond_index is None:
                raise ValueError("the degree scaler counts bonds: expected bond_index [2, E], got None")
            mixed = self.scaler(mixed, degree(bond_index[1], x.shape[0]))
        if self.local is not None:
            mixed = mixed + self.local(normed, bond_index, bond_attr)
        x = x + self.dropout(mixed)
        x = x if self.norm_first else self.norm_attention(x)
        x = add_residual(x, self.mlp, self.norm_mlp, self.dropout, self.norm_first)
        return x, edge_attr if self.edge_update is None else self.edge_update(edge_attr, states, edge_index)


# --- One layer of GPS: message passing and attention side by side, each with a norm of its own.


class GPSLayer(nn.Module):
    r"""GPS layer: local message passing and global attention in parallel, then an MLP of their sum.

    \[ v_M = \mathrm{norm}(v + \mathrm{local}(v)), \quad v_T = \mathrm{norm}(v + \mathrm{attend}(v)), \quad
       v' = \mathrm{norm}(v_M + v_T + \mathrm{MLP}(v_M + v_T)) \]

    Layer norms replace the batch norms of the paper, so that a prediction does not depend on the other molecules of the
    batch.

    Source: Rampášek et al. 2022, eq. 2 to 5 and section 3.2 (arXiv:2205.12454).

    Args:
        attention: attention from `channels` to `channels`; its edge features are passed as `edge_attr`.
        local: message passing over the bonds, called as `local(x, bond_index, bond_attr)`.
        channels: width of the nodes.
        hidden: width of the hidden layer of the MLP; default `2 * channels`.
        dropout: dropout rate on the output of every branch and within the MLP, in training.

    Shapes:
        as in `gtx.nn.GraphTransformerLayer`.
    """

    def __init__(
        self, attention: EdgeAttention, local: nn.Module, channels: int, hidden: int | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        if attention.width != channels:
            raise ValueError(f"expected attention that gives {channels} channels, got {attention.width}")
        self.attention = attention
        self.local = local
        self.norm_local: nn.LayerNorm = nn.LayerNorm(channels)
        self.norm_attention: nn.LayerNorm = nn.LayerNorm(channels)
        self.norm_mlp: nn.LayerNorm = nn.LayerNorm(channels)
        self.mlp: MLP = MLP(channels, hidden, dropout)
        self.dropout: nn.Dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None = None,
        bond_index: Tensor | None = None,
        bond_attr: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the layer, as `gtx.nn.GraphTransformerLayer.forward`; edge features are returned unchanged."""
        attended, alpha, _ = self.attention.attend(x, edge_index, edge_attr, weights is not None)
        if weights is not None and alpha is not None:
            weights.append(alpha)
        near = self.norm_local(x + self.dropout(self.local(x, bond_index, bond_attr)))
        x = near + self.norm_attention(x + self.dropout(attended))
        return self.norm_mlp(x + self.dropout(self.mlp(x))), edge_attr
