"""Layer of an equivariant transformer, in which atoms have vectors in space beside their channels."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gtx.attention import EdgeModulatedDotScore, SiLUWithCutoff
from gtx.attention.normalisers import EdgeListAggregator
from gtx.graph import CompleteGraph


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
        radial, along, near = edges.split([self.radial, 3, 1], -1)
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
        alpha = self.normaliser(score, near, EdgeListAggregator(receiver, len(x)))
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
        vectors = vectors + collect(near[:, :, None] * messages) + of_vectors[:, None] * third
        return torch.cat([out, vectors.flatten(1)], -1), edge_attr

    def __repr__(self) -> str:
        return f"EquivariantAttentionLayer({self.channels}, heads={self.heads}, radial={self.radial})"
