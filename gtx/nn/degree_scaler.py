"""A scaler of what a node has summed, by its degree."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class DegreeScaler(nn.Module):
    r"""\(v \odot \theta_1 + \log(1 + \deg) \, v \odot \theta_2\), started at \(\theta_1 = 1, \theta_2 = 0\).

    The sum under a softmax does not depend on the number of senders; this scaler adds it.

    Sources: Corso et al. 2020 (arXiv:2004.05718) for degree scalers; Ma et al. 2023, GRIT (arXiv:2305.17589), eq. 4,
    for this form.

    Args:
        channels: of the nodes.

    Shapes:
        x `[N, channels]` and degree `[N]` (bonds into each node) to `[N, channels]`.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.stack([torch.ones(channels), torch.zeros(channels)]))

    def forward(self, x: Tensor, degree: Tensor) -> Tensor:
        return x * (self.weight[0] + torch.log1p(degree.to(x.dtype)).unsqueeze(-1) * self.weight[1])

    def __repr__(self) -> str:
        return f"DegreeScaler({self.weight.shape[1]})"
