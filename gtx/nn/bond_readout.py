"""A readout of bonds: from atoms to one vector for each bond."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from gtx.nn.embedding import CodeEmbedding


class BondReadout(nn.Module):
    r"""For the bond of atoms s and r with codes c, whichever of the two is called s:

    \[ \left[\, v_s + v_r,\; |v_s - v_r|,\; E(c) \,\right] \]

    with a learned embedding E. A bond in both directions has the same vector twice.

    Args:
        channels: width of the nodes.
        bond_sizes: codes of each bond column; code 0 means "other".

    Shapes:
        x `[N, channels]`, bond_index int64 `[2, E]`, codes int64 `[E, F]`, to `[E, width]`, `width = 3 * channels`.
    """

    def __init__(self, channels: int, bond_sizes: Sequence[int]) -> None:
        super().__init__()
        self.embedding = CodeEmbedding(bond_sizes, channels, silent_first=True)
        self.width = 3 * channels

    def forward(self, x: Tensor, bond_index: Tensor, codes: Tensor) -> Tensor:
        sender, receiver = x[bond_index[0]], x[bond_index[1]]
        return torch.cat([sender + receiver, (sender - receiver).abs(), self.embedding(codes)], -1)
