"""Linear maps of many rows in one compiled loop, where no gradient is wanted."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.attention.fast.building import are_learned, are_plain, build, run
from gtx.elementwise import gelu

_SOURCE = Path(__file__).with_name("linear.c")
_SIGNATURES = (("forward", "nnnnpppnp"),)
_WIDE = 32
"""The loop computes outputs by so many, or by a divisor."""
_WIDEST = 512
"""Most channels in and out: beyond, the weights do not stay in the cache."""
_LEAST = 5_000_000
"""Multiplications worth a thread."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, with_gelu: bool = False) -> Tensor:
    r"""\(W x + b\), or its GELU.

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
