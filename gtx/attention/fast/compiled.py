"""Softmax attention over whole molecules in one compiled loop, without padding: what `attend_pairs` does, on a CPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.attention.definition import DOT_SOFTMAX, AttentionRule, ProjectedEdgeFeatures, attend_edges
from gtx.attention.fast.building import are_plain, build, plain_gradients, run
from gtx.graph import CompleteGraph

_MOST = 64  # channels per head for which the loops were written


def can_run(graph: CompleteGraph, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> bool:
    """Return whether `attention` can compute this attention.

    It can in float32 or float64 on a CPU with a C compiler, for a score bilinear in query and key, a softmax at
    temperature 1, and 1, 2, 4, 8 or 16 heads; not under `torch.compile`, `torch.func` or autocast.
    """
    H, C, D = query.shape[1], query.shape[2], value.shape[2]
    tensors = [x for x in (query, key, value, *rule.edges) if x is not None]
    return (
        are_plain(*tensors, dtype=query.dtype)
        and not graph.has_ghost
        and query.dtype in (torch.float32, torch.float64)
        and rule.is_dot_softmax
        and H in (1, 2, 4, 8, 16)
        and min(C, D) > 0
        and max(C, D) <= _MOST
        and _library(query.dtype, H, C, D, rule.edges.used_channels) is not None
    )


def attention(
    graph: CompleteGraph, query: Tensor, key: Tensor, value: Tensor, edges: ProjectedEdgeFeatures, dropout: float = 0.0
) -> Tensor:
    r"""Weigh and sum, for every receiver r over the senders s of its molecule: `attend` with a dot product (the scale
    is in the query) and a softmax.

    \[ w_{r\cdot} = \mathrm{softmax}_s\bigl(q_r \cdot (k_s + W_K e_{rs}) + w_b \cdot e_{rs} + b_{rs}\bigr), \qquad
       o_r = \sum_s f_{rs} w_{rs} (v_s + W_V e_{rs}) \]

    f are dropout's factors. A receiver without edges gets zeros. Of the size of the pairs, only w is kept for the
    backward pass, which is compiled too; derivatives of it are those of `attend_by_definition`.

    Args:
        graph: who attends to whom; of two sets, M senders and N receivers, a `BipartiteGraph`.
        query, key, value: `[N, H, C]`, `[M, H, C]` and `[M, H, D]`.
        edges: e and what it does; no states.
        dropout: share of the weights set to zero.

    Returns:
        o, `[N, H, D]`.
    """
    factor = F.dropout(query.new_ones(graph.num_pairs, query.shape[1]), dropout) if dropout else None
    used = (edges.features if edges.used_channels else None, edges.key, edges.value, edges.score, edges.bias)
    contiguous = [None if x is None else x.contiguous() for x in used]
    return _Attention.apply(*map(_rows, (query, key, value)), *contiguous, graph, factor)


def attend_by_definition(
    query: Tensor, key: Tensor, value: Tensor, *edges: Tensor | None, graph: CompleteGraph, factor: Tensor | None = None
) -> Tensor:
    """Compute the same by `gtx.attention.definition`; `edges` are e, W_K, W_V, w_b and b, `factor` is dropout's."""
    e, of_key, of_value, of_score, bias = edges
    e, bias, factor = (None if x is None else graph.select(x) for x in (e, bias, factor))
    features = ProjectedEdgeFeatures(e, bias, of_score, of_key, of_value)
    return attend_edges(graph.edge_index, query, key, value, DOT_SOFTMAX._replace(edges=features), factor).out


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        *tensors, graph, factor = inputs
        query, _, value, features, _, value_map, *_ = tensors
        (N, H, _), K = query.shape, _channels(features)
        weights = query.new_empty(graph.num_pairs, H) if any(ctx.needs_input_grad) else None
        out = query.new_empty(N, H, value.shape[2])
        collected = None if value_map is None else query.new_empty(N, H, K)
        turned = None if value_map is None else value_map.permute(2, 0, 1).contiguous()
        cuts = _cuts(graph, query, value, features)
        pairs = (*tensors[3:5], turned, *tensors[6:], graph.mask, factor)
        _run("forward", graph, cuts, tensors[:3], *pairs, weights, out, collected)
        ctx.save_for_backward(*tensors, factor, weights, collected)
        ctx.graph = graph
        return out

    @staticmethod
    def backward(ctx: Any, d_out: Tensor) -> tuple:
        *tensors, factor, weights, collected = ctx.saved_tensors
        query, _, value, features, *_ = tensors
        if torch.is_grad_enabled():  # somebody will differentiate these gradients
            plain = partial(attend_by_definition, graph=ctx.graph, factor=factor)
            return *plain_gradients(plain, tensors, ctx.needs_input_grad[:8], d_out), None, None
        d_out = d_out.contiguous()
        grads = [
            torch.empty(x.shape, dtype=x.dtype) if x is not None and (needed or i < 3) else None
            for i, (x, needed) in enumerate(zip(tensors, ctx.needs_input_grad, strict=False))
        ]
        cuts = _cuts(ctx.graph, query, value, features)
        maps = [None if x is None else x.new_zeros(len(cuts) - 1, *x.shape) for x in grads[4:7]]
        pairs = (*tensors[3:7], factor, weights, collected)
        _run("backward", ctx.graph, cuts, tensors[:3], *pairs, d_out, *grads[:4], *maps, grads[7])
        return *grads[:4], *(None if x is None else x.sum(0) for x in maps), grads[7], None, None


def _run(
    name: str,
    graph: CompleteGraph,
    cuts: Tensor,
    nodes: Sequence[Tensor],
    features: Tensor | None,
    *more: Tensor | None,
) -> None:
    """Call the compiled function on all molecules; `nodes` are query, key and value."""
    query, _, value = nodes
    (_, H, C), D = query.shape, value.shape[2]
    library = _library(query.dtype, H, C, D, _channels(features))
    strided = [part for x in nodes for part in (x, x.stride(0))]
    ptr = graph.ptr, graph.sender_ptr, graph.pair_ptr
    if run(library, name, len(cuts) - 1, cuts, *ptr, *strided, features, *more):
        raise MemoryError(f"attention: no memory for the keys and values of {graph.num_graphs} molecules")


def _cuts(graph: CompleteGraph, query: Tensor, value: Tensor, features: Tensor | None) -> Tensor:
    """Divide the molecules into ranges of about the same work, a thread each, as far as it is worth one."""
    nanoseconds = max(1, query.shape[1] * (query.shape[2] + value.shape[2] + _channels(features)) // 10)  # a pair
    work = graph.pair_ptr.numpy() * nanoseconds  # for so few numbers numpy takes half the time of torch
    parts = max(1, min(torch.get_num_threads(), int(work[-1]) // 50_000))
    ends = np.searchsorted(work, work[-1] * np.arange(1, parts) // parts)
    return torch.from_numpy(np.concatenate([[0], ends, [graph.num_graphs]]))


def _library(dtype: torch.dtype, heads: int, key: int, value: int, features: int) -> ctypes.CDLL | None:
    source = Path(__file__).with_name("ragged.c")
    return build(source, SIZE=dtype.itemsize, H=heads, C=key, D=value, K=features)


def _channels(features: Tensor | None) -> int:
    return 0 if features is None else features.shape[1]


def _rows(x: Tensor) -> Tensor:
    """`[N, H, C]` whose rows are contiguous, as those of a slice of a fused projection."""
    return x if x.stride()[1:] == (x.shape[2], 1) else x.contiguous()
