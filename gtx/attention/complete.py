"""Attention over the pairs of a complete graph: by compiled code, or by matrix products in buckets of like sizes.

Read next: `gtx/attention/definition.py`, the equation edge by edge.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.attention.definition import AttentionResult, AttentionRule, weigh_edges
from gtx.attention.fast import compiled
from gtx.attention.normalisers import CompleteGraphAggregator
from gtx.attention.scores import required
from gtx.graph import BipartiteGraph, CompleteGraph


def attend(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rule: AttentionRule,
    return_weights: bool = False,
    return_states: bool = False,
) -> AttentionResult:
    r"""Compute attention: for each receiver, the sum of the senders' values, weighted by the normalised scores.

    \[ s_{rs} = \mathrm{score}(q_r,\, k_s + W_K e_{rs},\, e_{rs}) + w_b \cdot e_{rs} + b_{rs}, \quad
       w_{r\cdot} = \mathrm{normalise}(s_{r\cdot}), \quad
       o_r = \sum_s w_{rs} (v_s + W_V e_{rs} + W_S \hat e_{rs}) \]

    Edge features never become keys or values of their own where that can be avoided: for a bilinear score
    \(q \cdot W_K e = (W_K^\top q) \cdot e\), and always \(\sum_s w_{rs} W_V e_{rs} = W_V \sum_s w_{rs} e_{rs}\).

    Args:
        graph: graph that defines the edges; for M senders and N receivers of two sets, a `BipartiteGraph`.
        query: `[N, H, C]`.
        key: `[N, H, C]`, or `[M, H, C]`.
        value: `[N, H, D]`, or `[M, H, D]`.
        rule: score, normaliser, edge features `[num_pairs, K]` and dropout.
        return_weights: whether the attention weights are also returned.
        return_states: whether the states of the score are also returned.

    Raises:
        ValueError: a shape does not fit, or dropout is not from 0 to below 1.
    """
    _check(graph, query, key, value, rule)
    if graph.num_nodes == 0:
        weights = value.new_zeros(0, value.shape[1]) if return_weights else None
        states = value.new_zeros(0, value.shape[1], rule.score.state_channels) if return_states else None
        return AttentionResult(value[:0], weights, states)
    if not (return_weights or return_states):
        if query.device.type != "cpu" or os.environ.get("TRITON_INTERPRET") == "1":
            from gtx.attention.fast import ragged  # with torch's compiler, which takes a second to import

            if ragged.can_run(graph, query, value, rule):
                prepared = rule.score.prepare(query)
                if ragged.why_not(graph, prepared, key, value, rule.edges, rule.dropout) is None:
                    return AttentionResult(ragged.attention(graph, prepared, key, value, rule.edges, rule.dropout))
        elif compiled.can_run(graph, query, key, value, rule):
            prepared = rule.score.prepare(query)
            return AttentionResult(compiled.attention(graph, prepared, key, value, rule.edges, rule.dropout))
    return attend_pairs(graph, query, key, value, rule, return_weights, return_states)


def _check(graph: CompleteGraph, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> None:
    """Check the shapes, since compiled code reads whatever lies in memory."""
    (N, H, C), M, D, edges = query.shape, graph.num_senders, value.shape[-1], rule.edges
    if graph.num_nodes != N or key.shape != (M, H, C) or value.shape != (M, H, D):
        raise ValueError(
            f"expected query [{graph.num_nodes}, H, C], key [{M}, H, C] and value [{M}, H, D], "
            f"got {list(query.shape)}, {list(key.shape)} and {list(value.shape)}"
        )
    K = 0 if edges.features is None else edges.features.shape[-1]
    shapes = {"features": [graph.num_pairs, K], "bias": [graph.num_pairs, H]}
    shapes |= {"score": [H, K], "key": [H, C, K], "value": [H, D, K]}
    for name, shape in shapes.items():
        given = getattr(edges, name)
        if given is not None and list(given.shape) != shape:
            raise ValueError(f"expected edges with {name} {shape}, got {list(given.shape)}")
    if not 0.0 <= rule.dropout < 1.0:
        raise ValueError(f"expected 0 <= dropout < 1, got {rule.dropout}")


# --- Attention over the pairs of a complete graph in plain torch: matrix products in size buckets.
#
# `attend_receivers` is the sum itself.

_BLOCK = 1 << 22  # numbers in one block of receivers, for scores without a matrix form


def attend_pairs(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rule: AttentionRule,
    return_weights: bool = False,
    return_states: bool = False,
) -> AttentionResult:
    """Attend over the pairs of a complete graph with at least one node, as `gtx.attention.attend`.

    It proceeds bucket by bucket, and where a score has no matrix form, by some receivers of a bucket at a time.
    """

    def buckets(pairs: Tensor | None) -> Sequence[Tensor | None]:
        return [None] * len(packed.shapes) if pairs is None else packed.cut_pairs(packed.pairs.pack(pairs))

    packed = graph.packed
    queries = packed.cut_nodes(packed.nodes.pack(query))  # [b, r, H, C]
    keys, values = (packed.cut_senders(packed.senders.pack(x)) for x in (key, value))  # [b, s, H, C]
    at_once = _matrix_form(rule, return_states) or torch.compiler.is_compiling()  # which unrolls loops
    parts: list[tuple[Tensor, ...]] = []
    features, biases = buckets(rule.edges.features), buckets(rule.edges.whole_bias)
    for q, k, v, e, b, into in zip(queries, keys, values, features, biases, _receivers(graph), strict=True):
        if at_once:
            parts.append(attend_receivers(q, k, v, rule.with_features(e, b), into, return_states))
            continue
        rows = max(1, _BLOCK // max(1, k.numel()))
        done = []
        for start in range(0, q.shape[1], rows):
            at = slice(start, start + rows)
            block = rule.with_features(_rows(e, at), _rows(b, at))
            done.append(attend_receivers(q[:, at], k, v, block, into.block(at), return_states))
        parts.append(tuple(torch.cat(x, 1) for x in zip(*done, strict=True)))
    out, weights, states = zip(*parts, strict=True)

    def unpack(pairs: tuple[Tensor, ...]) -> Tensor:
        return packed.pairs.unpack(torch.cat([p.flatten(0, 2) for p in pairs]))

    return AttentionResult(
        packed.nodes.unpack(torch.cat([o.flatten(0, 1) for o in out])),
        unpack(weights) if return_weights else None,
        unpack(states) if return_states else None,
    )


def attend_receivers(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    rule: AttentionRule,
    into: CompleteGraphAggregator,
    return_states: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute attention for some receivers of b padded graphs, over all senders of each graph.

    Args:
        query: `[b, r, H, C]`.
        key: `[b, s, H, C]`.
        value: `[b, s, H, D]`.
        rule: score, normaliser and dropout, with edge features `[b, r, s, K]` and a bias `[b, r, s, H]`.
        into: which pairs are edges.
        return_states: whether the states will be used.

    Returns:
        The outputs `[b, r, H, D]`, the weights `[b, r, s, H]` and the states of the score `[b, r, s, H, S]`.
    """
    edges = rule.edges
    if _matrix_form(rule, return_states):
        s = rule.score.pairs(query, key, edges.features)
        if edges.key is not None:
            of_edge = torch.einsum("brhc,hck->brhk", rule.score.prepare(query), edges.key)  # q · W_K e = (q W_K) · e
            s = s + required(edges.features) @ of_edge.transpose(2, 3)
        state, bias = s.unsqueeze(-1), edges.whole_bias
        weights = rule.normaliser(s if bias is None else s + bias, edges.features, into)
    else:
        weights, state = weigh_edges(query[:, :, None], key[:, None], rule, into)
    kept = F.dropout(weights, rule.dropout)
    out = (kept.permute(0, 3, 1, 2) @ value.transpose(1, 2)).transpose(1, 2)
    if edges.value is not None:  # sum_s w W_V e = W_V sum_s w e
        out = out + torch.einsum("brhk,hdk->brhd", kept.transpose(2, 3) @ required(edges.features), edges.value)
    if edges.state_value is not None:
        mixed = torch.einsum("brsh,brshc->brhc", kept, state)
        out = out + torch.einsum("brhc,hdc->brhd", mixed, edges.state_value)
    return out, weights, state


def _matrix_form(rule: AttentionRule, states: bool) -> bool:
    """Return whether matrix products yield all scores of a block: no pair needs a key or a state of its own."""
    score, edges = rule.score, rule.edges
    by_pair = edges.key is not None and not score.bilinear
    vectors = edges.state_value is not None or (states and score.state_channels > 1)
    return score.matrix_form and not by_pair and not vectors


def _rows(x: Tensor | None, at: slice) -> Tensor | None:
    return None if x is None else x[:, at]


def _receivers(graph: CompleteGraph) -> list[CompleteGraphAggregator]:
    """Per bucket, which pairs are no edges: `[b, 1, s, 1]` where only padding is absent, `[b, r, s, 1]` with a mask."""
    packed = graph.packed
    if graph.mask is None:
        none = torch.zeros(graph.num_senders, 1, dtype=torch.bool, device=graph.ptr.device)
        holes = packed.cut_senders(packed.senders.pack(none, True))
        return [CompleteGraphAggregator(hole[:, None], not isinstance(graph, BipartiteGraph)) for hole in holes]
    absent = packed.pairs.pack(~graph.mask[:, None], True)
    return [CompleteGraphAggregator(hole, False) for hole in packed.cut_pairs(absent)]
