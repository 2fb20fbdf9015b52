"""MLP of nodes and edges, and the residual that adds it or another branch."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GELU(nn.GELU):
    """`torch.nn.GELU`; of a matrix on a CPU it takes the transpose.

    Torch hands contiguous matrices on a CPU to oneDNN, which compiles code for each shape. Batches of molecules have a
    new shape nearly every time: a training step on ESOL took a tenth longer, and memory grew by 0.35 GiB in 40 epochs.
    """

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or x.dim() != 2 or torch.compiler.is_compiling():
            return super().forward(x)
        return F.gelu(x.t()).t()


class MLP(nn.Sequential):
    r"""Linear map, GELU, dropout, linear map: \(W_2\, \mathrm{GELU}(W_1 x + b_1) + b_2\).

    Args:
        channels: width of the input and the output.
        hidden: width of the hidden layer; default `2 * channels`.
        dropout: dropout rate of the hidden layer, in training; None for a model without.

    Shapes:
        `[*, channels]` to the same.
    """

    def __init__(self, channels: int, hidden: int | None = None, dropout: float | None = None) -> None:
        hidden = 2 * channels if hidden is None else hidden
        between = [GELU()] if dropout is None else [GELU(), nn.Dropout(dropout)]
        super().__init__(nn.Linear(channels, hidden), *between, nn.Linear(hidden, channels))


def add_residual(
    x: Tensor, branch: Callable[[Tensor], Tensor], norm: nn.Module, dropout: nn.Module, norm_first: bool
) -> Tensor:
    """Add a branch with its norm first, `x + branch(norm(x))`, or last, `norm(x + branch(x))`."""
    return x + dropout(branch(norm(x))) if norm_first else norm(x + dropout(branch(x)))
