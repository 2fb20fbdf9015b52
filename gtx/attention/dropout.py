"""Dropout whose random bits are cheap on a CPU."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gtx.native.elementwise import LEVELS, dropout_factors


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    r"""In training, set each entry to zero with probability p and divide the others by 1 - p; else x itself.

    Source: Srivastava et al. 2014, JMLR 15:1929. On a CPU 16 random bits decide an entry, so p is rounded to a multiple
    of \(2^{-16}\); in single precision a compiled loop draws them (`gtx/native/elementwise.c`), otherwise torch draws
    others. On other devices, and in compiled code, this is `torch.nn.functional.dropout`.

    Args:
        x: any shape.
        p: 0 <= p < 1.
        training: whether anything is dropped.
    """
    if not training or p == 0.0:
        return x
    if x.device.type != "cpu" or torch.compiler.is_compiling():
        return F.dropout(x, p)
    factors = dropout_factors(x, p)
    if factors is not None:
        return x * factors
    level = round(p * LEVELS)
    words = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[: x.numel()].view(x.shape)
    kept = (bits >= level - LEVELS // 2).to(x.dtype)
    return x * kept.mul_(LEVELS / max(LEVELS - level, 1))


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
