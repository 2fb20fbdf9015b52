"""Additive scores: query and key are added, not multiplied, and one learned vector reads the sum."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot

from gtx.attention.scores import Score


class _Additive(Score):
    """A learned vector a per head, `[H, C]`."""

    def __init__(self, heads: int, channels: int) -> None:
        super().__init__()
        self.heads, self.channels = heads, channels
        self.vector = nn.Parameter(torch.empty(heads, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.vector)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vector.shape[0]}, {self.vector.shape[1]})"


class Concat(_Additive):
    r"""\(a \cdot \tanh(q + k)\): with the projections in q and k this is \(a \cdot \tanh(W [v_r \,\|\, v_s])\).

    Sources: Bahdanau et al. 2015 (arXiv:1409.0473); Luong et al. 2015, "concat" (arXiv:1508.04025, eq. 8).

    Args:
        heads: H.
        channels: channels C of query and key, per head.
    """

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return ((query + key).tanh() * self.vector).sum(-1)


class GATv2(_Additive):
    r"""\(a \cdot \mathrm{LeakyReLU}(q + k)\): which sender scores highest depends on the receiver.

    With the projections in q and k, and edge features in the key, this is
    \(a \cdot \mathrm{LeakyReLU}(W [v_r \,\|\, v_s \,\|\, e_{rs}])\).

    Source: Brody et al. 2022, eq. 7 (arXiv:2105.14491).

    Args:
        heads: H.
        channels: channels C of query and key, per head.
        slope: of the LeakyReLU below zero.
    """

    def __init__(self, heads: int, channels: int, slope: float = 0.2) -> None:
        super().__init__(heads, channels)
        self.slope = slope

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (F.leaky_relu(query + key, self.slope) * self.vector).sum(-1)


class GAT(Score):
    r"""\(\mathrm{LeakyReLU}(a_r \cdot q + a_s \cdot k)\): one number of the receiver plus one of the sender.

    With one projection shared by query, key and value, \(q = W v_r\) and \(k = W v_s\), this is
    \(\mathrm{LeakyReLU}(a \cdot [W v_r \,\|\, W v_s])\). The order of the senders is the same for every receiver, which
    `GATv2` mends.

    Source: Veličković et al. 2018, eq. 3 (arXiv:1710.10903).

    Args:
        heads: H.
        channels: channels C of query and key, per head.
        slope: of the LeakyReLU below zero.
    """

    def __init__(self, heads: int, channels: int, slope: float = 0.2) -> None:
        super().__init__()
        self.heads, self.channels = heads, channels
        self.receiver, self.sender = (nn.Parameter(torch.empty(heads, channels)) for _ in range(2))
        self.slope = slope
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.receiver)
        glorot(self.sender)

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        of_receiver, of_sender = (query * self.receiver).sum(-1), (key * self.sender).sum(-1)
        return F.leaky_relu(of_receiver + of_sender, self.slope)

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self(query[:, :, None], key[:, None])  # one number each: nothing of width C per pair

    def __repr__(self) -> str:
        return f"GAT({self.receiver.shape[0]}, {self.receiver.shape[1]})"
