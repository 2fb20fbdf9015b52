"""How heads become one vector."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gtx.attention import LearnedSumOverHeads, LinearHeadMerge, MaxOverHeads
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, attention, close, in_both_layouts, inputs, project

H, D = 3, 4


def heads_by_hand(layer: EdgeAttention, x: Tensor) -> Tensor:
    q, k, v = (project(linear, x, H) for linear in (layer.lin_query, layer.lin_key, layer.lin_value))
    return attention(lambda r, s, _: (q[r] * k[s]).sum(-1) / D**0.5, lambda r, s, _: v[s])


def test_one_weight_tensor_is_concatenation_and_output_weights() -> None:
    """Row (h, j) of W_o is w[j, h]."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, D, H, merge=LinearHeadMerge(H, D, 5)).double()
    w = layer.merge.weight  # [j, h, l]
    W_o = torch.stack([w[j, h] for h in range(H) for j in range(D)])  # [H * D, l]
    beside = torch.cat(list(heads_by_hand(layer, x).unbind(1)), -1)
    assert layer.width == 5
    in_both_layouts(layer, beside @ W_o, x)


@pytest.mark.parametrize(
    ("merge", "of"),
    [
        ({}, lambda heads: torch.cat([heads[:, h] for h in range(H)], -1)),
        ({"concat": False}, lambda heads: (heads[:, 0] + heads[:, 1] + heads[:, 2]) / 3),
        ({"merge": MaxOverHeads()}, lambda heads: torch.maximum(torch.maximum(heads[:, 0], heads[:, 1]), heads[:, 2])),
    ],
    ids=["beside", "mean", "max"],
)
def test_merges_without_weights(merge: dict, of: object) -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, D, H, **merge).double()
    expected = of(heads_by_hand(layer, x))
    assert layer.width == expected.shape[1]
    in_both_layouts(layer, expected, x)


def test_weighted_heads_start_at_the_mean_and_learn() -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, D, H, merge=LearnedSumOverHeads(H)).double()
    heads = heads_by_hand(layer, x)
    close(layer(x, GRAPH), heads.mean(1), 1e-6)
    with torch.no_grad():
        layer.merge.weight.copy_(torch.tensor([0.25, -1.0, 3.0]))
    in_both_layouts(layer, 0.25 * heads[:, 0] - heads[:, 1] + 3.0 * heads[:, 2], x)
    layer.reset_parameters()
    assert layer.merge.weight.eq(1 / 3).all()


def test_a_merge_takes_the_place_of_concat_and_project() -> None:
    layer = EdgeAttention(6, D, H, project=True, merge=MaxOverHeads())
    assert layer.lin_out is None and layer.width == D
    assert [repr(m) for m in (MaxOverHeads(), LinearHeadMerge(2, 3, 4))] == ["MaxOverHeads()", "LinearHeadMerge()"]
