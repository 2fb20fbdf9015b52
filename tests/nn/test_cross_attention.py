"""From one set of nodes to another: source and target of unlike widths, on an edge list."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from gtx.attention import HeadGate, ScaledDotScore
from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention
from tests.attention.by_hand import close, project

EDGES = torch.tensor([[0, 4, 2, 3, 1, 4], [0, 0, 2, 2, 3, 3]])  # receiver 1 has none
H = 2


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return tuple(torch.randn(shape, dtype=torch.float64) for shape in ((5, 7), (4, 6), (6, 3)))


def by_hand(layer: EdgeAttention, source: Tensor, target: Tensor, edge_attr: Tensor) -> Tensor:
    q, k, v = (
        project(linear, x, H)
        for linear, x in ((layer.lin_query, target), (layer.lin_key, source), (layer.lin_value, source))
    )
    bias = edge_attr @ layer.lin_edge_bias.weight.T
    out = torch.zeros(len(target), *v.shape[1:], dtype=v.dtype)
    for r in range(len(target)):
        into = [(int(s), i) for i, (s, at) in enumerate(EDGES.T) if at == r]
        if into:
            scores = torch.stack([(q[r] * k[s]).sum(-1) / q.shape[-1] ** 0.5 + bias[i] for s, i in into])
            out[r] = (scores.softmax(0).unsqueeze(-1) * torch.stack([v[s] for s, _ in into])).sum(0)
    return out


def test_query_of_the_target_key_and_value_of_the_source() -> None:
    source, target, e = inputs()
    layer = EdgeAttention((7, 6), 4, H, edge_dim=3, key_channels=5).double()
    out, (_, alpha) = layer((source, target), EDGES, e, return_attention_weights=True)
    assert out.shape == (4, 8) and alpha.shape == (6, H) and out[1].eq(0).all()
    close(out, by_hand(layer, source, target, e).flatten(1))


def test_a_gate_sees_both_sides() -> None:
    source, target, e = inputs()
    layer = EdgeAttention((7, 6), 4, H, edge_dim=3, gate=HeadGate((7, 6), H, 5)).double()
    gate = layer.gate
    for r in (0, 1, 2, 3):
        senders = source[EDGES[0, EDGES[1] == r]]
        largest, mean = torch.zeros(5).double(), torch.zeros(7).double()  # of no sender
        if len(senders):
            largest, mean = (senders @ gate.lin_max.weight.T + gate.lin_max.bias).amax(0), senders.mean(0)
        expected = (gate.lin_gate.weight @ torch.cat([target[r], largest, mean]) + gate.lin_gate.bias).sigmoid()
        close(gate(target, source, EDGES)[r], expected)
    gated = by_hand(layer, source, target, e) * gate(target, source, EDGES).unsqueeze(-1)
    close(layer((source, target), EDGES, e), gated.flatten(1))


def test_one_width_may_share_a_projection_or_have_none() -> None:
    source, target = torch.randn(5, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    raw = EdgeAttention((4, 4), 4, projections="none", score=ScaledDotScore(1.0)).double()
    shared = EdgeAttention((4, 4), 3, projections="shared", bias=False, score=ScaledDotScore(1.0)).double()
    U = shared.lin_query.weight.T
    s = source[[0, 4]]
    close(raw((source, target), EDGES)[0], F.softmax(target[0] @ s.T, -1) @ s)
    close(shared((source, target), EDGES)[0], F.softmax(target[0] @ U @ (s @ U).T, -1) @ s @ U)


def test_a_complete_graph_joins_one_set_only() -> None:
    source, target, _ = inputs()
    with pytest.raises(ValueError, match=r"joins one set of nodes; for \(source, target\) pass a BipartiteGraph"):
        EdgeAttention((7, 6), 4, H).double()((source, target), CompleteGraph.from_ptr(torch.tensor([0, 4])))
    with pytest.raises(ValueError, match="channels of one width, got 7 and 6"):
        EdgeAttention((7, 6), 4, projections="shared")
