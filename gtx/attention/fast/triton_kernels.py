r"""The ragged attention in Triton: five small kernels, whose sums run over the senders of one molecule, or over heads.

`forward` and `backward` are the attention, one program per molecule and head, everything between reads and writes on
chip. A program holds the keys and values of its molecule, `[T, C]` and `[T, D]` with T >= n a power of two, and walks
over its receivers in strips of R rows. A row of the scores is whole, so its softmax needs no second pass. The backward
pass keeps nothing from the forward one: it works the weights out again, dropout included.

`spread`, `collect` and `outer` are what pair features e do in keys and values, one program per R receivers of a
molecule and all heads: the three derivatives of the trilinear form

\[ t(w, e, a) = \sum_{rsh} w_{hrs}\, e_{rs} \cdot a_{rh}: \qquad
   \mathrm{spread}_{hrs} = e_{rs} \cdot a_{rh}, \quad \mathrm{collect}_{rh} = \sum_s w_{hrs} e_{rs}, \quad
   \mathrm{outer}_{rs} = \sum_h w_{hrs} a_{rh} \]

so that the gradient of each is made of the others, and each reads e once, for all heads.

What there is one of per pair and head lies head by head in between, `[H, P]`, as programs of one head read it. No
program writes what another one writes, so nothing is added atomically and every run gives the same numbers.

Imported only when a kernel is launched; whether it is compiled or interpreted is settled then (`TRITON_INTERPRET`).
Channels and tiles are constants of the compiler, and nothing else is that differs from batch to batch.
"""

from __future__ import annotations

import os

import torch
import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
VARYING = ["first", "least", "molecules", "pairs", "bias_head"]  # from batch to batch: no variant is compiled of them

SUMS = {torch.float32: tl.float32, torch.float64: tl.float64}


@triton.jit
def _dot(a, b, SUMS: tl.constexpr, PRECISION: tl.constexpr):
    """Compute the matrix product of two tiles of one type, summed in SUMS."""
    if INTERPRETED:  # which would multiply the bits of bfloat16 as integers
        a, b = a.to(SUMS), b.to(SUMS)
    return tl.dot(a, b, input_precision=PRECISION, out_dtype=SUMS)


@triton.jit
def _molecule(MOLECULES, molecule, molecules):
    """Its first node, its first pair and its size."""
    at = MOLECULES + molecule
    return tl.load(at), tl.load(at + molecules), tl.load(at + 2 * molecules).to(tl.int32)


@triton.jit
def _dropout_mask(seed, receiver, head, dropout, T: tl.constexpr):
    """Draw the dropout mask `[R, T]`: one call of Philox 4x32 serves four senders.

    The counter is (receiver in the batch, sender / 4, head), so a draw does not depend on T, and is the same backward.
    """
    quarter = tl.arange(0, T // 4)
    zero = tl.zeros([receiver.shape[0], T // 4], tl.int32)
    c0, c1 = receiver[:, None] + zero, quarter[None, :] + zero
    a, b, c, d = tl.philox(seed, c0, c1, zero + head, zero)
    bits = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))  # sender by sender: a b c d, a b c d, ...
    return tl.uint_to_uniform_float(bits) >= dropout


@triton.jit
def _weights(q, k, BIAS, MASK, at, inside, bias_pair, bias_at, SUMS: tl.constexpr, PRECISION: tl.constexpr):
    """Compute the softmax over the senders for the receivers of a strip, `[R, T]`; a row without edges is zero.

    `at` are the pairs, and `inside` says which of them exist; the bias of a pair is at `bias_pair * pair + bias_at`.
    """
    s = _dot(q, tl.trans(k), SUMS, PRECISION)
    if BIAS is not None:
        s += tl.load(BIAS + at * bias_pair + bias_at, mask=inside, other=0.0).to(SUMS)
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
def _tile(X, start, inside, columns, TILE: tl.constexpr):
    """Load rows of X, `[rows, TILE]`, each from its start on, with zeros where a row or a column is not there."""
    c = tl.arange(0, TILE)
    return tl.load(X + start[:, None] + c[None, :], mask=inside[:, None] & (c[None, :] < columns), other=0.0)


@triton.jit
def _put(X, x, node, row, n, head, H: tl.constexpr, channels: tl.constexpr, TILE: tl.constexpr):
    """Write rows of one molecule and head into X, contiguous `[N, H, channels]`."""
    c = tl.arange(0, TILE)
    at = ((node + row[:, None]) * H + head) * channels + c[None, :]
    tl.store(X + at, x.to(X.dtype.element_ty), mask=(row[:, None] < n) & (c[None, :] < channels))


@triton.jit(do_not_specialize=VARYING)
def forward(
    Q, K, V, BIAS, MASK, SEED, OUT, WEIGHTS, MOLECULES,
    first, least, molecules, pairs, dropout, qn, qh, kn, kh, vn, vh, bias_pair, bias_head,
    H: tl.constexpr, C: tl.constexpr, D: tl.constexpr, C_TILE: tl.constexpr, D_TILE: tl.constexpr,
    T: tl.constexpr, R: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r"""\(o_r = \sum_s \tilde p_{rs} v_s\), \(\tilde p_{rs} = m_{rs} p_{rs}\),
    \(p_{r\cdot} = \mathrm{softmax}_s(q_r \cdot k_s + b_{rs})\), with m the dropout factor, 0 or
    \(1 / (1 - \text{dropout})\); and \(\tilde p\), `[H, P]`, where it is wanted.

    Of the molecules from `first`, those of more than `least` and at most T atoms.
    """
    program = tl.program_id(0)
    head, molecule = program % H, first + program // H  # the heads of a molecule run together: its mask stays in cache
    node, pair, n = _molecule(MOLECULES, molecule, molecules)
    if (n <= least) | (n > T):
        return
    each = tl.arange(0, T)
    of_head = head.to(tl.int64) * pairs
    k = _tile(K, (node + each) * kn + head * kh, each < n, C, C_TILE)
    v = _tile(V, (node + each) * vn + head * vh, each < n, D, D_TILE)
    for start in range(0, n, R):
        row = start + tl.arange(0, R)
        inside = (row[:, None] < n) & (each[None, :] < n)
        at = pair + row[:, None] * n + each[None, :]
        q = _tile(Q, (node + row) * qn + head * qh, row < n, C, C_TILE)
        p = _weights(q, k, BIAS, MASK, at, inside, bias_pair, head.to(tl.int64) * bias_head, SUMS, PRECISION)
        if SEED is not None:
            kept = _dropout_mask(tl.load(SEED), node.to(tl.int32) + row, head, dropout, T)
            p = tl.where(kept, p / (1.0 - dropout), 0.0)
        if WEIGHTS is not None:
            tl.store(WEIGHTS + of_head + at, p.to(WEIGHTS.dtype.element_ty), mask=inside)
        _put(OUT, _dot(p.to(v.dtype), v, SUMS, PRECISION), node, row, n, head, H, D, D_TILE)


@triton.jit(do_not_specialize=VARYING)
def backward(
    Q, K, V, BIAS, MASK, SEED, GRAD, GRAD_WEIGHTS, DQ, DK, DV, DBIAS, WEIGHTS, MOLECULES,
    first, least, molecules, pairs, dropout, qn, qh, kn, kh, vn, vh, bias_pair, bias_head,
    H: tl.constexpr, C: tl.constexpr, D: tl.constexpr, C_TILE: tl.constexpr, D_TILE: tl.constexpr,
    T: tl.constexpr, R: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r"""Compute the gradients, with \(g_r\) that of \(o_r\) and \(\gamma_{rs}\) that of \(\tilde p_{rs}\), if any:

    \[ dv_s = \sum_r \tilde p_{rs} g_r, \quad dp_{rs} = m_{rs} (g_r \cdot v_s + \gamma_{rs}), \quad
       db_{rs} = p_{rs} (dp_{rs} - \textstyle\sum_{s'} p_{rs'} dp_{rs'}), \quad
       dq_r = \sum_s db_{rs} k_s, \quad dk_s = \sum_r db_{rs} q_r \]

    db and \(\tilde p\), `[H, P]`, are written where they are needed.
    """
    program = tl.program_id(0)
    head, molecule = program % H, first + program // H
    node, pair, n = _molecule(MOLECULES, molecule, molecules)
    if (n <= least) | (n > T):
        return
    each = tl.arange(0, T)
    of_head = head.to(tl.int64) * pairs
    k = _tile(K, (node + each) * kn + head * kh, each < n, C, C_TILE)
    v = _tile(V, (node + each) * vn + head * vh, each < n, D, D_TILE)
    dk, dv = tl.zeros([T, C_TILE], SUMS), tl.zeros([T, D_TILE], SUMS)
    for start in range(0, n, R):
        row = start + tl.arange(0, R)
        inside = (row[:, None] < n) & (each[None, :] < n)
        at = pair + row[:, None] * n + each[None, :]
        q = _tile(Q, (node + row) * qn + head * qh, row < n, C, C_TILE)
        g = _tile(GRAD, (node + row) * H * D + head * D, row < n, D, D_TILE)
        p = _weights(q, k, BIAS, MASK, at, inside, bias_pair, head.to(tl.int64) * bias_head, SUMS, PRECISION)
        dp = _dot(g, tl.trans(v), SUMS, PRECISION)
        if GRAD_WEIGHTS is not None:
            dp += tl.load(GRAD_WEIGHTS + of_head + at, mask=inside, other=0.0)
        kept_p = p
        if SEED is not None:
            kept = _dropout_mask(tl.load(SEED), node.to(tl.int32) + row, head, dropout, T)
            kept_p = tl.where(kept, p / (1.0 - dropout), 0.0)
            dp = tl.where(kept, dp / (1.0 - dropout), 0.0)
        if WEIGHTS is not None:
            tl.store(WEIGHTS + of_head + at, kept_p.to(WEIGHTS.dtype.element_ty), mask=inside)
        dv += _dot(tl.trans(kept_p.to(g.dtype)), g, SUMS, PRECISION)
        ds = p * (dp - tl.sum(p * dp, 1)[:, None])
        if DBIAS is not None:
            tl.store(DBIAS + of_head + at, ds.to(DBIAS.dtype.element_ty), mask=inside)
        _put(DQ, _dot(ds.to(k.dtype), k, SUMS, PRECISION), node, row, n, head, H, C, C_TILE)
        dk += _dot(tl.trans(ds.to(q.dtype)), q, SUMS, PRECISION)
    _put(DK, dk, node, each, n, head, H, C, C_TILE)
    _put(DV, dv, node, each, n, head, H, D, D_TILE)


@triton.jit(do_not_specialize=VARYING)
def spread(
    E, A, BIAS, OUT, MOLECULES, first, least, molecules, pairs, bias_pair, bias_head,
    H: tl.constexpr, K: tl.constexpr, H_TILE: tl.constexpr, K_TILE: tl.constexpr,
    T: tl.constexpr, R: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r"""\(e_{rs} \cdot a_{rh} + b_{rsh}\) into OUT, `[H, P]`, from A `[N, H, K]`, E `[P, K]` and, if any, BIAS."""
    program = tl.program_id(0)
    start, molecule = program % (T // R) * R, first + program // (T // R)
    node, pair, n = _molecule(MOLECULES, molecule, molecules)
    if (n <= least) | (n > T):
        return
    h, s = tl.arange(0, H_TILE), tl.arange(0, T)
    there = (h[:, None] < H) & (s[None, :] < n)
    for row in range(start, tl.minimum(start + R, n)):
        of_row = pair + row * n
        a = _tile(A, ((node + row) * H + h) * K, h < H, K, K_TILE)
        e = _tile(E, (of_row + s) * K, s < n, K, K_TILE)
        x = _dot(a, tl.trans(e).to(a.dtype), SUMS, PRECISION)
        if BIAS is not None:
            at = (of_row + s[None, :]) * bias_pair + h[:, None].to(tl.int64) * bias_head
            x += tl.load(BIAS + at, mask=there, other=0.0).to(SUMS)
        tl.store(OUT + h[:, None].to(tl.int64) * pairs + of_row + s[None, :], x, mask=there)


@triton.jit(do_not_specialize=VARYING)
def collect(
    W, E, OUT, MOLECULES, first, least, molecules, pairs,
    H: tl.constexpr, K: tl.constexpr, H_TILE: tl.constexpr, K_TILE: tl.constexpr,
    T: tl.constexpr, R: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r"""Write \(\sum_s w_{hrs} e_{rs}\) into OUT, `[N, H, K]`, from W `[H, P]` and E `[P, K]`."""
    program = tl.program_id(0)
    start, molecule = program % (T // R) * R, first + program // (T // R)
    node, pair, n = _molecule(MOLECULES, molecule, molecules)
    if (n <= least) | (n > T):
        return
    kind = OUT.dtype.element_ty
    h, k, s = tl.arange(0, H_TILE), tl.arange(0, K_TILE), tl.arange(0, T)
    for row in range(start, tl.minimum(start + R, n)):
        w = _tile(W, h.to(tl.int64) * pairs + pair + row * n, h < H, n, T)
        e = _tile(E, (pair + row * n + s) * K, s < n, K, K_TILE)
        x = _dot(w.to(kind), e.to(kind), SUMS, PRECISION)
        at = ((node + row) * H + h[:, None]) * K + k[None, :]
        tl.store(OUT + at, x.to(kind), mask=(h[:, None] < H) & (k[None, :] < K))


@triton.jit(do_not_specialize=VARYING)
def outer(
    W, A, W2, A2, OUT, MOLECULES, first, least, molecules, pairs,
    H: tl.constexpr, K: tl.constexpr, H_TILE: tl.constexpr, K_TILE: tl.constexpr,
    T: tl.constexpr, R: tl.constexpr, SUMS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    r"""\(\sum_h w_{hrs} a_{rh}\) into OUT, `[P, K]`, from W `[H, P]` and A `[N, H, K]`, two of each or one."""
    program = tl.program_id(0)
    start, molecule = program % (T // R) * R, first + program // (T // R)
    node, pair, n = _molecule(MOLECULES, molecule, molecules)
    if (n <= least) | (n > T):
        return
    h, k, s = tl.arange(0, H_TILE), tl.arange(0, K_TILE), tl.arange(0, T)
    for row in range(start, tl.minimum(start + R, n)):
        of_row = pair + row * n
        x = tl.zeros([T, K_TILE], SUMS)
        if A is not None:
            a = _tile(A, ((node + row) * H + h) * K, h < H, K, K_TILE)
            w = _tile(W, h.to(tl.int64) * pairs + of_row, h < H, n, T)
            x += _dot(tl.trans(w).to(a.dtype), a, SUMS, PRECISION)
        if A2 is not None:
            a = _tile(A2, ((node + row) * H + h) * K, h < H, K, K_TILE)
            w = _tile(W2, h.to(tl.int64) * pairs + of_row, h < H, n, T)
            x += _dot(tl.trans(w).to(a.dtype), a, SUMS, PRECISION)
        at = (of_row + s[:, None]) * K + k[None, :]
        tl.store(OUT + at, x.to(OUT.dtype.element_ty), mask=(s[:, None] < n) & (k[None, :] < K))
