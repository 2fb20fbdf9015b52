"""Linear maps and MLPs of nodes, which take the compiled loop where no gradient is wanted."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn.dense import linear as pyg

from gtx.elementwise import GELU, Dropout
from gtx.nn.fast.linear import linear


class Linear(pyg.Linear):
    """PyG's linear map, by `gtx.nn.fast.linear`; the learned weights and their names are the same."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


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
        between = [GELU()] if dropout is None else [GELU(), Dropout(dropout)]
        super().__init__(nn.Linear(channels, hidden), *between, nn.Linear(hidden, channels))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return super().forward(x)
        first, last = self[0], self[-1]
        assert isinstance(first, nn.Linear) and isinstance(last, nn.Linear)
        inner = linear(x, first.weight, first.bias, with_gelu=True)
        return linear(inner, last.weight, last.bias)
