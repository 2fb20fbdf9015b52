"""A trial of the Triton kernels before their first use in a process, against the definition in float64.

A kernel that a compiler, a driver or a card treats in another way than expected must neither end a training nor change
its numbers. `verify` runs what is about to be launched on two molecules a tile: where anything raises or differs, one
line says why, and matrix products do the attention for the rest of the process.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from gtx.attention.definition import DOT_SOFTMAX, ProjectedEdgeFeatures, attend_edges
from gtx.attention.fast import ragged
from gtx.attention.scores import require
from gtx.graph import CompleteGraph

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 3e-3, torch.bfloat16: 2e-2}
"""Largest relative error of the output and of each gradient, in the Frobenius norm; of float32 with exact products."""
TF32_TOLERANCE = 3e-3
_ALL_KEPT = 1e-12  # a share of dropout at which the factors are drawn, and are 1

_failed: dict[torch.device, str] = {}


def why_not(
    graph: CompleteGraph, query: Tensor, key: Tensor, value: Tensor, edges: ProjectedEdgeFeatures, dropout: float = 0.0
) -> str | None:
    """Return why the kernels are not to be relied on for what `ragged.attention` would launch, or None."""
    features = require(edges.features) if edges.in_key_or_value else None
    dtype = ragged.common_dtype(query, key, value)
    bias = edges.total_bias if features is None else edges.bias
    dtypes = (dtype, None if bias is None else bias.dtype, None if features is None else features.dtype)
    widths = (query.shape[1], query.shape[2], value.shape[2], 0 if features is None else features.shape[1])
    spread = features is not None and (edges.key is not None or edges.score is not None)
    parts = (spread, edges.value is not None, graph.mask is not None, dropout > 0)
    work, _ = ragged.plan(graph, ragged.limit_of(query, value, dtype))
    tiles = tuple(each.most for each in work.ranges)
    return verify(query.device, dtypes, widths, parts, torch.is_grad_enabled(), tiles)


@torch.compiler.assume_constant_result  # while torch.compile traces, the kernels are tried for real
def verify(
    device: torch.device,
    dtypes: tuple[torch.dtype, torch.dtype | None, torch.dtype | None],
    widths: tuple[int, int, int, int],
    parts: tuple[bool, bool, bool, bool],
    gradients: bool,
    tiles: tuple[int, ...],
) -> str | None:
    """Try the kernels, each variant of them once a process.

    Args:
        device: where they will run.
        dtypes: of queries, keys and values; of the bias and of the pair features, None where there are none.
        widths: heads H, channels of a key C, of a value D, and pair features K, 0 where there are none.
        parts: whether features enter the scores, whether they enter the values, whether there is a mask, whether there
            is dropout.
        gradients: whether the backward kernels will be needed.
        tiles: sizes of the tiles that will be launched.

    Returns:
        None if output and gradients are right, otherwise why the kernels are not used. Once they failed they are not
        tried again on this device.
    """
    if device.type == "cuda" and torch.cuda.is_current_stream_capturing():
        return "cannot be tried while a CUDA graph is captured"
    exact = torch.get_float32_matmul_precision() == "highest"
    for tile in tiles:
        if device not in _failed:
            reason = _trial(device, dtypes, widths, parts, gradients, tile, exact)
            if reason is not None:
                _failed[device] = reason
                logging.getLogger(__name__).warning(
                    "attention on %s runs as matrix products: the Triton kernels %s", device, reason
                )
    return _failed.get(device)


def forget() -> None:
    """Try everything anew."""
    _failed.clear()
    _trial.cache_clear()


@cache
def _trial(*variant: Any) -> str | None:
    """Run one variant, the arguments of `_compare`, in a thread of its own, in which no mode of the caller holds.

    Such modes are inference, autocast, fake tensors and hooks on saved tensors.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_compare, *variant).result()


def _compare(
    device: torch.device,
    dtypes: tuple[torch.dtype, torch.dtype | None, torch.dtype | None],
    widths: tuple[int, int, int, int],
    parts: tuple[bool, bool, bool, bool],
    gradients: bool,
    tile: int,
    exact: bool,
) -> str | None:
    """Compare kernels of one tile, as `verify` gets them, with the definition; `exact` products of float32 or not."""
    (dtype, of_bias, of_features), (H, C, D, K), (spread, collect, masked, dropped) = dtypes, widths, parts
    sizes = [tile // 2 + 1, tile]  # the smallest and the largest of the tile
    # other numbers in every trial: memory that was freed may still hold the right ones of the last
    generator = torch.Generator().manual_seed(crc32(repr((dtypes, widths, parts, tile)).encode()))

    def draw(*shape: int, dtype: torch.dtype = dtype, scale: float = 1.0) -> Tensor:
        drawn = torch.randn(shape, generator=generator) * scale
        return drawn.to(device, dtype).requires_grad_(gradients)

    try:
        graph = CompleteGraph.from_ptr(torch.tensor([0, *sizes]).cumsum(0).to(device))
        N, P = graph.num_nodes, graph.num_pairs
        if masked:
            mask = (torch.rand(P, generator=generator) < 0.7).to(device)
            graph = graph.masked(mask | (graph.pair_index[0] == graph.pair_index[1]))
        q, k, v = draw(N, H, C, scale=C**-0.5), draw(N, H, C), draw(N, H, D)
        edges = ProjectedEdgeFeatures(
            None if of_features is None else draw(P, K, dtype=of_features),
            None if of_bias is None else draw(P, H, dtype=of_bias),
            key=draw(H, C, K, scale=K**-0.5) if spread else None,
            value=draw(H, D, K, scale=K**-0.5) if collect else None,
        )
        with torch.random.fork_rng([device] if device.type == "cuda" else []):  # for the factors of dropout
            actual = ragged.attention(graph, q, k, v, edges, _ALL_KEPT if dropped else 0.0)
        leaves = [x for x in (q, k, v, *edges) if x is not None]
        doubled = {x: x.detach().double().requires_grad_(gradients) for x in leaves}
        of_edges = [None if x is None else doubled[x] for x in edges]
        features, bias = (None if x is None else graph.select(x) for x in of_edges[:2])
        rule = DOT_SOFTMAX._replace(edges=ProjectedEdgeFeatures(features, bias, *of_edges[2:]))
        expected = attend_edges(graph.edge_index, doubled[q], doubled[k], doubled[v], rule).out
        errors = [_error(actual, expected)]
        if gradients:
            upstream = draw(*actual.shape).detach()
            actual_gradients = torch.autograd.grad(actual, leaves, upstream)
            expected_gradients = torch.autograd.grad(expected, list(doubled.values()), upstream.double())
            errors += [_error(x, y) for x, y in zip(actual_gradients, expected_gradients, strict=True)]
    except Exception as error:  # no compiler, too little shared memory, a cache that cannot be written, ...
        lines = [*filter(None, map(str.strip, str(error).splitlines())), "no reason given"]
        return f"do not run here ({type(error).__name__}: {lines[0][:200]})"
    bound = TOLERANCE[dtype] if exact or dtype != torch.float32 else TF32_TOLERANCE
    worst = max(errors, key=lambda e: float("inf") if e != e else e)
    return None if worst <= bound else f"give wrong numbers here (off by {worst:.1g} for molecules up to {tile} atoms)"


def _error(actual: Tensor, expected: Tensor) -> float:
    return float((actual.detach().double() - expected.detach()).norm() / expected.detach().norm())
