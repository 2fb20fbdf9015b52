"""R-MAT's score: relative embeddings of a pair beside query and key."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot

from gtx.attention.scores import Score, dots


class RelativeDot(Score):
    r"""Query, key and the relative embedding \(b_{rs} = W e_{rs}\) of the pair, each with each, and two global terms.

    \[ s_{rs} = \frac{q_r \cdot k_s + (q_r + k_s) \cdot b_{rs}}{\sqrt{C}} + u \cdot k_s + w \cdot b_{rs} \]

    The global content term \(u \cdot k_s\) is of the SENDER: were it of the receiver, the softmax would cancel it. Add
    the embedding to the values by `edge_value=True`.

    Source: Maziarka et al. 2021, "Relative molecule self-attention transformer" (arXiv:2110.05841), after Dai et al.
    2019, Transformer-XL (arXiv:1901.02860).

    Args:
        heads: H.
        channels: channels C of query and key, per head.
        edge_dim: channels K of the edge features.

    Raises:
        ValueError: no edge features come.
    """

    def __init__(self, heads: int, channels: int, edge_dim: int) -> None:
        super().__init__()
        self.heads, self.channels = heads, channels
        self.edge = nn.Parameter(torch.empty(heads, channels, edge_dim))  # W
        self.content, self.position = (nn.Parameter(torch.empty(heads, channels)) for _ in range(2))  # u, w
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for parameter in (self.edge, self.content, self.position):
            glorot(parameter)

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        relative = torch.einsum("...k,hck->...hc", _needed(edge), self.edge)
        scaled = (query * key).sum(-1) + ((query + key) * relative).sum(-1)
        return scaled * query.shape[-1] ** -0.5 + (self.content * key).sum(-1) + (self.position * relative).sum(-1)

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        edge, root = _needed(edge), query.shape[-1] ** 0.5
        # (q/√C + w)·W e = ((q/√C + w) W)·e, and the same for k/√C: vectors [., n, H, K]
        by_receiver = torch.einsum("brhc,hck->brhk", query / root + self.position, self.edge)
        by_sender = torch.einsum("bshc,hck->bshk", key / root, self.edge)
        of_receiver = edge @ by_receiver.transpose(2, 3)  # [b, r, s, H]
        of_sender = (edge.transpose(1, 2) @ by_sender.transpose(2, 3)).transpose(1, 2)
        return dots(query / root + self.content, key) + of_receiver + of_sender

    def __repr__(self) -> str:
        return f"RelativeDot({', '.join(map(str, self.edge.shape))})"


def _needed(edge: Tensor | None) -> Tensor:
    if edge is None:
        raise ValueError("this score needs edge features: expected [E, edge_dim], got None")
    return edge
