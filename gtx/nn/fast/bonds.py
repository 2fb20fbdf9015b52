"""Messages over the bonds in one compiled loop, by the codes of the bonds."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from gtx.attention.fast.building import build
from gtx.nn.fast.conditions import are_plain

_SOURCE = Path(__file__).with_name("bonds.c")
_CHANNELS = range(16, 513, 16)


def sum_messages(
    x: Tensor, edge_index: Tensor, codes: Tensor, offsets: Tensor, table: Tensor, bias: Tensor, scale: float
) -> Tensor | None:
    r"""\((1 + \epsilon) x_r + \sum_{s \to r} \mathrm{ReLU}(x_s + b + \sum_c T_c[\mathrm{code}_c])\).

    It is worked out in single precision and where no gradient is wanted. None elsewhere, without a C compiler, and
    where there is no such code or node.

    Args:
        x: nodes, `[N, C]`.
        edge_index: int64 `[2, E]`.
        codes: of the bonds, int64 `[E, F]`.
        offsets: int64 `[F]`, where each column's rows begin in the table.
        table: T, `[*, C]`.
        bias: b, `[C]`.
        scale: 1 + epsilon.
    """
    if x.shape[1] not in _CHANNELS or not are_plain(x, table, bias):
        return None
    library = _library(x.shape[1])
    if library is None:
        return None
    sender, receiver = edge_index.contiguous()
    x, codes, out = (
        x.contiguous(),
        codes.long().contiguous(),
        torch.empty_like(x, memory_format=torch.contiguous_format),
    )
    first = torch.cat([offsets, offsets.new_tensor([len(table)])])
    given = (one.data_ptr() for one in (sender, receiver, codes, first, table, bias, x))
    return None if library.messages(len(x), *codes.shape, *given, scale, out.data_ptr()) else out


@lru_cache
def _library(channels: int) -> ctypes.CDLL | None:
    library = build(_SOURCE, K=channels)
    if library is not None:
        library.messages.argtypes = [*[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 7, ctypes.c_float, ctypes.c_void_p]
    return library
