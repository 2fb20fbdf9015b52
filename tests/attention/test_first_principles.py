"""From softmax(X Xᵀ) X to query, key and value: each attention is its equation, written out in loops."""

import pytest
import torch

from gtx.attention import AdditiveScore, BilinearScore, ScaledDotScore
from gtx.nn import EdgeAttention
from tests.attention.by_hand import SIZES, attention, in_both_layouts, inputs, project


@pytest.mark.parametrize("heads", [1, 3])
def test_without_any_weights_it_is_softmax_of_the_gram_matrix(heads: int) -> None:
    """softmax(X Xᵀ) X, molecule by molecule, as matrices; each head sees its own channels."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, 6 // heads, heads, projections="none", score=ScaledDotScore(1.0)).double()
    assert list(layer.parameters()) == []
    each = [[(h @ h.T).softmax(-1) @ h for h in m.chunk(heads, 1)] for m in x.split(SIZES)]
    in_both_layouts(layer, torch.cat([torch.cat(of_heads, 1) for of_heads in each]), x)


def shared() -> EdgeAttention:
    torch.manual_seed(0)
    return EdgeAttention(6, 4, projections="shared", bias=False, score=ScaledDotScore(1.0)).double()


def test_one_projection_shared_by_query_key_and_value() -> None:
    """softmax(X U Uᵀ Xᵀ) X U."""
    x, _ = inputs(6)
    layer = shared()
    U = layer.lin_query.weight.T
    in_both_layouts(layer, torch.cat([(m @ U @ U.T @ m.T).softmax(-1) @ m @ U for m in x.split(SIZES)]), x)


@pytest.mark.parametrize("scale", [None, 1.0, 0.3], ids=["over the root of d_k", "plain", "own factor"])
def test_query_key_value_with_unlike_widths(scale: float | None) -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, 5, heads=2, key_channels=3, score=ScaledDotScore(scale)).double()
    q, k, v = (project(linear, x, 2) for linear in (layer.lin_query, layer.lin_key, layer.lin_value))
    factor = 3**-0.5 if scale is None else scale
    expected = attention(lambda r, s, _: factor * (q[r] * k[s]).sum(-1), lambda r, s, _: v[s])
    assert expected.shape == (sum(SIZES), 2, 5)
    in_both_layouts(layer, expected.flatten(1), x)


def test_key_and_value_may_be_one() -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, 4, heads=2, projections="key_value").double()
    q, k = project(layer.lin_query, x, 2), project(layer.lin_key, x, 2)
    assert layer.lin_value is None
    expected = attention(lambda r, s, _: (q[r] * k[s]).sum(-1) / 2, lambda r, s, _: k[s])
    in_both_layouts(layer, expected.flatten(1), x)


@pytest.mark.parametrize("kind", ["general", "concat"])
def test_luong(kind: str) -> None:
    """Luong et al. 2015, eq. 8: h_tᵀ W_a h_s, v_a·tanh(W_a [h_t; h_s])."""
    torch.manual_seed(0)
    x, _ = inputs(6)
    score = {
        "general": lambda: BilinearScore(1, 6),
        "concat": lambda: AdditiveScore(1, 4),
    }[kind]()
    raw = kind != "concat"
    layer = EdgeAttention(6, 6 if raw else 4, projections="none" if raw else "separate", bias=False, score=score)
    layer = layer.double()
    if kind == "general":
        W = torch.randn(6, 6, dtype=torch.float64)
        with torch.no_grad():
            score.weight.copy_(W)
    if kind == "concat":
        W_a = torch.cat([layer.lin_query.weight, layer.lin_key.weight], 1)  # [4, 12]
        v = x @ layer.lin_value.weight.T
    ways = {
        "general": lambda r, s, _: (x[r] @ W @ x[s])[None],
        "concat": lambda r, s, _: (score.vector[0] @ (W_a @ torch.cat([x[r], x[s]])).tanh())[None],
    }
    expected = attention(ways[kind], lambda r, s, _: (x if raw else v)[s][None])
    in_both_layouts(layer, expected.flatten(1), x)


def test_general_starts_as_the_scaled_dot_product() -> None:
    query, key = torch.randn(2, 10, 3, 4)
    torch.testing.assert_close(BilinearScore(3, 4)(query, key), (query * key).sum(-1) / 2)
