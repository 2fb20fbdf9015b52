"""Weights into a receiver: one equation, on the edges of a list and on buckets of pairs; blends of edge features."""

import pytest
import torch
from torch import Tensor, nn

from gtx.attention import DistanceAdjacencyBlend, GatedSoftmax, Hardmax, Normaliser, Softmax
from gtx.attention.normalisers import CompleteGraphAggregator, EdgeListAggregator
from gtx.nn import EdgeAttention
from tests.attention.by_hand import by_equation, in_both_layouts, inputs, matrix_features, scaled_dot


def one_receiver(normaliser: Normaliser, score: Tensor) -> Tensor:
    """The weights of the edges `[E, H]` into a single receiver."""
    return normaliser(score, None, EdgeListAggregator(torch.zeros(len(score), dtype=torch.long), 1))


def test_large_scores_do_not_overflow() -> None:
    score = torch.tensor([[1e4], [1e4 - 1]])
    torch.testing.assert_close(one_receiver(Softmax(), score), torch.tensor([[1.0], [0.0]]).softmax(0))
    pairs = Softmax()(
        score.view(1, 1, 2, 1), None, CompleteGraphAggregator(torch.zeros(1, 1, 2, 1, dtype=torch.bool), True)
    )
    torch.testing.assert_close(pairs.view(2, 1), torch.tensor([[1.0], [0.0]]).softmax(0))


def test_temperature_divides_the_scores_and_has_both_limits() -> None:
    score = torch.randn(6, 3, dtype=torch.float64)
    torch.testing.assert_close(one_receiver(Softmax(0.7), score), (score / 0.7).softmax(0), atol=1e-14, rtol=0)
    hard = one_receiver(Hardmax(), score)
    torch.testing.assert_close(one_receiver(Softmax(1e-4), score), hard, atol=1e-10, rtol=0)
    torch.testing.assert_close(one_receiver(Softmax(1e9), score), torch.full_like(score, 1 / 6), atol=1e-8, rtol=0)
    for wrong in (0.0, -1.0):
        with pytest.raises(ValueError, match=f"temperature above 0 .*Hardmax.*, got {wrong}"):
            Softmax(wrong)


def test_hardmax_shares_among_the_largest_alone() -> None:
    score = torch.tensor([[1.0, -2.0], [3.0, -1.0], [3.0, -7.0], [0.0, -1.0], [3.0, -1.0]])
    expected = torch.tensor([[0, 0], [1 / 3, 1 / 3], [1 / 3, 0], [0, 1 / 3], [1 / 3, 1 / 3]])
    torch.testing.assert_close(one_receiver(Hardmax(), score), expected)


def test_hardmax_goes_backward_as_the_softmax() -> None:
    """Straight-through: the gradient is Σ w_s (g_s - Σ w g), with the softmax's w."""
    score = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    given, w = torch.randn(6, 3, dtype=torch.float64), score.detach().softmax(0)
    (grad,) = torch.autograd.grad((one_receiver(Hardmax(), score) * given).sum(), score)
    torch.testing.assert_close(grad, w * (given - (w * given).sum(0)), atol=1e-12, rtol=0)


# --- Edge features within the weights: MAT's blend, written out.


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
    in_both_layouts(layer, by_equation(layer, x, scaled_dot, weigh=blend(weights, e, kernel)), x, e)


def test_what_does_not_fit_is_named() -> None:
    score, into = torch.zeros(1, 1), EdgeListAggregator(torch.zeros(1, dtype=torch.long), 1)
    with pytest.raises(ValueError, match=r"\[distance, adjacency, known\], 3 channels, got None"):
        DistanceAdjacencyBlend()(score, None, into)
    with pytest.raises(ValueError, match="3 channels, got 5 channels"):
        DistanceAdjacencyBlend()(score, torch.zeros(1, 5), into)
    with pytest.raises(ValueError, match=r"needs edge features: expected \[E, edge_dim\], got None"):
        GatedSoftmax(1, 5)(score, None, into)
    with pytest.raises(TypeError, match="Normaliser does not say how to weigh scores"):
        Normaliser()(score, None, into)
    with pytest.raises(ValueError, match="kernel softmax or exp, got cosine"):
        DistanceAdjacencyBlend(kernel="cosine")
    with pytest.raises(ValueError, match=r"three weights, above 0 if learned, got \[1.0, 0.0, 0.0\]"):
        DistanceAdjacencyBlend((1.0, 0.0, 0.0), learned=True)
    with pytest.raises(ValueError, match=r"three weights, above 0 if learned, got \[0.5, 0.5\]"):
        DistanceAdjacencyBlend((0.5, 0.5))
    assert isinstance(DistanceAdjacencyBlend(), nn.Module) and not list(DistanceAdjacencyBlend().parameters())
