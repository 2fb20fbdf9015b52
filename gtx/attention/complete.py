"""Attention over the pairs of a complete graph: the choice between compiled code and matrix products in plain torch.

Read next: `gtx/attention/definition.py`, the equation edge by edge and by matrix products.
"""

from __future__ import annotations

import os

from torch import Tensor

from gtx.attention.definition import AttentionResult, AttentionRule, attend_pairs
from gtx.attention.fast import compiled
from gtx.graph import CompleteGraph


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
            from gtx.attention.fast import ragged, verification  # with torch's compiler, which takes a second to import

            if ragged.can_run(graph, query, value, rule):
                prepared = rule.score.prepare(query)
                if verification.why_not(graph, prepared, key, value, rule.edges, rule.dropout) is None:
                    return AttentionResult(ragged.attention(graph, prepared, key, value, rule.edges, rule.dropout))
        elif compiled.can_run(graph, query, key, value, rule):
            prepared = rule.score.prepare(query)
            return AttentionResult(compiled.attention(graph, prepared, key, value, rule.edges, rule.dropout))
    return attend_pairs(graph, query, key, value, rule, return_weights, return_states)


def _check(graph: CompleteGraph, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule) -> None:
    """Check the shapes, since compiled code reads whatever lies in memory."""
    (N, H, C), (M, _, D), edges = query.shape, value.shape, rule.edges
    if (graph.num_senders, graph.num_nodes) != (M, N):
        raise ValueError(
            f"expected {graph.num_senders} senders and {graph.num_nodes} receivers, as in {graph}, got {M} and {N}"
        )
    if key.shape != (M, H, C) or value.shape[1] != H:
        shapes = ", ".join(str(list(x.shape)) for x in (query, key, value))
        raise ValueError(f"expected query [{N}, H, C], key [{M}, H, C] and value [{M}, H, D], got {shapes}")
    K = 0 if edges.features is None else edges.features.shape[-1]
    expected = {"features": [graph.num_pairs, K], "bias": [graph.num_pairs, H]}
    expected |= {"score": [H, K], "key": [H, C, K], "value": [H, D, K]}
    for name, shape in expected.items():
        tensor = getattr(edges, name)
        if tensor is not None and list(tensor.shape) != shape:
            raise ValueError(f"expected edges with {name} {shape}, got {list(tensor.shape)}")
    if not 0.0 <= rule.dropout < 1.0:
        raise ValueError(f"expected 0 <= dropout < 1, got {rule.dropout}")
