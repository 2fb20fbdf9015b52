"""Attention over whole molecules in one kernel, without padding: what `complete` does, on a GPU."""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from gtx.attention.edge_features import EdgeFeatures
from gtx.attention.fast.size_classes import Plan, limit, plan
from gtx.attention.normalisers import Normaliser, Softmax
from gtx.attention.scores import Score
from gtx.graph import BipartiteGraph, CompleteGraph

_INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"  # triton, too, reads it when it is imported
_DTYPES = (torch.float32, torch.bfloat16, torch.float16, *([torch.float64] if _INTERPRETED else []))


def wanted() -> bool:
    """Whether `attend` uses the kernel where it can: with `GTX_RAGGED=1` in the environment, or under the interpreter.

    It is not the default before it has been measured on a GPU.
    """
    return _INTERPRETED or os.environ.get("GTX_RAGGED") == "1"


def available() -> bool:
    """Whether the kernel can run here: triton and a CUDA device, or triton's interpreter (`TRITON_INTERPRET=1`)."""
    return importlib.util.find_spec("triton") is not None and (_INTERPRETED or torch.cuda.is_available())


def can_run(
    graph: CompleteGraph,
    query: Tensor,
    score: Score,
    normaliser: Normaliser,
    edges: EdgeFeatures | None = None,
    dropout: float = 0.0,
) -> bool:
    """Whether `ragged_attention` computes this attention, on this device.

    It does for one set of nodes, a score bilinear in query and key, a softmax at temperature 1, and edge features that
    enter as a bias alone; on a GPU (or where the interpreter is on) in float32, bfloat16 or float16, if any molecule is
    small enough (`size_classes.limit`). Under `torch.compile` it does not, since the compiler cannot
    look into the launch.
    """
    here = query.is_cuda or (_INTERPRETED and query.device.type == "cpu")
    return (
        here
        and query.dtype in _DTYPES
        and score.bilinear
        and type(normaliser) is Softmax
        and normaliser.temperature == 1.0
        and (edges is None or all(w is None for w in (edges.key, edges.value, edges.state_value)))
        and not isinstance(graph, BipartiteGraph)
        and 0.0 <= dropout < 1.0
        and bool(graph.buckets)
        and graph.buckets[0][1] <= limit(query.shape[-1], query.dtype)
        and not torch.compiler.is_compiling()
        and available()
    )


def ragged_attention(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None = None,
    scale: float | None = None,
    dropout: float = 0.0,
) -> Tensor:
    r"""Softmax attention over the pairs of every molecule, in one kernel per class of sizes.

    \[ o_r = \sum_s m_{rs}\, \mathrm{softmax}_s(c\, q_r \cdot k_s + b_{rs})\, v_s \]

    with m the dropout factor, 0 or \(1 / (1 - \text{dropout})\), the same backward as forward, drawn from the seed of
    torch's generator on the device. One program owns a molecule and a head: scores and weights never leave the chip,
    nodes and bias are read where they lie, flat, and the backward pass works the weights out again, so that nothing of
    the size of the pairs is kept but the bias. Sums are in float32 (float64 for float64 under the interpreter); matrix
    products of float32 are split into three of TF32 (about float32's digits), or left as one TF32 product where
    `torch.set_float32_matmul_precision` allows it. A receiver without edges gets zeros. First derivatives only.

    A molecule has a tile of 16, 32, 64, 128 or 256 rows, the smallest that holds it; a class of tiles is one launch,
    known from `graph.buckets`, so the host waits for nothing. Molecules beyond `size_classes.limit` go through
    `scaled_dot_product_attention` in size buckets of their own, which reads from the device once per graph.

    Source: the recomputing backward pass, Dao et al. 2022 (arXiv:2205.14135), here with whole rows on chip.

    Args:
        graph: who attends to whom.
        query: `[N, H, C]`; views of a fused projection are read in place.
        key: `[N, H, C]`.
        value: `[N, H, D]`.
        bias: b, `[num_pairs, H]`, or None.
        scale: c; default \(1/\sqrt{C}\).
        dropout: share of the weights set to zero.

    Returns:
        `[N, H, D]`.

    Raises:
        ValueError: a shape does not fit the graph, a type is none of those, or dropout is not in [0, 1).
        RuntimeError: there is no triton, or no device it can run on.
    """
    N, H, C = query.shape
    D = value.shape[-1]
    if key.shape != (N, H, C) or value.shape != (N, H, D) or graph.num_nodes != N:
        raise ValueError(
            f"expected query and key [{graph.num_nodes}, H, C] and value [{graph.num_nodes}, H, D], "
            f"got {list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    if bias is not None and bias.shape != (graph.num_pairs, H):
        raise ValueError(f"expected a bias [{graph.num_pairs}, {H}], got {list(bias.shape)}")
    if not 0.0 <= dropout < 1.0:
        raise ValueError(f"expected 0 <= dropout < 1, got {dropout}")
    if not available():
        raise RuntimeError("expected triton and a CUDA device (or TRITON_INTERPRET=1)")
    device = query.device.type
    if torch.is_autocast_enabled(device):
        dtype = torch.get_autocast_dtype(device)
    else:
        dtype = torch.promote_types(torch.promote_types(query.dtype, key.dtype), value.dtype)
    if dtype not in _DTYPES:
        raise ValueError(f"expected float32, bfloat16 or float16, got {dtype}")
    q, k, v = (x.to(dtype) for x in (query, key, value))
    scale = C**-0.5 if scale is None else scale
    if not graph.buckets:  # no node at all
        return v
    work = plan(graph, limit(max(C, D), dtype))
    out = _Ragged.apply(q, k, v, bias, work, graph.mask, scale, dropout)
    if work.large is None:
        return out
    nodes, pairs, rest = work.large
    rest = rest if graph.mask is None else rest.masked(graph.mask[pairs])
    large = _padded(rest, q[nodes], k[nodes], v[nodes], None if bias is None else bias[pairs], scale, dropout)
    return out.index_copy(0, nodes, large)


def _padded(
    graph: CompleteGraph, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, dropout: float
) -> Tensor:
    """The same attention by torch, padded within the buckets of `graph`."""
    edge = torch.ones(graph.num_pairs, dtype=torch.bool, device=q.device) if graph.mask is None else graph.mask
    edges = graph.pair_buckets(graph.pairs.pack(edge, False))
    biases = [None] * len(edges) if bias is None else graph.pair_buckets(graph.pairs.pack(bias.to(q.dtype)))
    packed = [graph.node_buckets(graph.nodes.pack(x)) for x in (q, k, v)]
    parts = []
    for *qkv, present, b in zip(*packed, edges, biases, strict=True):
        lonely = ~present.any(2, keepdim=True)  # attends to all, so that its softmax is finite, and then gets zeros
        mask = (present | lonely)[:, None]
        mask = mask if b is None else b.permute(0, 3, 1, 2).masked_fill(~mask, -torch.inf)
        out = F.scaled_dot_product_attention(*(x.transpose(1, 2) for x in qkv), mask, dropout, scale=scale)
        parts.append(out.transpose(1, 2).masked_fill(lonely[..., None], 0.0).flatten(0, 1))
    return graph.nodes.unpack(torch.cat(parts))


class _Ragged(torch.autograd.Function):
    """The molecules that fit; rows of others are zeros."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor | None,
        work: Plan,
        mask: Tensor | None,
        scale: float,
        dropout: float,
    ) -> Tensor:
        from gtx.attention.fast import triton_kernels as kernels

        q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
        seed = torch.randint(2**62, (1,), device=q.device) if dropout else None  # on the device: nobody waits
        out = _empty(v, work)
        kernels.launch(kernels.forward, work, q, k, v, bias, mask, seed, (out,), scale, dropout)
        ctx.save_for_backward(q, k, v, bias, mask, seed)
        ctx.work, ctx.scale, ctx.dropout = work, scale, dropout
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple:
        from gtx.attention.fast import triton_kernels as kernels

        q, k, v, bias, mask, seed = ctx.saved_tensors
        grads = [_empty(x, ctx.work) for x in (q, k, v)]
        d_bias = _empty(bias, ctx.work) if ctx.needs_input_grad[3] else None
        written = (grad.contiguous(), *grads, d_bias)
        kernels.launch(kernels.backward, ctx.work, q, k, v, bias, mask, seed, written, ctx.scale, ctx.dropout)
        return *grads, d_bias, None, None, None, None


def _empty(like: Tensor, work: Plan) -> Tensor:
    """Contiguous; zeros where rows of large molecules stay unwritten."""
    return (torch.empty if work.large is None else torch.zeros)(like.shape, dtype=like.dtype, device=like.device)
