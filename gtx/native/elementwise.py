"""Dropout and GELU: as layers, and as loops in C on a CPU."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import gelu

from gtx.native.building import are_plain, build, plain_gradients, run

_SOURCE = Path(__file__).with_name("elementwise.c")
_LEAST = 65_536  # numbers that are worth a second thread
LEVELS = 1 << 16
"""Number of values of the random bits that decide about an entry."""

# --- Layers and functions.


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    r"""Set each entry of x to zero with probability p, and divide the others by 1 - p; outside training, return x
    itself.

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
    """Dropout module that calls `gtx.attention.dropout` in training and does nothing in evaluation.

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


class GELU(nn.Module):
    r"""GELU activation, a faster `torch.nn.GELU` with equal results.

    \[ \mathrm{GELU}(x) = x\, \Phi(x) \]

    On a CPU torch hands contiguous tensors to oneDNN, which compiles code for each shape and keeps it among the
    program's data. Batches of molecules have a new shape nearly every time, and training grew slower and larger with
    every epoch: on ESOL by a quarter in 40, and from 0.8 to 1.15 GiB. oneDNN is passed over by the transpose, a view
    that costs nothing. In training, in single precision on a CPU, one compiled loop yields value and slope.

    Source: Hendrycks and Gimpel 2016 (arXiv:1606.08415).

    Shapes:
        any to the same.
    """

    def forward(self, x: Tensor) -> Tensor:
        activated = activate(x)
        if activated is not None:
            return activated
        return gelu(x.mT).mT if x.dim() > 1 else gelu(x)


# --- Loops in C.


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
