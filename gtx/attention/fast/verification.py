"""A trial of the Triton kernels before their first use in a process, against matrix products in float64.

A kernel that a compiler, a driver or a card treats in another way than expected must neither end a training nor change
its numbers. `verify` runs what is about to be launched on two molecules a tile: where anything raises or differs, one
line says why, and matrix products do the attention for the rest of the process.
"""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from zlib import crc32

import torch
from torch import Tensor

from gtx.attention.fast import operators, size_classes
from gtx.graph import CompleteGraph

TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 3e-3, torch.bfloat16: 2e-2}
"""Largest relative error of the output and of each gradient, in the Frobenius norm; of float32 with exact products."""
TF32_TOLERANCE = 3e-3
_ALL_KEPT = 1e-12  # a share of dropout at which the factors are drawn, and are 1

_failed: dict[torch.device, str] = {}


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
def _trial(*variant: object) -> str | None:
    """Run one variant in a thread of its own, in which no mode of the caller holds: inference, autocast, fake tensors,
    hooks on saved tensors."""
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
    (dtype, of_bias, of_features), (H, C, D, K), (spread, collect, masked, dropped) = dtypes, widths, parts
    sizes = [tile // 2 + 1, tile]  # the smallest and the largest of the tile
    # other numbers in every trial: memory that was freed may still hold the right ones of the last
    generator = torch.Generator().manual_seed(crc32(repr((dtypes, widths, parts, tile)).encode()))

    def draw(*shape: int, dtype: torch.dtype | None = dtype, scale: float = 1.0) -> Tensor | None:
        made = None if dtype is None else torch.randn(shape, generator=generator) * scale
        return None if made is None else made.to(device, dtype).requires_grad_(gradients)

    try:
        graph = CompleteGraph.from_ptr(torch.tensor([0, *sizes]).cumsum(0).to(device))
        N, P = graph.num_nodes, graph.num_pairs
        mask = None
        if masked:
            mask = (torch.rand(P, generator=generator) < 0.7).to(device)
            mask |= graph.pair_index[0] == graph.pair_index[1]
        tensors = [
            draw(N, H, C, scale=C**-0.5), draw(N, H, C), draw(N, H, D), draw(P, H, dtype=of_bias),
            draw(P, K, dtype=of_features), draw(N, H, K, scale=K**-0.5) if spread else None,
        ]  # fmt: skip
        seed = torch.tensor([7], device=device) if dropped else None
        work = size_classes.plan(graph, tile)
        found = operators.attention(*tensors, mask, seed, work, P, collect, _ALL_KEPT if dropped else 0.0)
        doubled = [None if x is None else x.detach().double().requires_grad_(gradients) for x in tensors]
        wanted = _definition(sizes, *doubled, mask)
        found, wanted = (found, wanted) if collect else (found[:1], wanted[:1])
        errors = [_error(x, y) for x, y in zip(found, wanted, strict=True)]
        if gradients:
            upstream = [draw(*x.shape).detach() for x in found]
            leaves = [[x for x in each if x is not None] for each in (tensors, doubled)]
            of_found = torch.autograd.grad(found, leaves[0], upstream)
            of_wanted = torch.autograd.grad(wanted, leaves[1], [x.double() for x in upstream])
            errors += [_error(x, y) for x, y in zip(of_found, of_wanted, strict=True)]
    except Exception as error:  # no compiler, too little shared memory, a cache that cannot be written, ...
        lines = [*filter(None, map(str.strip, str(error).splitlines())), "no reason given"]
        return f"do not run here ({type(error).__name__}: {lines[0][:200]})"
    bound = TOLERANCE[dtype] if exact or dtype != torch.float32 else TF32_TOLERANCE
    worst = max(errors, key=lambda e: float("inf") if e != e else e)
    return None if worst <= bound else f"give wrong numbers here (off by {worst:.1g} for molecules up to {tile} atoms)"


def _error(found: Tensor, wanted: Tensor) -> float:
    return float((found.detach().double() - wanted.detach()).norm() / wanted.detach().norm())


def _definition(
    sizes: list[int],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    e: Tensor | None,
    a: Tensor | None,
    mask: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return the outputs of `operators.attention`, molecule by molecule, o `[N, H, D]` and c `[N, H, K]`."""
    out, collected, node, pair = [], [], 0, 0
    for n in sizes:
        nodes, pairs = slice(node, node + n), slice(pair, pair + n * n)
        node, pair = node + n, pair + n * n

        def square(x: Tensor, pairs: slice = pairs, n: int = n) -> Tensor:
            return x[pairs].unflatten(0, (n, n))  # [r, s, ...]

        score = torch.einsum("rhc,shc->hrs", q[nodes], k[nodes])
        if a is not None:
            score = score + torch.einsum("rhk,rsk->hrs", a[nodes], square(e))
        if bias is not None:
            score = score + square(bias).permute(2, 0, 1)
        if mask is not None:
            score = score.masked_fill(~square(mask), float("-inf"))
        p = score.softmax(-1)
        out.append(torch.einsum("hrs,shd->rhd", p, v[nodes]))
        if e is not None:
            collected.append(torch.einsum("hrs,rsk->rhk", p, square(e)))
    return torch.cat(out), torch.cat(collected) if collected else q.new_zeros(0)
