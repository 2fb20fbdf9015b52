"""The embedding of features in one compiled loop: codes and values in, vectors out."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor, nn

from gtx.attention.fast.building import build
from gtx.nn.fast.conditions import are_plain

_SOURCE = Path(__file__).with_name("features.c")
_CHANNELS = range(16, 129, 16)  # whole registers, and few enough that the tables stay in the cache


def embed_features(parts: Iterable[nn.Module], mlp: nn.Sequential | None, features: Sequence[Tensor]) -> Tensor | None:
    """What `gtx.nn.CodeEmbedding` and `gtx.nn.PairEmbedding` give, in single precision and where no gradient is wanted;
    None elsewhere, where there is no C compiler, and where a code is not in its table.

    Args:
        parts: for each feature, a `CodeEmbedding` or a linear map.
        mlp: a GELU, a linear map, a GELU; or None.
        features: what they embed, one or more.
    """
    parts = list(parts)
    weights = [weight for module in (*parts, mlp or nn.Identity()) for weight in module.parameters()]
    width = weights[-1].shape[-1]
    if width not in _CHANNELS or not are_plain(*weights, *(x for x in features if x.is_floating_point())):
        return None
    library = _library(width)
    if library is None:
        return None
    read = [_part(*each) for each in zip(parts, features, strict=True)]
    base = sum((part.bias for part in parts if isinstance(part, nn.Linear)), weights[0].new_zeros(width))
    weight, bias = (None, None) if mlp is None else (mlp[1].weight.t().contiguous(), mlp[1].bias)
    out = base.new_empty(len(features[0]), width)
    threads = torch.get_num_threads() if len(out) > 5000 else 1
    given = (_Part * len(read))(*(part for part, _ in read))
    pointers = (None if x is None else x.data_ptr() for x in (base, weight, bias, out))
    return None if library.embed(threads, len(out), len(read), given, *pointers) else out


class _Part(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("codes", "values")),
        *((name, ctypes.c_int64) for name in ("row_step", "column_step", "columns")),
        *((name, ctypes.c_void_p) for name in ("first", "table")),
    ]


def _part(module: nn.Module, feature: Tensor) -> tuple[_Part, list[Tensor]]:
    """A feature as the loop reads it, and the tensors that must live as long."""
    if isinstance(module, nn.Linear):
        table = module.weight.t().contiguous()
        steps = *feature.stride(), feature.shape[1]
        return _Part(None, feature.data_ptr(), *steps, None, table.data_ptr()), [feature, table]
    codes, first = (
        feature.long().contiguous(),
        torch.cat([module.offsets, module.offsets.new_tensor([len(module.table)])]),
    )
    steps = 0, 0, codes.shape[1]
    return _Part(codes.data_ptr(), None, *steps, first.data_ptr(), module.table.data_ptr()), [codes, first]


@lru_cache
def _library(channels: int) -> ctypes.CDLL | None:
    library = build(_SOURCE, K=channels)
    if library is not None:
        library.embed.argtypes = [*[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 5]
    return library
