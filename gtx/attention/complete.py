"""Attention over every pair of a complete graph: matrix products in size buckets."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.attention.normalisers import Normaliser
from gtx.attention.scores import Score
from gtx.graph import CompleteGraph

_BLOCK = 1 << 22  # numbers in one block of receivers, for scores without a matrix form


def attend(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    normaliser: Normaliser,
    bias: Tensor | None = None,
    edge_attr: Tensor | None = None,
    edge_key: Tensor | None = None,
    edge_value: Tensor | None = None,
    dropout: float = 0.0,
    return_weights: bool = False,
) -> tuple[Tensor, Tensor | None]:
    r"""Weigh what the senders offer and sum it, for every receiver.

    \[ s_{rs} = \mathrm{score}(q_r,\, k_s + W_K e_{rs}) + b_{rs}, \quad
       w_{r\cdot} = \mathrm{normalise}(s_{r\cdot}), \quad
       o_r = \sum_s w_{rs} (v_s + W_V e_{rs}) \]

    Edge features never become keys or values of their own where that can be avoided: for a bilinear score
    \(q \cdot W_K e = (W_K^\top q) \cdot e\), and always \(\sum_s w_{rs} W_V e_{rs} = W_V \sum_s w_{rs} e_{rs}\).

    Args:
        graph: who attends to whom.
        query: `[N, H, C]`.
        key: `[N, H, C]`.
        value: `[N, H, D]`.
        score: the score.
        normaliser: from scores to weights.
        bias: b, `[num_edges, H]`, added to the score.
        edge_attr: e, `[num_edges, K]`.
        edge_key: \(W_K\), `[H, C, K]`.
        edge_value: \(W_V\), `[H, D, K]`.
        dropout: share of the weights set to zero.
        return_weights: also give the weights, before dropout.

    Returns:
        o, `[N, H, D]`, and the weights, flat `[num_edges, H]`, or None.
    """
    H, D = value.shape[1:]
    out, weights = [], []
    packed = [graph.node_buckets(graph.nodes.pack(x)) for x in (query, key, value)]
    none = [None] * len(graph.buckets)
    biases = none if bias is None else graph.pair_buckets(graph.pairs.pack(bias))
    uses_edges = edge_key is not None or edge_value is not None
    edges = none if not uses_edges else graph.pair_buckets(graph.pairs.pack(edge_attr))
    holes = graph.node_buckets(graph.nodes.pack(query.new_zeros(len(query)), -torch.inf))  # [b, n]: 0 or -inf

    for q, k, v, b, e, hole in zip(*packed, biases, edges, holes, strict=True):  # [b, n, H, C] .. [b, n, n, K]
        s = _scores(score, q, k, e, edge_key)  # [b, H, n, n]
        if b is not None:
            s = s + b.permute(0, 3, 1, 2)
        s = s + hole[:, None, None, :]
        w = normaliser.pairs(s)
        kept = F.dropout(w, dropout) if dropout else w
        o = (kept @ v.transpose(1, 2)).transpose(1, 2)  # [b, n, H, D]
        if edge_value is not None:
            mixed = kept.permute(0, 2, 1, 3) @ e  # [b, n, H, K]
            o = o + torch.einsum("bnhk,hdk->bnhd", mixed, edge_value)
        out.append(o.reshape(-1, H, D))
        if return_weights:
            weights.append(w.permute(0, 2, 3, 1).reshape(-1, H))
    if not out:  # no node at all
        return value, value.new_zeros(0, H) if return_weights else None
    return (
        graph.nodes.unpack(torch.cat(out)),
        graph.pairs.unpack(torch.cat(weights)) if return_weights else None,
    )


def _scores(score: Score, q: Tensor, k: Tensor, e: Tensor | None, edge_key: Tensor | None) -> Tensor:
    """Scores of all pairs of one bucket, `[b, H, receivers, senders]`."""
    if score.bilinear:
        q = score.prepare(q)
        s = q.transpose(1, 2) @ k.permute(0, 2, 3, 1)
        if edge_key is not None:
            asked = torch.einsum("bnhc,hck->bnhk", q, edge_key)  # what the receiver asks of an edge
            s = s + (asked @ e.transpose(2, 3)).transpose(1, 2)
        return s
    b, n, H, C = k.shape
    rows = max(1, _BLOCK // max(1, b * n * H * C))
    blocks = []
    for start in range(0, n, rows):
        block = slice(start, start + rows)
        keys = k[:, None]  # [b, 1, n, H, C]
        if edge_key is not None:
            keys = keys + torch.einsum("brsk,hck->brshc", e[:, block], edge_key)
        blocks.append(score(q[:, block, None], keys))  # [b, r, n, H]
    return torch.cat(blocks, 1).permute(0, 3, 1, 2)
