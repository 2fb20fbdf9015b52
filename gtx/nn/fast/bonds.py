"""Messages over the bonds in one compiled loop, by the codes of the bonds."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gtx.attention.fast.building import are_plain, build, plain_gradients, run

_SOURCE = Path(__file__).with_name("bonds.c")
_CHANNELS = range(16, 513, 16)


def can_sum(*tensors: Tensor) -> bool:
    """Return whether `sum_messages` can read these: `[*, C]`, in single precision, where there is a C compiler."""
    channels = tensors[0].shape[-1]
    return channels in _CHANNELS and are_plain(*tensors) and _library(channels) is not None


def sum_messages(
    x: Tensor, edge_index: Tensor, codes: Tensor, offsets: Tensor, table: Tensor, bias: Tensor, scale: float
) -> Tensor | None:
    r"""\((1 + \epsilon) x_r + \sum_{s \to r} \mathrm{ReLU}(x_s + b + \sum_c T_c[\mathrm{code}_c])\).

    The backward pass is compiled too. None where it cannot run (see `can_sum`), and where there is no such code or
    node. Nodes x are `[N, C]`, edge_index int64 `[2, E]`, codes of the bonds int64 `[E, F]`, T `[*, C]`, b `[C]`, and
    the scale 1 + epsilon; offsets, int64 `[F + 1]`, are where each column's rows begin in the table, and the end.
    """
    if not can_sum(x, table, bias):
        return None
    bonds = *edge_index.contiguous(), codes.long().contiguous(), offsets
    return _Messages.apply(bonds, scale, x.contiguous(), table.contiguous(), bias)


def definition(bonds: tuple[Tensor, ...], scale: float, x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
    """Compute the same in plain torch; `bonds` are senders, receivers, codes and offsets."""
    sender, receiver, codes, first = bonds
    message = x[sender] + bias + table[codes + first[:-1]].sum(1)
    return (scale * x).index_add(0, receiver, message.relu())


class _Messages(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, bonds: tuple[Tensor, ...], scale: float, x: Tensor, table: Tensor, bias: Tensor
    ) -> Tensor | None:
        ctx.save_for_backward(x, table, bias)
        ctx.bonds, ctx.scale, out = bonds, scale, torch.empty_like(x)
        return None if _run("forward", bonds, x, table, bias, scale, out) else out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple:
        tensors = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate these gradients
            plain = partial(definition, ctx.bonds, ctx.scale)
            return None, None, *plain_gradients(plain, tensors, ctx.needs_input_grad[2:], d_out)
        grads = [torch.empty_like(tensors[0]), *map(torch.zeros_like, tensors[1:])]
        _run("backward", ctx.bonds, *tensors, ctx.scale, d_out.contiguous(), *grads)
        return None, None, *grads


def _run(
    name: str, bonds: tuple[Tensor, ...], x: Tensor, table: Tensor, bias: Tensor, scale: float, *more: Tensor
) -> int:
    """Call the compiled function: not 0 where there is no such code or node."""
    sender, receiver, codes, first = bonds
    given = (one.data_ptr() for one in (sender, receiver, codes, first, table, bias, x))
    return run(_library(x.shape[1]), name, len(x), *codes.shape, *given, scale, *(one.data_ptr() for one in more))


def _library(channels: int) -> ctypes.CDLL | None:
    first = "nnn" + 7 * "p" + "f"
    return build(_SOURCE, (("forward", first + "p"), ("backward", first + 4 * "p")), K=channels)
