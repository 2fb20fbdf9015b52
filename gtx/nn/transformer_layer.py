"""Layers of graph transformers: attention, bond messages and an MLP, each a residual; GPS; vectors in space."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.utils import degree

from gtx.attention import EdgeModulatedDotScore, SiLUWithCutoff
from gtx.attention.normalisers import EdgeListAggregator
from gtx.graph import CompleteGraph
from gtx.nn.blocks import MLP, LearnedDegreeScaling, add_residual
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.edge_states import EdgeStateUpdate

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
        if edge_update is not None and attention.edge_dim in (None, -1):
            raise ValueError(f"edge updates need states: expected attention with an edge_dim, got {attention.edge_dim}")
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
        edges = edge_attr if self.norm_edge is None or edge_attr is None else self.norm_edge(edge_attr)
        normed = self.norm_attention(x) if self.norm_first else x
        attended, alpha, states = self.attention.attend(
            normed, edge_index, edges, weights is not None, self.edge_update is not None
        )
        if weights is not None and alpha is not None:
            weights.append(alpha)
        if self.scaler is not None:
            if bond_index is None:
                raise ValueError("the degree scaler counts bonds: expected bond_index [2, E], got None")
            attended = self.scaler(attended, degree(bond_index[1], x.shape[0]))
        if self.local is not None:
            attended = attended + self.local(normed, bond_index, bond_attr)
        x = x + self.dropout(attended)
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
        local = self.norm_local(x + self.dropout(self.local(x, bond_index, bond_attr)))
        x = local + self.norm_attention(x + self.dropout(attended))
        return self.norm_mlp(x + self.dropout(self.mlp(x))), edge_attr


# --- A layer of an equivariant transformer, in which atoms have vectors in space beside their channels.


class EquivariantAttentionLayer(nn.Module):
    r"""Equivariant attention layer that updates channels \(x_i\) and vectors \(v_i\), which rotate with the molecule.

    With \(\hat x = \mathrm{norm}(x)\), for an edge from the sender s to the receiver r with radial features
    \(e_{rs}\), direction \(u_{rs}\) and nearness \(\phi_{rs}\),

    \[ a_{rs} = \mathrm{SiLU}\bigl(q_r \cdot (k_s \odot \mathrm{SiLU}(W_K e_{rs}))\bigr)\, \phi_{rs}, \qquad
       s^1, s^2, s^3 = (W_s \hat x_s) \odot \mathrm{SiLU}(W_V e_{rs}) \]
    \[ y^1_r, y^2_r, y^3_r = W_o \sum_s a_{rs} s^3_{rs}, \qquad
       w_r = \sum_s \phi_{rs} \bigl( s^1_{rs} \odot v_s + s^2_{rs} \odot u_{rs} \bigr) \]
    \[ x \leftarrow x + y^1 + y^2 \odot \langle U_1 v, U_2 v \rangle, \qquad v \leftarrow v + w + y^3 \odot U_3 v \]

    with inner products over the three components of a channel. Turn or mirror the molecule, and v turns or is mirrored
    while x stays. \(\phi\) in w keeps the layer smooth where an atom leaves the cutoff; the paper has it in a alone.

    Source: Thölke & De Fabritiis 2022, TorchMD-NET (arXiv:2202.02541).

    Args:
        channels: C, of x; as many vectors per node.
        heads: attention heads; they divide C.
        radial: channels of \(e_{rs}\).
        last: give x alone; the vectors of the last layer are of no use.

    Shapes:
        nodes `[N, C]`, whose vectors are 0 yet, or `[N, 4 C]`, x and then v `[3, C]`, to `[N, 4 C]`, or `[N, C]` from
        the last layer; edge_attr `[E, radial + 4]`, u and phi last as `gtx.encodings.PairUnitVector` yields them.
    """

    def __init__(self, channels: int, heads: int, radial: int, last: bool = False) -> None:
        super().__init__()
        if heads < 1 or channels % heads:
            raise ValueError(f"expected heads that divide the channels, got {heads} heads and {channels} channels")
        self.channels = channels
        self.heads = heads
        self.radial = radial
        self.last = last
        self.norm: nn.LayerNorm = nn.LayerNorm(channels)
        self.lin_query: nn.Linear = nn.Linear(channels, channels)
        self.lin_key: nn.Linear = nn.Linear(channels, channels)
        self.score: EdgeModulatedDotScore = EdgeModulatedDotScore(
            heads, channels // heads, radial, scale=1.0, activation=nn.SiLU()
        )
        self.normaliser: SiLUWithCutoff = SiLUWithCutoff()
        self.lin_value: nn.Linear = nn.Linear(channels, 3 * channels)
        self.lin_edge_value: nn.Linear = nn.Linear(radial, 3 * channels)
        self.lin_out: nn.Linear = nn.Linear(channels, 3 * channels)
        self.lin_vector: nn.Linear = nn.Linear(channels, 3 * channels, bias=False)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor,
        bond_index: Tensor | None = None,
        bond_attr: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Compute the layer, with the arguments of `gtx.nn.GraphTransformerLayer`.

        Bonds are ignored; edge features are returned unchanged.
        """
        edges = edge_attr
        if isinstance(edge_index, CompleteGraph):
            if edge_index.mask is not None:  # even NaN there has no effect
                edges = edges.masked_fill(~edge_index.mask[:, None], 0.0)
            edge_index = edge_index.pair_index
        sender, receiver = edge_index
        if edges.shape != (len(sender), self.radial + 4):
            raise ValueError(f"expected edge features [{len(sender)}, {self.radial + 4}], got {list(edges.shape)}")
        radial, along, nearness = edges.split([self.radial, 3, 1], -1)
        if x.shape[1] == self.channels:
            vectors = x.new_zeros(len(x), 3, self.channels)
        else:
            x, flat = x.split([self.channels, 3 * self.channels], -1)
            vectors = flat.unflatten(-1, (3, self.channels))
        normed = self.norm(x)

        def heads(channels: Tensor) -> Tensor:
            return channels.unflatten(-1, (self.heads, -1))

        query, key = heads(self.lin_query(normed))[receiver], heads(self.lin_key(normed))[sender]
        score = self.score(query, key, radial)
        alpha = self.normaliser(score, nearness, EdgeListAggregator(receiver, len(x)))
        if weights is not None:
            weights.append(alpha)
        value = self.lin_value(normed)[sender] * nn.functional.silu(self.lin_edge_value(radial))
        turned, moved, kept = value.split(self.channels, -1)

        def collect(messages: Tensor) -> Tensor:
            return messages.new_zeros(len(x), *messages.shape[1:]).index_add_(0, receiver, messages)

        kept = collect((alpha.unsqueeze(-1) * heads(kept)).flatten(1))
        of_channels, of_dot, of_vectors = self.lin_out(kept).split(self.channels, -1)
        first, second, third = self.lin_vector(vectors).split(self.channels, -1)
        out = x + of_channels + of_dot * (first * second).sum(1)
        if self.last:
            return out, edge_attr
        messages = turned[:, None] * vectors[sender] + moved[:, None] * along[:, :, None]
        vectors = vectors + collect(nearness[:, :, None] * messages) + of_vectors[:, None] * third
        return torch.cat([out, vectors.flatten(1)], -1), edge_attr

    def __repr__(self) -> str:
        return f"EquivariantAttentionLayer({self.channels}, heads={self.heads}, radial={self.radial})"
