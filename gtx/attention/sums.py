"""Attention over the pairs of a complete graph: one equation, summed by a compiled loop or by matrix products.

Read next: `gtx/attention/complete.py`, the sum in plain torch. `gtx/attention/fast` has the compiled ones.
"""

from __future__ import annotations

from torch import Tensor

from gtx.attention import fast
from gtx.attention.complete import AttentionResult, attend_pairs
from gtx.attention.edge_states import ProjectedEdgeFeatures
from gtx.attention.normalisers import Normaliser
from gtx.attention.scores import Score
from gtx.graph import CompleteGraph


def attend(
    graph: CompleteGraph,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score: Score,
    normaliser: Normaliser,
    edges: ProjectedEdgeFeatures | None = None,
    dropout: float = 0.0,
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
        score: the score.
        normaliser: function from scores to attention weights.
        edges: edge features and what they do.
        dropout: share of the weights set to zero.
        return_weights: whether the attention weights are also returned.
        return_states: whether the states of the score are also returned.
    """
    edges = ProjectedEdgeFeatures() if edges is None else edges
    if graph.num_nodes == 0:
        weights = value.new_zeros(0, value.shape[1]) if return_weights else None
        states = value.new_zeros(0, value.shape[1], score.state_channels) if return_states else None
        return AttentionResult(value[:0], weights, states)
    if not (return_weights or return_states):
        out = fast.attend(graph, query, key, value, score, normaliser, edges, dropout)
        if out is not None:
            return AttentionResult(out)
    return attend_pairs(graph, query, key, value, score, normaliser, edges, dropout, return_weights, return_states)
