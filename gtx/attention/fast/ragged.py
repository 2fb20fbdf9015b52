"""Attention over whole molecules without padding: what `attend_pairs` does, on a GPU, by Triton kernels.

Read next: `gtx/attention/fast/operators.py`, the operator of torch that launches them.
"""

from __future__ import annotations

import importlib.util
import os

import torch
from torch import Tensor

from gtx.attention.definition import DOT_SOFTMAX, AttentionRule, ProjectedEdgeFeatures, attend_pairs
from gtx.attention.fast import operators
from gtx.attention.fast.operators import fits, limit, plan
from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.graph.packing import MoleculesBySize, are_transformed

_TRITON = importlib.util.find_spec("triton") is not None
_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # triton, too, reads it when it is imported
_DEVICES = ("cuda", "cpu") if _INTERPRETED else ("cuda",)
_DTYPES = (torch.float32, torch.bfloat16, torch.float16, *([torch.float64] if _INTERPRETED else []))
_MOST = 64  # pair features, or heads that read them, whose tiles stay on chip


def can_run(graph: CompleteGraph, query: Tensor, value: Tensor, rule: AttentionRule) -> bool:
    """Return whether `attention` can compute this attention, on this device.

    It can with triton, unless the environment has `GTX_COMPILED=0`, for one set of nodes, a score bilinear in query and
    key, a softmax at temperature 1, edge features in bias, key and value, up to 64 of them where they enter key or
    value, and up to 64 heads then; on a GPU (or where the interpreter is on) in float32, bfloat16 or float16, if any
    molecule is small enough (`operators.limit`). Under `torch.func` it cannot. Under `torch.compile` all molecules must
    be small enough, as in a graph of constant shape.
    """
    edges = rule.edges
    return (
        query.device.type in _DEVICES
        and _TRITON
        and os.environ.get("GTX_COMPILED") != "0"
        and query.dtype in _DTYPES
        and rule.is_dot_softmax
        and (not edges.in_key_or_value or max(edges.used_channels, query.shape[1]) <= _MOST)
        and not isinstance(graph, BipartiteGraph)
        and fits(graph, limit_of(query, value, query.dtype))
        and (torch.compiler.is_compiling() or not are_transformed())
    )


def attention(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    edges: ProjectedEdgeFeatures | None = None,
    dropout: float = 0.0,
) -> Tensor:
    r"""Softmax attention over the pairs of every molecule: `attend` with a dot product (the scale is in the query).

    \[ p_{r\cdot} = \mathrm{softmax}_s\bigl(q_r \cdot (k_s + W_K e_{rs}) + w_b \cdot e_{rs} + b_{rs}\bigr), \qquad
       o_r = \sum_s m_{rs} p_{rs} (v_s + W_V e_{rs}) \]

    with m the dropout factor, 0 or \(1 / (1 - \text{dropout})\), the same backward as forward, drawn from the seed of
    torch's generator on the device. Pair features meet one vector per receiver and head, so that neither a key nor a
    value of a pair is ever made: with \(a_r = W_K^\top q_r + w_b\) the score has \(a_r \cdot e_{rs}\), and with
    \(c_r = \sum_s m_{rs} p_{rs} e_{rs}\) the output has \(W_V c_r\). The kernels do what is of a pair
    (`operators.attention`); the maps, of nodes alone, are matrix products of torch.

    Nodes, bias and features are read where they lie, flat, and the backward pass works the weights out again, so that
    nothing of the size of the pairs is kept but bias and features. Sums are in float32 (float64 for float64 under the
    interpreter); matrix products of float32 are split into three of TF32 (about float32's digits), or left as one TF32
    product where `torch.set_float32_matmul_precision` allows it. A receiver without edges gets zeros. First
    derivatives only.

    A molecule has a tile of 16, 32 or 64 rows, the smallest that holds it; a class of tiles is one launch,
    known from `graph.size_order`, so the host waits for nothing. Molecules beyond `operators.limit` go through
    `attend_pairs` in size buckets of their own, which reads from the device once per graph.

    Source: the recomputing backward pass, Dao et al. 2022 (arXiv:2205.14135), here with whole rows on chip.

    Args:
        graph: graph that defines the edges.
        query, key, value: `[N, H, C]`, `[N, H, C]` and `[N, H, D]`; views of a fused projection are read in place.
        edges: e and what it does; no states.
        dropout: share of the weights set to zero.

    Returns:
        o, `[N, H, D]`.
    """
    edges = ProjectedEdgeFeatures() if edges is None else edges
    dtype = common_dtype(query, key, value)
    if dtype not in _DTYPES:
        raise ValueError(f"expected float32, bfloat16 or float16, got {dtype}")
    q, k, v = (x.to(dtype) for x in (query, key, value))
    work, others = plan(graph, limit_of(q, v, dtype))
    out = _small(graph, work, q, k, v, edges, dropout)
    if others is None:
        return out
    nodes, pairs, rest = others
    rest = rest if graph.mask is None else rest.masked(graph.mask[pairs])
    chosen = edges._replace(
        features=None if edges.features is None else edges.features[pairs],
        bias=None if edges.bias is None else edges.bias[pairs],
    )
    rule = DOT_SOFTMAX._replace(edges=chosen, dropout=dropout)
    large = attend_pairs(rest, q[nodes], k[nodes], v[nodes], rule).out
    return out.index_copy(0, nodes, large.to(out.dtype))


def common_dtype(query: Tensor, key: Tensor, value: Tensor) -> torch.dtype:
    """Return the dtype to which queries, keys and values are cast."""
    if torch.is_autocast_enabled(query.device.type):
        return torch.get_autocast_dtype(query.device.type)
    return torch.promote_types(torch.promote_types(query.dtype, key.dtype), value.dtype)


def limit_of(query: Tensor, value: Tensor, dtype: torch.dtype) -> int:
    """Return the atoms of the largest molecule that the kernels take of these queries and values."""
    return limit(max(query.shape[-1], value.shape[-1]), dtype, query.device)


def _small(
    graph: CompleteGraph,
    work: MoleculesBySize,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    edges: ProjectedEdgeFeatures,
    dropout: float,
) -> Tensor:
    """Return the molecules that have a tile; nodes of others get zeros."""
    bias, features, spread = edges.total_bias, None, None
    if edges.in_key_or_value:
        bias, features = edges.bias, edges.features
        if edges.score is not None:
            spread = edges.score.expand(len(q), -1, -1)
        if edges.key is not None:
            of_key = torch.einsum("nhc,hck->nhk", q, edges.key)
            spread = of_key if spread is None else of_key + spread
    spread = None if spread is None else spread.to(q.dtype)
    seed = torch.randint(2**62, (1,), device=q.device) if dropout else None  # on the device: nobody waits
    sizes = (work.molecules, [number for each in work.ranges for number in each], work.complete, graph.num_pairs)
    tensors = (q, k, v, bias, features, spread, graph.mask, seed)
    out, collected = operators.attention(*tensors, *sizes, edges.value is not None, dropout)
    return out if edges.value is None else out + torch.einsum("nhk,hdk->nhd", collected, edges.value)
