"""Stochastic depth: training leaves residual branches out at random."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class StochasticDepth(nn.Module):
    r"""In training, leaves a residual branch out with probability p, for each molecule by itself.

    What is kept is divided by \(1 - p\), so that the mean is the same as in evaluation, where nothing is left out.

    Source: Huang et al. 2016, "Deep networks with stochastic depth" (arXiv:1603.09382).

    Args:
        p: probability, 0 <= p < 1.

    Shapes:
        branch `[N, *]`, and batch int64 `[N]`, the molecule of each row, sorted; without it all rows share one draw.
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"expected 0 <= p < 1, got {p}")
        self.p = p

    def forward(self, branch: Tensor, batch: Tensor | None = None) -> Tensor:
        if not self.training or self.p == 0.0 or len(branch) == 0:
            return branch
        draws = 1 if batch is None else len(branch)  # enough for all molecules, whose number is not asked for
        kept = (torch.rand(draws, device=branch.device) >= self.p).to(branch.dtype) / (1.0 - self.p)
        return branch * (kept if batch is None else kept[batch].view(-1, *[1] * (branch.dim() - 1)))

    def __repr__(self) -> str:
        return f"StochasticDepth({self.p})"
