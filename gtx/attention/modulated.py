"""A score in which the edge scales every channel of query and key."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn.dense.linear import Linear

from gtx.attention.scores import Score


class ModulatedDot(Score):
    r"""A dot product whose every channel a projection of the edge multiplies.

    \[ s_{rs} = \sum_c q_{rc}\, k_{sc}\, a(W_e e_{rs})_c \cdot f \]

    Sources: Shirzad et al. 2023, Exphormer (arXiv:2303.06147), a the identity and \(f = 1/\sqrt{C}\), as in
    Dwivedi & Bresson 2020 (arXiv:2012.09699); Thölke & De Fabritiis 2022, TorchMD-NET (arXiv:2202.02541), a the SiLU
    and f = 1.

    Args:
        heads: H.
        channels: channels C of query and key, per head.
        edge_dim: channels K of the edge features.
        scale: f; default \(1/\sqrt{C}\).
        activation: a; default none.
        clip: bound of the score, or None; a published setting is 5.
    """

    def __init__(
        self,
        heads: int,
        channels: int,
        edge_dim: int,
        scale: float | None = None,
        activation: nn.Module | None = None,
        clip: float | None = None,
    ) -> None:
        super().__init__()
        self.heads, self.channels, self.clip = heads, channels, clip
        self.scale = channels**-0.5 if scale is None else scale
        self.lin_edge = Linear(edge_dim, heads * channels)
        self.activation = activation

    def reset_parameters(self) -> None:
        self.lin_edge.reset_parameters()

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        if edge is None:
            raise ValueError("this score needs edge features: expected [E, edge_dim], got None")
        factor = self.lin_edge(edge).unflatten(-1, (self.heads, self.channels))
        factor = factor if self.activation is None else self.activation(factor)
        score = self.scale * (query * key * factor).sum(-1)
        return score if self.clip is None else score.clamp(-self.clip, self.clip)

    def __repr__(self) -> str:
        return f"ModulatedDot({self.heads}, {self.channels}, {self.lin_edge.in_channels})"
