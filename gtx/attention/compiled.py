"""Softmax attention over whole molecules in one compiled loop, without padding: what `complete` does, on a CPU."""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch_geometric.utils import scatter, softmax

from gtx.attention.building import build
from gtx.attention.dropout import dropout as drop
from gtx.attention.normalisers import Normaliser, Softmax
from gtx.attention.scores import Score
from gtx.graph import CompleteGraph
from gtx.threads import spread

if TYPE_CHECKING:
    from gtx.attention.complete import EdgeFeatures

_SOURCE = Path(__file__).with_name("ragged.c")
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_MOST = 64  # channels per head for which the loops were written


def can_run(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    normaliser: Normaliser,
    edges: EdgeFeatures,
    asked_for_more: bool = False,
) -> bool:
    """Whether `attention` computes this attention: float32 or float64 on a CPU with a C compiler, a score bilinear in
    query and key, a softmax at temperature 1, 1, 2, 4, 8 or 16 heads, and nothing asked for but the output. Under
    `torch.compile`, `torch.func` and autocast it does not."""
    H, C, D = query.shape[1], query.shape[2], value.shape[2]
    tensors = [x for x in (query, key, value, edges.features, edges.bias) if x is not None]
    return (
        not asked_for_more
        and not torch.compiler.is_compiling()
        and all(x.device.type == "cpu" and x.dtype == query.dtype and type(x) is Tensor for x in map(_plain, tensors))
        and query.dtype in (torch.float32, torch.float64)
        and score.bilinear
        and type(normaliser) is Softmax
        and normaliser.temperature == 1.0
        and edges.state_value is None
        and H in (1, 2, 4, 8, 16)
        and 0 < min(C, D)
        and max(C, D) <= _MOST
        and not torch.is_autocast_enabled("cpu")
        and not torch._C._are_functorch_transforms_active()
        and _library(query.dtype, H, C, D, edges.used_channels) is not None
    )


def _plain(x: Tensor) -> Tensor:
    return x.data if isinstance(x, torch.nn.Parameter) else x


def attention(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    asked: Tensor | None = None,
    features: Tensor | None = None,
    bias: Tensor | None = None,
    collect: bool = False,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor | None]:
    r"""Weigh and sum, for every receiver r over the senders s of its molecule.

    \[ w_{r\cdot} = \mathrm{softmax}_s(q_r \cdot k_s + a_r \cdot e_{rs} + b_{rs}), \qquad
       o_r = \sum_s f_{rs} w_{rs} v_s, \qquad x_r = \sum_s f_{rs} w_{rs} e_{rs} \]

    f are dropout's factors. A receiver without edges gets zeros. Of the size of the pairs, only w is kept for the
    backward pass, which is compiled too; derivatives of it are those of `definition`.

    Args:
        graph: who attends to whom.
        query: `[N, H, C]`.
        key: `[N, H, C]`.
        value: `[N, H, D]`.
        asked: a, what each receiver asks of a pair, `[N, H, K]`, or None.
        features: e, `[num_pairs, K]`, or None.
        bias: b, `[num_pairs, H]`, or None.
        collect: also give x.
        dropout: share of the weights set to zero.

    Returns:
        o `[N, H, D]`, and x `[N, H, K]` or None.
    """
    factor = None
    if dropout:
        factor = drop(query.new_ones(graph.num_pairs, query.shape[1]), dropout)
    return _Attention.apply(query, key, value, asked, features, bias, graph, factor, collect)


def definition(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    asked: Tensor | None,
    features: Tensor | None,
    bias: Tensor | None,
    factor: Tensor | None,
    collect: bool,
) -> tuple[Tensor, Tensor | None]:
    """The same, written out over the list of edges; `factor` are dropout's, `[num_pairs, H]`."""
    sender, receiver = graph.edge_index
    features, bias, factor = (None if x is None else graph.select(x) for x in (features, bias, factor))
    score = (query[receiver] * key[sender]).sum(-1)
    if asked is not None:
        score = score + torch.einsum("ehk,ek->eh", asked[receiver], features)
    if bias is not None:
        score = score + bias
    weights = softmax(score, receiver, num_nodes=graph.num_nodes)
    kept = weights if factor is None else weights * factor

    def total(messages: Tensor) -> Tensor:
        return scatter(messages, receiver, 0, graph.num_nodes, "sum")

    out = total(kept.unsqueeze(-1) * value[sender])
    return out, total(torch.einsum("eh,ek->ehk", kept, features)) if collect else None


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        asked: Tensor | None,
        features: Tensor | None,
        bias: Tensor | None,
        graph: CompleteGraph,
        factor: Tensor | None,
        collect: bool,
    ) -> tuple[Tensor, Tensor | None]:
        query, key, value = map(_rows, (query, key, value))
        asked, features, bias, factor = (None if x is None else x.contiguous() for x in (asked, features, bias, factor))
        (N, H, _), K = query.shape, 0 if features is None else features.shape[1]
        later = any(ctx.needs_input_grad)
        weights = query.new_empty(graph.num_pairs, H) if later else None
        out, collected = torch.empty_like(value, memory_format=torch.contiguous_format), None
        if collect:
            collected = query.new_empty(N, H, K)
        reads = *_strided(query, key, value), asked, features, bias, graph.mask, factor
        _run("forward", graph, query, value, K, *reads, weights, out, collected)
        ctx.save_for_backward(query, key, value, asked, features, bias, factor, weights)
        ctx.graph, ctx.collect = graph, collect
        ctx.set_materialize_grads(False)
        return out, collected

    @staticmethod
    def backward(ctx: Any, d_out: Tensor | None, d_collected: Tensor | None) -> tuple:
        *inputs, factor, weights = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody will differentiate these gradients
            grads = _derivatives(ctx, inputs, factor, d_out, d_collected)
        else:
            grads = _gradients(ctx, *inputs[:5], factor, weights, d_out, d_collected)
        return *grads, None, None, None


@once_differentiable
def _gradients(
    ctx: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    asked: Tensor | None,
    features: Tensor | None,
    factor: Tensor | None,
    weights: Tensor,
    d_out: Tensor | None,
    d_collected: Tensor | None,
) -> list[Tensor | None]:
    """Of query, key, value, and where they are needed of asked, features and bias."""
    needed, K = ctx.needs_input_grad, 0 if features is None else features.shape[1]
    d_out = torch.zeros(value.shape, dtype=value.dtype) if d_out is None else d_out.contiguous()
    d_collected = None if d_collected is None else d_collected.contiguous()
    grads = [torch.empty(x.shape, dtype=x.dtype) for x in (query, key, value)]
    d_bias = torch.empty_like(weights) if needed[5] else None
    d_features = torch.empty_like(features) if needed[4] else None
    d_asked = torch.empty_like(asked) if needed[3] else None
    reads = *_strided(query, key, value), asked, features, factor, weights, d_out, d_collected
    _run("backward", ctx.graph, query, value, K, *reads, *grads, d_bias, d_features, d_asked)
    return [*grads, d_asked, d_features, d_bias]


def _derivatives(
    ctx: Any, inputs: list[Tensor | None], factor: Tensor | None, d_out: Tensor | None, d_collected: Tensor | None
) -> list[Tensor | None]:
    """The same gradients, themselves differentiable."""
    outs = definition(ctx.graph, *inputs, factor, ctx.collect)
    given = [(out, d) for out, d in zip(outs, (d_out, d_collected), strict=True) if out is not None and d is not None]
    wanted = [x for x, needed in zip(inputs, ctx.needs_input_grad, strict=False) if needed]
    outs, ds = zip(*given, strict=True)
    found = iter(torch.autograd.grad(outs, wanted, ds, create_graph=True, allow_unused=True))
    return [next(found) if needed else None for needed in ctx.needs_input_grad[:6]]


def _run(name: str, graph: CompleteGraph, query: Tensor, value: Tensor, K: int, *arguments: Tensor | int | None) -> None:
    """Call the compiled function on all molecules."""
    (_, H, C), D = query.shape, value.shape[2]
    library = _library(query.dtype, H, C, D, K)
    pointers = [x.data_ptr() if isinstance(x, Tensor) else x for x in (graph.ptr, graph.pair_ptr, *arguments)]

    def kernel(first: int, last: int) -> None:
        if getattr(library, name)(first, last, *pointers):
            raise MemoryError(f"attention: no memory for the keys and values of {last - first} molecules")

    nanoseconds = max(1, H * (C + D + K) // 10)  # a pair, about
    spread(kernel, graph.pair_ptr.numpy() * nanoseconds)


@lru_cache
def _library(dtype: torch.dtype, heads: int, key: int, value: int, features: int) -> ctypes.CDLL | None:
    library = build(_SOURCE, SIZE=dtype.itemsize, H=heads, C=key, D=value, K=features)
    if library is not None:
        begin = [_NUMBER, _NUMBER, _POINTER, _POINTER, *[_POINTER, _NUMBER] * 3]
        library.forward.argtypes = [*begin, *[_POINTER] * 8]
        library.backward.argtypes = [*begin, *[_POINTER] * 12]
    return library


def _rows(x: Tensor) -> Tensor:
    """`[N, H, C]` whose rows are contiguous, as those of a slice of a fused projection."""
    return x if x.stride()[1:] == (x.shape[2], 1) else x.contiguous()


def _strided(*tensors: Tensor) -> tuple[Tensor | int, ...]:
    return tuple(part for x in tensors for part in (x, x.stride(0)))
