"""Losses that leave out blanks."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

LOSSES: dict[str, Callable[..., Tensor]] = {
    "mse": F.mse_loss,
    "mae": F.l1_loss,
    "huber": F.huber_loss,
    "bce": F.binary_cross_entropy_with_logits,
}


def masked_loss(name: str) -> Callable[[Tensor, Tensor], Tensor]:
    """The mean of a loss over the entries that were observed.

    Args:
        name: `"mse"`, `"mae"`, `"huber"` (delta 1, in scaled units) or `"bce"` (of logits).

    Returns:
        A function of outputs `[B, T]` in scaled units and targets `[B, T]`, NaN for blanks. A batch of blanks alone
        gives 0, still a function of the outputs, so that every rank has gradients to exchange.

    Raises:
        ValueError: there is no such loss.
    """
    if name not in LOSSES:
        raise ValueError(f"expected a loss among {', '.join(LOSSES)}, got {name!r}")
    elementwise = LOSSES[name]

    def loss(output: Tensor, target: Tensor) -> Tensor:
        observed = ~target.isnan()
        # blanks are filled before the loss, not after: the gradient of a NaN is NaN even where it is masked
        each = elementwise(output, torch.where(observed, target, 0.0), reduction="none")
        return (each * observed).sum() / observed.sum().clamp(min=1)

    return loss
