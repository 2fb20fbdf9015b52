"""Attention over whole molecules without padding: what `attend_pairs` does, on a GPU, by Triton kernels.

Read next: `gtx/attention/fast/triton_kernels.py`, the kernels.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from gtx.attention.definition import DOT_SOFTMAX, AttentionRule, ProjectedEdgeFeatures, attend_pairs
from gtx.attention.scores import require
from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.graph.packing import MoleculesBySize, SizeBucket, are_transformed, offsets

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
    molecule is small enough (`limit`). Under `torch.func` it cannot. Under `torch.compile` all molecules must
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
    (`attend_tiles`); the maps, of nodes alone, are matrix products of torch.

    Nodes, bias and features are read where they lie, flat, and the backward pass works the weights out again, so that
    nothing of the size of the pairs is kept but bias and features. Sums are in float32 (float64 for float64 under the
    interpreter); matrix products of float32 are split into three of TF32 (about float32's digits), or left as one TF32
    product where `torch.set_float32_matmul_precision` allows it. A receiver without edges gets zeros. First
    derivatives only.

    A molecule has a tile of 16, 32 or 64 rows, the smallest that holds it; a class of tiles is one launch,
    known from `graph.size_order`, so the host waits for nothing. Molecules beyond `limit` go through
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
    out, collected = attend_tiles(*tensors, *sizes, edges.value is not None, dropout)
    if edges.value is not None:
        out = out + torch.einsum("nhk,hdk->nhd", collected, edges.value)
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


# --- Molecules by classes of size, a launch each, and who is too large for a tile.

TILES = (16, 32, 64, 128, 256)  # a molecule of n atoms takes the smallest T >= n
LARGEST = 64  # of these are launched; larger ones spill registers, and were never measured against matrix products
_ON_CHIP = 131_072  # bytes of shared memory that are used at most
_COPIES = 8  # so many tiles [T, channels] the compiler lays into shared memory at most


def power_of_two(channels: int) -> int:
    """Return the smallest power of two that is not below, at least 16, as matrix units need."""
    return max(16, 1 << (channels - 1).bit_length())


def limit(channels: int, dtype: torch.dtype, device: torch.device) -> int:
    """Atoms of the largest molecule that fits, by the shared memory of the card.

    By channels per head in bfloat16 and float16: 64 up to 128, above that 0. In float32: 64 up to 64, 32 up to 128; on
    a card with 99 KiB 64 up to 32, 32 up to 64, 16 up to 128.
    """
    row = _COPIES * power_of_two(channels) * min(dtype.itemsize, 4)
    fits = [tile for tile in TILES if tile <= LARGEST and channels <= 128 and tile * row <= shared_memory(device)]
    return max([0, *fits])


@torch.compiler.assume_constant_result
def shared_memory(device: torch.device) -> int:
    """Bytes that a program may lay out on chip."""
    if device.type != "cuda":
        return _ON_CHIP  # under the interpreter
    card = torch.cuda.get_device_properties(device)
    return min(_ON_CHIP, getattr(card, "shared_memory_per_block_optin", 0) or card.shared_memory_per_block)


def fits(graph: CompleteGraph, largest: int) -> bool:
    """Return whether a plan exists: some molecule is small enough, and either all are or the others can be selected.

    To select them, the host reads from the device. Compiled code cannot do so, nor an order that is not `complete`.
    """
    order = graph.size_order
    apart = order.complete and not torch.compiler.is_compiling()
    return 0 < order.least <= largest and (order.most <= largest or apart)


LargeMolecules = tuple[Tensor, Tensor, CompleteGraph]
"""Nodes and pairs of the molecules above the largest tile, int64, and their graph."""


def plan(graph: CompleteGraph, largest: int) -> tuple[MoleculesBySize, LargeMolecules | None]:
    """Return the molecules by tile, a launch each, and those above the largest tile, or None; made once per graph.

    A range that straddles two tiles is launched in both; there a program of the other tile ends at once. The host
    knows the ranges, so it waits for nothing but large molecules.
    """
    name, order = f"plan up to {largest}", graph.size_order
    if name not in graph.shared:
        launches = []
        for least, tile in zip((0, *TILES), TILES, strict=False):
            inside = [r for r in order.ranges if r.most > least and r.least <= tile <= largest]
            if inside:
                launches.append(SizeBucket(inside[0].first, inside[-1].stop, least + 1, tile))
        large = _large(graph, largest) if order.most > largest else None
        work = MoleculesBySize(order.molecules, tuple(launches), order.complete and large is None)
        graph.shared[name] = work, large
    return graph.shared[name]


def _large(graph: CompleteGraph, largest: int) -> LargeMolecules:
    sizes = graph.ptr.diff()
    of_node = sizes[graph.batch]
    nodes = (of_node > largest).nonzero().squeeze(1)
    pairs = (torch.repeat_interleave(of_node, of_node) > largest).nonzero().squeeze(1)
    sizes = sizes[sizes > largest]
    return nodes, pairs, CompleteGraph.from_ptr(offsets(sizes))


# --- The kernels as an operator of torch, `gtx::ragged_attention`: what autograd and the compiler see of them.
#
# It is a `custom_op`, into which the compiler does not look, so that the kernels run in it as they are, under Triton's
# interpreter too, by which they are tested. Since the compiler sees tensors and numbers alone, a plan comes as those.

# by the size T of the tile: rows of a strip R, warps. Not yet measured on a GPU for pair features.
_SHAPES = {16: (16, 1), 32: (32, 2), 64: (16, 4), 128: (16, 8), 256: (16, 8)}
_ROWS = 8  # receivers that a program for pair features works through


@torch.library.custom_op("gtx::ragged_attention", mutates_args=())
def attend_tiles(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    features: Tensor | None,
    spread: Tensor | None,
    mask: Tensor | None,
    seed: Tensor | None,
    molecules: Tensor,
    ranges: Sequence[int],
    complete: bool,
    num_pairs: int,
    collect: bool,
    dropout: float,
) -> tuple[Tensor, Tensor]:
    r"""Compute the attention of the molecules that are in a range; other nodes get zeros.

    \[ p_{r\cdot} = \mathrm{softmax}_s(q_r \cdot k_s + a_r \cdot e_{rs} + b_{rs}), \quad
       \tilde p_{rs} = m_{rs} p_{rs}, \quad o_r = \sum_s \tilde p_{rs} v_s, \quad c_r = \sum_s \tilde p_{rs} e_{rs} \]

    Args:
        q, k, v: `[N, H, C]`, `[N, H, C]` and `[N, H, D]`, all three of one type.
        bias: b, `[P, H]`, or None.
        features: e, `[P, K]`, or None.
        spread: a, `[N, H, K]`, or None.
        mask: bool `[P]`, the pairs that are edges, or None.
        seed: int64 `[1]`, of the dropout factors m, 0 or \(1 / (1 - \text{dropout})\); None without dropout.
        molecules, ranges, complete: fields of the `MoleculesBySize` that `plan` gives; each of the ranges, four numbers
            one after the other, is launched.
        num_pairs: P.
        collect: whether c is wanted.
        dropout: share of the weights set to zero.

    Returns:
        o, `[N, H, D]`, and c, `[N, H, K]`, or `[0]` where it is not wanted.
    """
    features, spread = (None if x is None else x.contiguous() for x in (features, spread))
    launches = _Launches((q, k, v), features, molecules, ranges, num_pairs)
    out, collected = _outputs(torch.empty if complete else torch.zeros, q, v, features, collect)
    weights = launches.room(q.dtype) if collect else None
    launches.per_head("forward", launches.scores(spread, bias), mask, seed, out, weights, dropout=dropout)
    if collect:
        launches.per_receiver("collect", weights, features, collected)
    return out, collected


@torch.library.custom_op("gtx::ragged_attention_backward", mutates_args=())
def _backward(
    d_out: Tensor,
    d_collected: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    features: Tensor | None,
    spread: Tensor | None,
    mask: Tensor | None,
    seed: Tensor | None,
    molecules: Tensor,
    ranges: Sequence[int],
    complete: bool,
    num_pairs: int,
    collect: bool,
    dropout: float,
    wanted: Sequence[bool],
) -> list[Tensor]:
    """Compute the gradients of q, k, v, bias, features and spread.

    Those of the last three that are not `wanted` are `[0]`.
    """
    features, spread = (None if x is None else x.contiguous() for x in (features, spread))
    launches = _Launches((q, k, v), features, molecules, ranges, num_pairs)
    make = torch.empty if complete else torch.zeros
    grads = _gradients(make, (q, k, v, bias, features, spread), wanted)
    *of_nodes, d_bias, d_features, d_spread = grads
    d_out, d_collected = d_out.contiguous(), d_collected.contiguous()
    d_weights = launches.spread(d_collected) if collect else None
    weights = launches.room(q.dtype) if collect and wanted[1] else None
    d_scores = None
    if spread is not None and any(wanted):
        d_scores = launches.room(launches.sums, make)
    elif wanted[0]:
        d_scores = d_bias.T
    written = (*of_nodes, d_scores, weights)
    added = launches.scores(spread, bias)
    launches.per_head("backward", added, mask, seed, d_out, d_weights, *written, dropout=dropout)
    if spread is not None and d_scores is not None and wanted[0]:
        d_bias.copy_(d_scores.T)
    if wanted[1]:
        launches.per_receiver("outer", d_scores, spread, weights, d_collected if collect else None, d_features)
    if wanted[2]:
        launches.per_receiver("collect", d_scores, features, d_spread)
    return grads


def _outputs(make: Callable, q: Tensor, v: Tensor, features: Tensor | None, collect: bool) -> tuple[Tensor, Tensor]:
    of_features = (*q.shape[:2], require(features).shape[1]) if collect else (0,)
    return make(v.shape, dtype=q.dtype, device=q.device), make(of_features, dtype=q.dtype, device=q.device)


def _gradients(make: Callable, tensors: Sequence[Tensor | None], wanted: Sequence[bool]) -> list[Tensor]:
    """Contiguous, but that of the bias, which lies head by head; `[0]` for what is not there or not wanted."""
    bias = tensors[3]
    by_head = (*tensors[:3], None if bias is None else bias.T, *tensors[4:])
    grads = [
        make(x.shape, dtype=x.dtype, device=x.device) if x is not None and needed else require(tensors[0]).new_zeros(0)
        for x, needed in zip(by_head, (True, True, True, *wanted), strict=True)
    ]
    if bias is not None and wanted[0]:
        grads[3] = grads[3].T
    return grads


@attend_tiles.register_fake
def _(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, features: Tensor | None, *others: Any
) -> tuple[Tensor, Tensor]:
    return _outputs(torch.empty, q, v, features, others[-2])


@_backward.register_fake
def _(d_out: Tensor, d_collected: Tensor, *inputs: Any) -> list[Tensor]:
    return _gradients(torch.empty, inputs[:6], inputs[-1])


def _keep(ctx: Any, inputs: tuple, output: tuple[Tensor, Tensor]) -> None:
    ctx.save_for_backward(*inputs[:9])
    ctx.numbers = inputs[9:]


def _differentiate(ctx: Any, d_out: Tensor, d_collected: Tensor) -> tuple:
    wanted = list(ctx.needs_input_grad[3:6])
    grads = _backward(d_out, d_collected, *ctx.saved_tensors, *ctx.numbers, wanted)
    last = [grad if here else None for grad, here in zip(grads[3:], wanted, strict=True)]
    return *grads[:3], *last, *[None] * 8


def _refuse(ctx: Any, *grads: Any) -> None:
    raise RuntimeError("the attention kernel has first derivatives only; for others set GTX_COMPILED=0")


attend_tiles.register_autograd(_differentiate, setup_context=_keep)
_backward.register_autograd(_refuse)


class _Launches:
    """The kernels on one batch, each once per range of sizes; what lies per pair and head in between is `[H, P]`."""

    def __init__(
        self, nodes: Sequence[Tensor], features: Tensor | None, molecules: Tensor, ranges: Sequence[int], num_pairs: int
    ) -> None:
        from gtx.attention.fast import triton_kernels

        self.kernels = triton_kernels
        self.nodes = [x if x.stride(-1) == 1 else x.contiguous() for x in nodes]
        self.features = features
        self.molecules, self.num_pairs = molecules, num_pairs
        self.ranges = [SizeBucket(*ranges[at : at + 4]) for at in range(0, len(ranges), 4)]
        self.sums = torch.float64 if nodes[0].dtype == torch.float64 else torch.float32

    def room(self, dtype: torch.dtype, make: Callable = torch.empty) -> Tensor:
        """Make room for a number per head and pair."""
        q = self.nodes[0]
        return make(q.shape[1], self.num_pairs, dtype=dtype, device=q.device)

    def scores(self, spread: Tensor | None, bias: Tensor | None) -> Tensor | None:
        """All that is added to the products of queries and keys, `[P, H]`."""
        return bias if spread is None else self.spread(spread, bias).T

    def spread(self, a: Tensor, bias: Tensor | None = None) -> Tensor:
        out = self.room(self.sums)
        self.per_receiver("spread", self.features, a, bias, out, numbers=_strides(bias))
        return out

    def per_head(
        self, name: str, bias: Tensor | None, mask: Tensor | None, *others: Tensor | None, dropout: float
    ) -> None:
        """Launch a program per molecule and head."""
        q, _, v = self.nodes
        H, C, D = *q.shape[1:], v.shape[2]
        tensors = (*self.nodes, bias, None if mask is None else mask.view(torch.uint8), *others)
        numbers = (dropout, *(stride for x in self.nodes for stride in x.stride()[:2]), *_strides(bias))
        widths = {"H": H, "C": C, "D": D, "C_TILE": power_of_two(C), "D_TILE": power_of_two(D)}
        for each in self.ranges:
            self._launch(name, each, H, _SHAPES[each.most][0], tensors, numbers, widths)

    def per_receiver(self, name: str, *tensors: Tensor | None, numbers: tuple = ()) -> None:
        """Launch a program per few receivers, for all heads."""
        H, K = self.nodes[0].shape[1], require(self.features).shape[1]
        widths = {"H": H, "K": K, "H_TILE": power_of_two(H), "K_TILE": power_of_two(K)}
        for each in self.ranges:
            self._launch(name, each, each.most // _ROWS, _ROWS, tensors, numbers, widths)

    def _launch(
        self, name: str, each: SizeBucket, programs: int, rows: int, tensors: tuple, numbers: tuple, widths: dict
    ) -> None:
        """Launch `programs` programs per molecule of a range, each with `rows` receivers at a time."""
        precision = "tf32x3" if torch.get_float32_matmul_precision() == "highest" else "tf32"
        if torch.version.hip:  # has neither
            precision = "ieee"
        molecules = self.molecules
        with torch.cuda.device(molecules.device) if molecules.is_cuda else nullcontext():
            getattr(self.kernels, name)[((each.stop - each.first) * programs,)](
                *tensors, molecules, each.first, each.least - 1, molecules.shape[1], self.num_pairs, *numbers, **widths,
                T=each.most, R=rows, SUMS=self.kernels.SUMS[self.sums], PRECISION=precision,
                num_warps=_SHAPES[each.most][1], num_stages=1,
            )  # fmt: skip


def _strides(bias: Tensor | None) -> tuple[int, int]:
    return (0, 0) if bias is None else (bias.stride(0), bias.stride(1))
