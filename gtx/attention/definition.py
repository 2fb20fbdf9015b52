"""Attention as its equation says it, edge by edge: what every faster form is compared with.

Read next: `gtx/attention/scores.py`, the first of its modules; `gtx/attention/complete.py`, by matrix products.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.utils import scatter

from gtx.attention.normalisers import EdgeListAggregator, Normaliser, ReceiverAggregator, Softmax
from gtx.attention.scores import ScaledDotScore, Score, required


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
        return 0 if all(w is None for w in (self.score, self.key, self.value)) else required(self.features).shape[1]

    @property
    def in_key_or_value(self) -> bool:
        """True if the features enter keys or values, and not the scores alone."""
        return self.key is not None or self.value is not None

    @property
    def whole_bias(self) -> Tensor | None:
        r"""Sum of all terms added to the scores, \(w_b \cdot e_{rs} + b_{rs}\), `[num_pairs, H]`."""
        if self.score is None:
            return self.bias
        linear = F.linear(required(self.features), self.score)
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
    e, bias = rule.edges.features, rule.edges.whole_bias
    if rule.edges.key is not None:
        key = key + _project(required(e), rule.edges.key)
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
        value = value + _project(required(edges.features), edges.value)
    if edges.state_value is not None:
        value = value + torch.einsum("...hs,hds->...hd", state, edges.state_value)
    return weights.unsqueeze(-1) * value


def _project(features: Tensor, weight: Tensor) -> Tensor:
    """Project features `[..., K]` by one matrix a head, `[H, C, K]`, to `[..., H, C]`."""
    return F.linear(features, weight.flatten(0, 1)).unflatten(-1, weight.shape[:2])
