"""Embedding of features and messages over bonds as loops in C on a CPU, forward and backward.

Without a C compiler, or with `GTX_COMPILED=0`, the plain forms in `gtx/nn/embedding.py` and `gtx/nn/bonds.py` run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, linear

from gtx.attention.fast.building import are_learned, are_plain, build, plain_gradients, run

# --- The embedding of features: codes and values in, vectors out.

_EMBEDDED = range(16, 129, 16)  # channels: whole registers, and few enough that the tables stay in the cache

Read = list[tuple[Tensor, Tensor | None]]
"""Features, each as its values, or as its codes with the offsets of each column's rows in the embedding table."""


def embed_features(
    modules: Iterable[nn.Module], mlp: nn.Sequential | None, features: Sequence[Tensor]
) -> Tensor | None:
    """Compute `gtx.nn.CategoricalEmbedding` or `gtx.nn.PairEmbedding` in compiled loops, in single precision.

    Each feature has a module, a `CategoricalEmbedding` or a linear map; the MLP is a GELU, a linear map, a GELU.
    Gradients of the weights are compiled too. Returns None where the values need a gradient, without a C compiler,
    and where a feature is not what its module reads, such as a code that is not in the table.
    """
    modules = list(modules)
    weights = [weight for module in (*modules, mlp or nn.Identity()) for weight in module.parameters()]
    values = [x for x in features if x.is_floating_point()]
    width = weights[-1].shape[-1]
    if (
        width not in _EMBEDDED
        or not are_plain(*weights, *values)
        or are_learned(*values)
        or not all(map(_fits, modules, features))
        or len({len(feature) for feature in features}) > 1
        or _embedding_library(width) is None
    ):
        return None
    base = sum((module.bias for module in modules if isinstance(module, nn.Linear)), weights[0].new_zeros(width))
    weight, bias = (None, None) if mlp is None else (mlp[1].weight, mlp[1].bias)
    tables: list[Tensor] = []
    read: Read = []
    for module, feature in zip(modules, features, strict=True):
        if isinstance(module, nn.Linear):
            tables.append(module.weight.t().contiguous())
            read.append((feature, None))
        else:
            tables.append(module.get_parameter("table"))
            read.append((feature.long().contiguous(), module.get_buffer("offsets")))
    return _Embedding.apply(read, are_learned(*weights), base, weight, bias, *tables)


def _fits(module: nn.Module, feature: Tensor) -> bool:
    """Return whether a feature has the type and the columns that its module reads."""
    real = isinstance(module, nn.Linear)
    columns = module.in_features if isinstance(module, nn.Linear) else len(module.get_buffer("offsets")) - 1
    return feature.is_floating_point() == real and feature.dim() == 2 and feature.shape[1] == columns


def embed_by_definition(
    read: Read, base: Tensor, weight: Tensor | None, bias: Tensor | None, *tables: Tensor
) -> Tensor:
    """Compute the same in plain torch."""
    x = base
    for (feature, first), table in zip(read, tables, strict=True):
        x = x + (feature @ table if first is None else table[feature + first[:-1]].sum(1))
    return x if weight is None else gelu(linear(gelu(x), weight, bias))


class _Embedding(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, read: Read, learned: bool, base: Tensor, weight: Tensor | None, bias: Tensor | None, *tables: Tensor
    ) -> Tensor | None:
        turned = None if weight is None else weight.t().contiguous()
        out = base.new_empty(len(read[0][0]), len(base))
        kept = [torch.empty_like(out) if learned and weight is not None else None for _ in range(3)]
        parts = (_Part * len(read))(*(_part(*each, table) for each, table in zip(read, tables, strict=True)))
        tensors = base, turned, bias, out, *kept
        if run(_embedding_library(len(base)), "forward", _threads(out), len(out), len(read), parts, *tensors):
            return None
        ctx.save_for_backward(base, weight, bias, *tables, *kept)
        ctx.read = read
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple:
        *tensors, inner, slope, outer_slope = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate these gradients
            return (
                None,
                None,
                *plain_gradients(partial(embed_by_definition, ctx.read), tensors, ctx.needs_input_grad[2:], d_out),
            )
        base, weight, _, *tables = tensors
        d_x = d_out = d_out.contiguous()
        d_y = d_weight = d_bias = None
        if weight is not None:
            d_y, d_x, weight = torch.empty_like(d_out), torch.empty_like(d_out), weight.contiguous()
        threads = _threads(d_out)
        d_tables = [
            None if first is None else table.new_zeros(threads, *table.shape)
            for (_, first), table in zip(ctx.read, tables, strict=True)
        ]
        parts = (_Part * len(tables))(
            *(_part(*each, *both) for each, *both in zip(ctx.read, tables, d_tables, strict=True))
        )
        tensors = weight, slope, outer_slope, d_out, d_y, d_x
        run(_embedding_library(len(base)), "backward", threads, len(d_out), len(parts), parts, *tensors)
        if d_y is not None:
            d_weight, d_bias = d_y.t() @ inner, d_y.sum(0)
        d_tables = [
            feature.t() @ d_x if d_table is None else d_table.sum(0)
            for (feature, _), d_table in zip(ctx.read, d_tables, strict=True)
        ]
        return None, None, d_x.sum(0) if ctx.needs_input_grad[2] else None, d_weight, d_bias, *d_tables


class _Part(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("codes", "values")),
        *((name, ctypes.c_int64) for name in ("row_step", "column_step", "columns")),
        *((name, ctypes.c_void_p) for name in ("first", "table", "d_table")),
    ]


def _part(feature: Tensor, first: Tensor | None, table: Tensor, d_table: Tensor | None = None) -> _Part:
    """Return a feature as the loops read it."""
    codes, values = (None, feature) if first is None else (feature, None)
    addresses = [None if x is None else x.data_ptr() for x in (codes, values, first, table, d_table)]
    return _Part(*addresses[:2], *feature.stride(), feature.shape[1], *addresses[2:])


def _threads(rows: Tensor) -> int:
    return torch.get_num_threads() if len(rows) > 5000 else 1


def _embedding_library(channels: int) -> ctypes.CDLL | None:
    return build(Path(__file__).with_name("features.c"), SIZE=4, K=channels)


# --- Messages over the bonds, by the codes of the bonds.


def can_sum(*tensors: Tensor) -> bool:
    """Return whether `sum_messages` can read these: `[*, C]`, in single precision, where there is a C compiler."""
    channels = tensors[0].shape[-1]
    return channels in range(16, 513, 16) and are_plain(*tensors) and _message_library(channels) is not None


def sum_messages(
    x: Tensor, edge_index: Tensor, codes: Tensor, offsets: Tensor, table: Tensor, bias: Tensor, scale: float
) -> Tensor | None:
    r"""\((1 + \epsilon) x_r + \sum_{s \to r} \mathrm{ReLU}(x_s + b + \sum_c T_c[\mathrm{code}_c])\).

    The backward pass is compiled too. None where it cannot run (see `can_sum`), and where there is no such code or
    node. Nodes x are `[N, C]`, edge_index `[2, E]` and codes of the bonds `[E, F]` integers, T `[*, C]`, b `[C]`, and
    the scale 1 + epsilon; offsets, int64 `[F + 1]`, are where each column's rows begin in the table, and the end.
    """
    if not can_sum(x, table, bias) or codes.shape != (edge_index.shape[1], len(offsets) - 1):
        return None
    bonds = *edge_index.long().contiguous(), codes.long().contiguous(), offsets
    return _Messages.apply(bonds, scale, x.contiguous(), table.contiguous(), bias)


def sum_by_definition(bonds: tuple[Tensor, ...], scale: float, x: Tensor, table: Tensor, bias: Tensor) -> Tensor:
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
            plain = partial(sum_by_definition, ctx.bonds, ctx.scale)
            return None, None, *plain_gradients(plain, tensors, ctx.needs_input_grad[2:], d_out)
        grads = [torch.empty_like(tensors[0]), *map(torch.zeros_like, tensors[1:])]
        _run("backward", ctx.bonds, *tensors, ctx.scale, d_out.contiguous(), *grads)
        return None, None, *grads


def _run(
    name: str, bonds: tuple[Tensor, ...], x: Tensor, table: Tensor, bias: Tensor, scale: float, *more: Tensor
) -> int:
    """Call the compiled function: not 0 where there is no such code or node."""
    library = _message_library(x.shape[1])
    return run(library, name, len(x), *bonds[2].shape, *bonds, table, bias, x, scale, *more)


def _message_library(channels: int) -> ctypes.CDLL | None:
    return build(Path(__file__).with_name("bonds.c"), K=channels)
