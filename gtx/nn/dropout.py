"""Dropout whose random bits are cheap on a CPU."""

from __future__ import annotations

from torch import Tensor, nn

from gtx.attention import dropout


class Dropout(nn.Module):
    """`gtx.attention.dropout` in training, nothing in evaluation.

    Args:
        p: 0 <= p < 1.
    """

    def __init__(self, p: float = 0.0) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"expected 0 <= p < 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def __repr__(self) -> str:
        return f"Dropout({self.p})"
