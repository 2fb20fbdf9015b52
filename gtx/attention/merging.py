"""How the heads become one vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot


class Merge(nn.Module):
    """From what the heads have summed, `[N, H, C]`, to `[N, width]`."""

    def width(self, heads: int, channels: int) -> int:
        """Channels that come out: as many as of one head, unless said otherwise."""
        return channels

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class ConcatHeads(Merge):
    """Side by side."""

    def width(self, heads: int, channels: int) -> int:
        return heads * channels

    def forward(self, heads: Tensor) -> Tensor:
        return heads.flatten(1)


class MeanHeads(Merge):
    """Their mean (Veličković et al. 2018, eq. 6, arXiv:1710.10903)."""

    def forward(self, heads: Tensor) -> Tensor:
        return heads.mean(1)


class MaxHeads(Merge):
    """The largest, channel by channel."""

    def forward(self, heads: Tensor) -> Tensor:
        return heads.amax(1)


class WeightedHeads(Merge):
    r"""A learned weight per head, \(\bar e_{ij} = \sum_h w_h \bar e_{ihj}\), started at the mean.

    Args:
        heads: H.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.weight, 1 / len(self.weight))

    def forward(self, heads: Tensor) -> Tensor:
        return torch.einsum("nhj,h->nj", heads, self.weight)


class WeightTensor(Merge):
    r"""One weight tensor, \(\bar e_{il} = \sum_{jh} \bar e_{ihj}\, w_{jhl}\).

    Written out, this is concatenation followed by \(W_o\): row \((h, j)\) of \(W_o\) is \(w_{jh\cdot}\).

    Args:
        heads: H.
        channels: channels of a head, j.
        out_channels: l.
    """

    def __init__(self, heads: int, channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.weight)

    def width(self, heads: int, channels: int) -> int:
        return self.weight.shape[-1]

    def forward(self, heads: Tensor) -> Tensor:
        return torch.einsum("nhj,jhl->nl", heads, self.weight)
