"""MLP of nodes and edges."""

from __future__ import annotations

import os

from torch import nn

os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
# torch's GELU on a CPU is that of oneDNN, which compiles code for each shape and keeps that of 1,024. Batches of
# molecules have a new shape nearly every time: 40 epochs of ESOL grew by 0.35 GiB. oneDNN reads this at its first use.


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
        between = [nn.GELU()] if dropout is None else [nn.GELU(), nn.Dropout(dropout)]
        super().__init__(nn.Linear(channels, hidden), *between, nn.Linear(hidden, channels))
