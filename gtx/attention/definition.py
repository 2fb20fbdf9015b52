"""Attention as its equation says it, edge by edge, and the same by matrix products: faster forms are compared with it.

Read next: `gtx/attention/scores.py`, the first of its modules; `gtx/attention/complete.py`, the choice of a form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import scatter

from gtx.attention.normalisers import (
    CompleteGraphAggregator,
    EdgeListAggregator,
    Normaliser,
    ReceiverAggregator,
    Softmax,
)
from gtx.attention.scores import ScaledDotScore, Score, require
from gtx.graph import BipartiteGraph, CompleteGraph

# --- What an attention does with queries, keys, values and edge features.


class ProjectedEdgeFeatures(NamedTuple):
    r"""Edge features e of an attention, with the linear maps that project them onto keys, values and scores.

    Attributes:
        features: e, `[num_pairs, K]`, or None.
        bias: b, `[num_pairs, H]`, added to the score.
        score: \(w_b\), `[H, K]`: \(w_b \cdot e_{rs}\) is added to the score.
        key: \(W_K\), `[H, C, K]`: \(k_s + W_K e_{rs}\).
        value: \(W_V\), `[H, D, K]`: \(v_s + W_V e_{rs}\).
        state_value: \(W_S\), `[H, D, S]`: \(v_s + W_S \hat e_{rs}\), with the score's state \(\hat e\).
    """

    features: Tensor | None = None
    bias: Tensor | None = None
    score: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    state_value: Tensor | None = None

    @property
    def used_channels(self) -> int:
        """Number K of channels, or 0 if the features are used only as a bias."""
        return 0 if all(w is None for w in (self.score, self.key, self.value)) else require(self.features).shape[1]

    @property
    def in_key_or_value(self) -> bool:
        """True if the features enter keys or values, and not the scores alone."""
        return self.key is not None or self.value is not None

    @property
    def total_bias(self) -> Tensor | None:
        r"""Sum of all terms added to the scores, \(w_b \cdot e_{rs} + b_{rs}\), `[num_pairs, H]`."""
        if self.score is None:
            return self.bias
        linear = F.linear(require(self.features), self.score)
        return linear if self.bias is None else self.bias + linear


class AttentionRule(NamedTuple):
    """Record of what an attention does with queries, keys and values, the same for every edge.

    Attributes:
        score: function of query, key and edge features.
        normaliser: function from the scores of a receiver to attention weights.
        edges: edge features, and the linear maps that project them onto scores, keys and values.
        dropout: share of the weights set to zero; 0 outside training.
    """

    score: Score
    normaliser: Normaliser
    edges: ProjectedEdgeFeatures = ProjectedEdgeFeatures()
    dropout: float = 0.0

    @property
    def is_dot_softmax(self) -> bool:
        """True if the weights are the softmax, at temperature 1, of a score bilinear in query and key, without states
        in the values: the rule that compiled code computes.
        """
        softmax = type(self.normaliser) is Softmax and self.normaliser.temperature == 1.0
        return self.score.bilinear and softmax and self.edges.state_value is None

    def with_features(self, features: Tensor | None, bias: Tensor | None) -> AttentionRule:
        """Return the rule for other edges, with their features and the sum of all that is added to their scores."""
        return self._replace(edges=self.edges._replace(features=features, bias=bias, score=None))


DOT_SOFTMAX = AttentionRule(ScaledDotScore(1.0), Softmax())
"""Rule of the softmax of dot products, whose scale is in the query: what compiled code computes."""


class AttentionResult(NamedTuple):
    """Output of an attention: the weighted sums of the values and, on request, the attention weights and edge states.

    Attributes:
        out: weighted sum of the values for each receiver, `[N, H, D]`.
        weights: attention weights before dropout, `[num_pairs, H]`, or None.
        states: edge states computed by the score, `[num_pairs, H, S]`, or None.
    """

    out: Tensor
    weights: Tensor | None = None
    states: Tensor | None = None


# --- The equation, edge by edge.


def attend_edges(
    edge_index: Tensor, query: Tensor, key: Tensor, value: Tensor, rule: AttentionRule, factor: Tensor | None = None
) -> AttentionResult:
    r"""Compute attention over a list of edges; `gtx.attention.attend` gives the equation.

    Args:
        edge_index: senders and receivers, int64 `[2, E]`.
        query: `[N, H, C]`.
        key: `[M, H, C]`.
        value: `[M, H, D]`.
        rule: score, normaliser and dropout, with edge features `[E, K]`.
        factor: factors of the weights, `[E, H]`, in place of those that dropout draws.
    """
    sender, receiver = edge_index
    weights, state = weigh_edges(query[receiver], key[sender], rule, EdgeListAggregator(receiver, len(query)))
    kept = F.dropout(weights, rule.dropout) if factor is None else weights * factor
    messages = weigh_values(value[sender], kept, state, rule.edges)
    return AttentionResult(scatter(messages, receiver, 0, len(query), "sum"), weights, state)


def weigh_edges(query: Tensor, key: Tensor, rule: AttentionRule, into: ReceiverAggregator) -> tuple[Tensor, Tensor]:
    r"""Compute \(\hat e_{rs}\), the state of the score, and \(w_{r\cdot} = \mathrm{normalise}(s_{r\cdot})\) with
    \(s_{rs} = \mathrm{score}(q_r, k_s + W_K e_{rs}, e_{rs}) + w_b \cdot e_{rs} + b_{rs}\).

    Args:
        query: queries of the receivers of the edges, `[..., H, C]`.
        key: keys of the senders, `[..., H, C]`.
        rule: score and normaliser, with the features of these edges.
        into: the edges grouped by receiver.

    Returns:
        Weights `[..., H]` and states `[..., H, S]`.
    """
    e, bias = rule.edges.features, rule.edges.total_bias
    if rule.edges.key is not None:
        key = key + _project(require(e), rule.edges.key)
    state = rule.score.state(query, key, e)
    score = rule.score.weigh(state)
    return rule.normaliser(score if bias is None else score + bias, e, into), state


def weigh_values(value: Tensor, weights: Tensor, state: Tensor, edges: ProjectedEdgeFeatures) -> Tensor:
    r"""Compute \(w_{rs} (v_s + W_V e_{rs} + W_S \hat e_{rs})\), what each edge contributes to its receiver.

    Args:
        value: values of the senders, `[..., H, D]`.
        weights: `[..., H]`.
        state: states of the score, `[..., H, S]`.
        edges: the features of these edges and their maps.
    """
    if edges.value is not None:
        value = value + _project(require(edges.features), edges.value)
    if edges.state_value is not None:
        value = value + torch.einsum("...hs,hds->...hd", state, edges.state_value)
    return weights.unsqueeze(-1) * value


def _project(features: Tensor, weight: Tensor) -> Tensor:
    """Project features `[..., K]` by one matrix a head, `[H, C, K]`, to `[..., H, C]`."""
    return F.linear(features, weight.flatten(0, 1)).unflatten(-1, weight.shape[:2])


# --- The same over the pairs of a complete graph: matrix products in size buckets.

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
        return [None] * len(packed.shapes) if pairs is None else packed.split_pairs(pairs)

    packed = graph.packed
    queries = packed.split_nodes(query)  # [b, r, H, C]
    keys, values = packed.split_senders(key), packed.split_senders(value)  # [b, s, H, C]
    at_once = _matrix_form(rule, return_states) or torch.compiler.is_compiling()  # which unrolls loops
    parts: list[tuple[Tensor, ...]] = []
    features, biases = buckets(rule.edges.features), buckets(rule.edges.total_bias)
    for q, k, v, e, b, into in zip(queries, keys, values, features, biases, _receivers(graph), strict=True):
        if at_once:
            parts.append(attend_receivers(q, k, v, rule.with_features(e, b), into, return_states))
            continue
        rows = max(1, _BLOCK // max(1, k.numel()))
        done = []
        for start in range(0, q.shape[1], rows):
            at = slice(start, start + rows)
            block = rule.with_features(*(None if x is None else x[:, at] for x in (e, b)))
            done.append(attend_receivers(q[:, at], k, v, block, into.block(at), return_states))
        parts.append(tuple(torch.cat(x, 1) for x in zip(*done, strict=True)))
    out, weights, states = zip(*parts, strict=True)
    return AttentionResult(
        packed.join_nodes(out),
        packed.join_pairs(weights) if return_weights else None,
        packed.join_pairs(states) if return_states else None,
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
            s = s + require(edges.features) @ of_edge.transpose(2, 3)
        state, bias = s.unsqueeze(-1), edges.total_bias
        weights = rule.normaliser(s if bias is None else s + bias, edges.features, into)
    else:
        weights, state = weigh_edges(query[:, :, None], key[:, None], rule, into)
    kept = F.dropout(weights, rule.dropout)
    out = (kept.permute(0, 3, 1, 2) @ value.transpose(1, 2)).transpose(1, 2)
    if edges.value is not None:  # sum_s w W_V e = W_V sum_s w e
        out = out + torch.einsum("brhk,hdk->brhd", kept.transpose(2, 3) @ require(edges.features), edges.value)
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


def _receivers(graph: CompleteGraph) -> list[CompleteGraphAggregator]:
    """Per bucket, which pairs are no edges: `[b, 1, s, 1]` where only padding is absent, `[b, r, s, 1]` with a mask."""
    packed = graph.packed
    if graph.mask is None:
        none = torch.zeros(graph.num_senders, 1, dtype=torch.bool, device=graph.ptr.device)
        holes = packed.split_senders(none, True)
        return [CompleteGraphAggregator(hole[:, None], not isinstance(graph, BipartiteGraph)) for hole in holes]
    return [CompleteGraphAggregator(hole, False) for hole in packed.split_pairs(~graph.mask[:, None], True)]
