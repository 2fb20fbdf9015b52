"""Edge features within the weights: MAT's blend, written out."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from gtx.attention import DistanceAdjacencyBlend, GatedSoftmax
from gtx.attention.receivers import EdgeListAggregator
from gtx.nn import EdgeAttention
from tests.attention.by_hand import attention, in_both_layouts, inputs, matrix_features, project


def blend(weights: Tensor, e: Tensor, kernel: str) -> object:
    """MAT's weights of one receiver: λ_a softmax(s) + λ_d g(D) + λ_g A."""

    def weigh(scores: Tensor, pairs: list[int]) -> Tensor:
        distance, bonded, known = e[pairs].unbind(-1)
        near = (-distance).exp() * known
        if kernel == "softmax":
            near = near / near.sum().clamp(min=1e-300)
        return weights[0] * scores.exp() / scores.exp().sum(0) + (weights[1] * near + weights[2] * bonded)[:, None]

    return weigh


@pytest.mark.parametrize("kernel", ["softmax", "exp"])
@pytest.mark.parametrize("learned", [False, True], ids=["fixed", "learned"])
def test_mat_blends_attention_distance_and_adjacency(kernel: str, learned: bool) -> None:
    """Maziarka et al. 2020, eq. 2: (λ_a ρ(QKᵀ/√d_k) + λ_d g(D) + λ_g A) V; one molecule has no known distances."""
    x, _ = inputs(6)
    e = matrix_features()
    lambdas = (0.5, 0.375, 0.125)
    layer = EdgeAttention(
        6, 4, 2, edge_dim=3, edge_bias=False, normaliser=DistanceAdjacencyBlend(lambdas, learned, kernel), project=True
    ).double()
    torch.testing.assert_close(layer.normaliser.weights.detach(), torch.tensor(lambdas, dtype=torch.float64))
    if learned:
        with torch.no_grad():
            layer.normaliser.logits.copy_(torch.tensor([0.3, -1.0, 2.0]))
        weights = layer.normaliser.logits.exp() / layer.normaliser.logits.exp().sum()
    else:
        weights = torch.tensor(lambdas, dtype=torch.float64)
    q, k, v = (project(linear, x, 2) for linear in (layer.lin_query, layer.lin_key, layer.lin_value))
    summed = attention(lambda r, s, _: (q[r] * k[s]).sum(-1) / 2, lambda r, s, _: v[s], blend(weights, e, kernel))
    in_both_layouts(layer, summed.flatten(1) @ layer.lin_out.weight.T + layer.lin_out.bias, x, e)


def test_what_does_not_fit_is_named() -> None:
    score, into = torch.zeros(1, 1), EdgeListAggregator(torch.zeros(1, dtype=torch.long), 1)
    with pytest.raises(ValueError, match=r"\[distance, adjacency, known\], 3 channels, got None"):
        DistanceAdjacencyBlend()(score, None, into)
    with pytest.raises(ValueError, match="3 channels, got 5 channels"):
        DistanceAdjacencyBlend()(score, torch.zeros(1, 5), into)
    with pytest.raises(ValueError, match=r"needs edge features: expected \[E, edge_dim\], got None"):
        GatedSoftmax(1, 5)(score, None, into)
    with pytest.raises(ValueError, match="kernel softmax or exp, got cosine"):
        DistanceAdjacencyBlend(kernel="cosine")
    with pytest.raises(ValueError, match=r"three weights, above 0 if learned, got \[1.0, 0.0, 0.0\]"):
        DistanceAdjacencyBlend((1.0, 0.0, 0.0), learned=True)
    with pytest.raises(ValueError, match=r"three weights, above 0 if learned, got \[0.5, 0.5\]"):
        DistanceAdjacencyBlend((0.5, 0.5))
    assert isinstance(DistanceAdjacencyBlend(), nn.Module) and not list(DistanceAdjacencyBlend().parameters())
