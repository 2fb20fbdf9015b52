"""Attention over complete graphs as matrix products, in buckets of like sizes."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn.inits import glorot

from gtx.attention.definition import AttentionResult, AttentionRule, weigh_edges
from gtx.attention.normalisers import CompleteGraphAggregator
from gtx.attention.scores import required
from gtx.graph import BipartiteGraph, CompleteGraph

# --- How the heads become one vector.


class HeadMerge(nn.Module):
    """Base class of modules that merge the outputs of the heads, `[N, H, C]`, into `[N, width]`."""

    def width(self, heads: int, channels: int) -> int:
        """Channels of the output: by default those of one head."""
        return channels


class MaxOverHeads(HeadMerge):
    """Merge of the heads by their maximum, channel by channel."""

    def forward(self, heads: Tensor) -> Tensor:
        return heads.amax(1)


class LearnedSumOverHeads(HeadMerge):
    r"""Merge of the heads by a learned weight each, \(\bar e_{ij} = \sum_h w_h \bar e_{ihj}\), initialised to the mean.

    Args:
        heads: number H of attention heads.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.weight, 1 / len(self.weight))

    def forward(self, heads: Tensor) -> Tensor:
        return torch.einsum("nhj,h->nj", heads, self.weight)


class LinearHeadMerge(HeadMerge):
    r"""Merge of the heads by a learned weight tensor, \(\bar e_{il} = \sum_{jh} \bar e_{ihj}\, w_{jhl}\).

    The merge equals concatenation followed by the matrix \(W_o\): row \((h, j)\) of \(W_o\) is \(w_{jh\cdot}\).

    Args:
        heads: number H of attention heads.
        channels: number of channels of a head (index j).
        out_channels: number of output channels (index l).
    """

    def __init__(self, heads: int, channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight: nn.Parameter = nn.Parameter(torch.empty(channels, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.weight)

    def width(self, heads: int, channels: int) -> int:
        return self.weight.shape[-1]

    def forward(self, heads: Tensor) -> Tensor:
        return torch.einsum("nhj,jhl->nl", heads, self.weight)


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
