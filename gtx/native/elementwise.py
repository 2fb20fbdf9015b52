"""Factors of dropout, and GELU with its slope, as loops in C on a CPU."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from gtx.native.building import are_plain, build, plain_gradients, run

_SOURCE = Path(__file__).with_name("elementwise.c")
_LEAST = 65_536  # numbers that are worth a second thread
LEVELS = 1 << 16
"""Number of values of the random bits that decide about an entry."""


def dropout_factors(x: Tensor, p: float) -> Tensor | None:
    r"""Draw factors by which to multiply x in dropout, as x: 0 with probability p, else 1 / (1 - p).

    p is rounded to a multiple of \(2^{-16}\). One number of torch's generator begins the random bits of all entries,
    which are hashes of their index (counters in place of a state: Salmon et al. 2011, 10.1145/2063384.2063405).

    Returns:
        None where the loop cannot run: in other than single precision on a CPU, or without a C compiler.
    """
    if not are_plain(x) or _library() is None:
        return None
    seed = int(torch.empty((), dtype=torch.int64).random_())
    level, factors = round(p * LEVELS), torch.empty(x.shape)
    scale = LEVELS / max(LEVELS - level, 1)
    _run("dropout", x, seed & 0xFFFFFFFF, seed >> 32, level, scale, factors.data_ptr())
    return factors


def activate(x: Tensor) -> Tensor | None:
    """Compute GELU and keep its slope for the backward pass; None as for dropout, and where no gradient is wanted."""
    if not (torch.is_grad_enabled() and x.requires_grad and are_plain(x)) or _library() is None:
        return None
    return _GELU.apply(x)


class _GELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        x = x.contiguous()
        out, slope = torch.empty_like(x), torch.empty_like(x)
        _run("activate", x, x.data_ptr(), out.data_ptr(), slope.data_ptr())
        ctx.save_for_backward(x, slope)
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> Tensor | None:
        x, slope = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate these gradients
            return plain_gradients(gelu, [x], [True], d_out)[0]
        return d_out * slope


def _run(name: str, x: Tensor, *arguments: float) -> None:
    threads = torch.get_num_threads() if x.numel() >= _LEAST else 1
    run(_library(), name, threads, x.numel(), *arguments)


def _library() -> ctypes.CDLL | None:
    return build(_SOURCE, (("dropout", "nnnnnfp"), ("activate", "nnppp")))
