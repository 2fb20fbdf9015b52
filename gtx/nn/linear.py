"""Linear maps and MLPs of nodes, which take a compiled loop where no gradient is wanted."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.dense import linear as pyg

from gtx.attention.fast.building import are_learned, are_plain, build, run
from gtx.elementwise import GELU, Dropout, gelu

_SOURCE = Path(__file__).parent / "fast" / "linear.c"
_SIGNATURES = (("forward", "nnnnpppnp"),)
_WIDE = 32  # the loop computes outputs by so many, or by a divisor
_WIDEST = 512  # most channels in and out: beyond, the weights do not stay in the cache
_LEAST = 5_000_000  # multiplications worth a thread


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, with_gelu: bool = False) -> Tensor:
    r"""Compute the linear map \(W x + b\), or its GELU.

    Where no gradient is wanted, rows in single precision go through a compiled loop, in which the outcome of a row does
    not depend on the other rows: on processors whose registers torch's library does not use in full, it is twice as
    fast. In every other case torch's functions compute the same.

    Args:
        x: `[*, in]`.
        weight: W, `[out, in]`.
        bias: b, `[out]`, or None.
        with_gelu: whether GELU follows.

    Returns:
        `[*, out]`.
    """
    found = None if bias is None else _compiled(x, weight, bias, with_gelu)
    if found is not None:
        return found
    out = F.linear(x, weight, bias)
    return gelu(out) if with_gelu else out


def _compiled(x: Tensor, weight: Tensor, bias: Tensor, with_gelu: bool) -> Tensor | None:
    wide, deep = weight.shape
    if x.dim() != 2 or max(wide, deep) > _WIDEST or not are_plain(x, weight, bias) or are_learned(x, weight, bias):
        return None
    library = None if wide % _WIDE else build(_SOURCE, _SIGNATURES)
    if library is None:
        return None
    x, turned, bias = x.contiguous(), weight.t().contiguous(), bias.contiguous()
    out = x.new_empty(len(x), wide)
    threads = max(1, min(torch.get_num_threads(), x.numel() * wide // _LEAST))
    pointers = (x.data_ptr(), turned.data_ptr(), bias.data_ptr())
    run(library, "forward", threads, len(x), deep, wide, *pointers, int(with_gelu), out.data_ptr())
    return out


class Linear(pyg.Linear):
    """PyG's linear map, computed by `linear`; the learned weights and their names are the same."""

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
