"""The ragged attention in Triton: one program per molecule and head, everything between reads and writes on chip.

A program holds the keys and values of its molecule, `[T, C]` and `[T, D]` with T >= n a power of two, and walks over
its receivers in strips of R rows. A row of the scores is whole, so its softmax needs no second pass; no other program
writes what this one writes, so nothing is added atomically and every run gives the same numbers. The backward pass
keeps nothing from the forward one: it works the weights out again, dropout included.

Imported only when a kernel is launched; whether it is compiled or interpreted is settled then (`TRITON_INTERPRET`).
"""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gtx.attention.fast.size_classes import Plan, power_of_two

# rows of a strip, warps: by the size T of the tile
SHAPES = {16: (16, 1), 32: (32, 2), 64: (16, 4), 128: (16, 8), 256: (16, 8)}
INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")


@triton.jit
def _dot(a, b, ACC: tl.constexpr, PRECISION: tl.constexpr):
    """The matrix product of two tiles of one type, summed in ACC."""
    if INTERPRETED:  # which would multiply the bits of bfloat16 as integers
        a, b = a.to(ACC), b.to(ACC)
    return tl.dot(a, b, input_precision=PRECISION, out_dtype=ACC)


@triton.jit
def _kept(seed, receiver, head, dropout, T: tl.constexpr):
    """Which weights dropout keeps, `[R, T]`: one call of Philox 4x32 draws for four senders.

    The counter is (receiver in the batch, sender / 4, head), so a draw does not depend on T, and is the same backward.
    """
    quarter = tl.arange(0, T // 4)
    zero = tl.zeros([receiver.shape[0], T // 4], tl.int32)
    c0, c1 = receiver[:, None] + zero, quarter[None, :] + zero
    a, b, c, d = tl.philox(seed, c0, c1, zero + head, zero)
    bits = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))  # sender by sender: a b c d, a b c d, ...
    return tl.uint_to_uniform_float(bits) >= dropout


@triton.jit
def _weights(
    q, k, BIAS, MASK, node, pair, n, row, head, scale, bias_pair, bias_head,
    T: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """The softmax over the senders for the receivers `row`, `[R, T]`; a row without edges is zero."""
    sender = tl.arange(0, T)
    inside = (row[:, None] < n) & (sender[None, :] < n)
    at = pair + row[:, None] * n + sender[None, :]
    s = _dot(q, tl.trans(k), ACC, PRECISION) * scale
    if BIAS is not None:
        s += tl.load(BIAS + at * bias_pair + head * bias_head, mask=inside, other=0.0).to(ACC)
    edge = inside
    if MASK is not None:
        edge = inside & (tl.load(MASK + at, mask=inside, other=0) != 0)
    s = tl.where(edge, s, float("-inf"))
    largest = tl.max(s, 1)
    largest = tl.where(largest == float("-inf"), 0.0, largest)
    e = tl.exp(s - largest[:, None])
    total = tl.sum(e, 1)
    return e / tl.where(total == 0.0, 1.0, total)[:, None]


@triton.jit
def _rows(X, node, row, n, head, stride, head_stride, channels: tl.constexpr, TILE: tl.constexpr):
    """Rows of one molecule and head, `[rows, TILE]`, with zeros beyond the molecule and beyond the channels."""
    c = tl.arange(0, TILE)
    at = (node + row[:, None]) * stride + head * head_stride + c[None, :]
    return tl.load(X + at, mask=(row[:, None] < n) & (c[None, :] < channels), other=0.0)


@triton.jit
def _put(X, x, node, row, n, head, H: tl.constexpr, channels: tl.constexpr, TILE: tl.constexpr):
    """Write rows of one molecule and head into X, contiguous `[N, H, channels]`."""
    c = tl.arange(0, TILE)
    at = ((node + row[:, None]) * H + head) * channels + c[None, :]
    tl.store(X + at, x.to(X.dtype.element_ty), mask=(row[:, None] < n) & (c[None, :] < channels))


@triton.jit(do_not_specialize=["first"])
def forward(
    Q, K, V, BIAS, MASK, SEED, OUT, NODES, PAIRS, SIZES,
    first, scale, dropout, qn, qh, kn, kh, vn, vh, bias_pair, bias_head,
    H: tl.constexpr, C: tl.constexpr, D: tl.constexpr, C_TILE: tl.constexpr, D_TILE: tl.constexpr,
    LEAST: tl.constexpr, T: tl.constexpr, R: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r"""\(o_r = \sum_s \tilde p_{rs} v_s\), \(p_{r\cdot} = \mathrm{softmax}_s(q_r \cdot k_s\, c + b_{rs})\).

    Of the molecules from `first`, those of more than LEAST and at most T atoms.
    """
    program = tl.program_id(0)
    head, molecule = program % H, first + program // H  # the heads of a molecule run together: its bias stays in cache
    n = tl.load(SIZES + molecule).to(tl.int32)
    if (n <= LEAST) | (n > T):
        return
    node, pair = tl.load(NODES + molecule), tl.load(PAIRS + molecule)
    each = tl.arange(0, T)
    k = _rows(K, node, each, n, head, kn, kh, C, C_TILE)
    v = _rows(V, node, each, n, head, vn, vh, D, D_TILE)
    for start in range(0, n, R):
        row = start + tl.arange(0, R)
        q = _rows(Q, node, row, n, head, qn, qh, C, C_TILE)
        p = _weights(q, k, BIAS, MASK, node, pair, n, row, head, scale, bias_pair, bias_head, T, ACC, PRECISION)
        if SEED is not None:
            kept = _kept(tl.load(SEED), node.to(tl.int32) + row, head, dropout, T)
            p = tl.where(kept, p / (1.0 - dropout), 0.0)
        o = _dot(p.to(v.dtype), v, ACC, PRECISION)
        _put(OUT, o, node, row, n, head, H, D, D_TILE)


@triton.jit(do_not_specialize=["first"])
def backward(
    Q, K, V, BIAS, MASK, SEED, GRAD, DQ, DK, DV, DBIAS, NODES, PAIRS, SIZES,
    first, scale, dropout, qn, qh, kn, kh, vn, vh, bias_pair, bias_head,
    H: tl.constexpr, C: tl.constexpr, D: tl.constexpr, C_TILE: tl.constexpr, D_TILE: tl.constexpr,
    LEAST: tl.constexpr, T: tl.constexpr, R: tl.constexpr, ACC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r"""With \(g_r\) the gradient of \(o_r\) and m the dropout factor, 0 or \(1 / (1 - \text{dropout})\):

    \[ dv_s = \sum_r m_{rs} p_{rs} g_r, \quad dp_{rs} = m_{rs}\, g_r \cdot v_s, \quad
       db_{rs} = p_{rs} (dp_{rs} - \textstyle\sum_{s'} p_{rs'} dp_{rs'}), \quad
       dq_r = c \sum_s db_{rs} k_s, \quad dk_s = c \sum_r db_{rs} q_r \]
    """
    program = tl.program_id(0)
    head, molecule = program % H, first + program // H
    n = tl.load(SIZES + molecule).to(tl.int32)
    if (n <= LEAST) | (n > T):
        return
    node, pair = tl.load(NODES + molecule), tl.load(PAIRS + molecule)
    each = tl.arange(0, T)
    k = _rows(K, node, each, n, head, kn, kh, C, C_TILE)
    v = _rows(V, node, each, n, head, vn, vh, D, D_TILE)
    dk, dv = tl.zeros([T, C_TILE], ACC), tl.zeros([T, D_TILE], ACC)
    for start in range(0, n, R):
        row = start + tl.arange(0, R)
        q = _rows(Q, node, row, n, head, qn, qh, C, C_TILE)
        g = _rows(GRAD, node, row, n, head, H * D, D, D, D_TILE)
        p = _weights(q, k, BIAS, MASK, node, pair, n, row, head, scale, bias_pair, bias_head, T, ACC, PRECISION)
        dp = _dot(g, tl.trans(v), ACC, PRECISION)
        kept_p = p
        if SEED is not None:
            kept = _kept(tl.load(SEED), node.to(tl.int32) + row, head, dropout, T)
            kept_p = tl.where(kept, p / (1.0 - dropout), 0.0)
            dp = tl.where(kept, dp / (1.0 - dropout), 0.0)
        dv += _dot(tl.trans(kept_p.to(g.dtype)), g, ACC, PRECISION)
        ds = p * (dp - tl.sum(p * dp, 1)[:, None])
        if DBIAS is not None:
            inside = (row[:, None] < n) & (each[None, :] < n)
            at = (pair + row[:, None] * n + each[None, :]) * H + head
            tl.store(DBIAS + at, ds.to(DBIAS.dtype.element_ty), mask=inside)
        dq = _dot(ds.to(k.dtype), k, ACC, PRECISION) * scale
        _put(DQ, dq, node, row, n, head, H, C, C_TILE)
        dk += _dot(tl.trans(ds.to(q.dtype)), q, ACC, PRECISION)
    _put(DK, dk * scale, node, each, n, head, H, C, C_TILE)
    _put(DV, dv, node, each, n, head, H, D, D_TILE)


def launch(
    kernel: Any,
    work: Plan,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Tensor | None,
    mask: Tensor | None,
    seed: Tensor | None,
    written: tuple[Tensor | None, ...],
    scale: float,
    dropout: float,
) -> None:
    """Run `forward` or `backward`, once per class of sizes; `written` is what stands between SEED and NODES."""
    H, C, D = q.shape[1], q.shape[2], v.shape[2]
    strides = [stride for x in (q, k, v) for stride in x.stride()[:2]] + list((0, 0) if bias is None else bias.stride())
    exact = torch.get_float32_matmul_precision() == "highest"
    with torch.cuda.device(q.device) if q.is_cuda else nullcontext():
        for tile, least, first, count in work.classes:
            rows, warps = SHAPES[tile]
            kernel[(count * H,)](
                q, k, v, bias, None if mask is None else mask.view(torch.uint8), seed, *written, *work.molecules,
                first, scale, dropout, *strides,
                H=H, C=C, D=D, C_TILE=power_of_two(C), D_TILE=power_of_two(D), LEAST=least, T=tile, R=rows,
                ACC=tl.float64 if q.dtype == torch.float64 else tl.float32, PRECISION="tf32x3" if exact else "tf32",
                num_warps=warps, num_stages=1,
            )  # fmt: skip
