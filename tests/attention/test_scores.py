"""A score is its equation, and a state behind it explains it; scores become weights, and heads one vector."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from gtx.attention import (
    ClippedDotScore,
    DistanceAdjacencyBlend,
    EdgeModulatedDotScore,
    GatedSoftmax,
    GRITScore,
    Hardmax,
    LearnedSumOverHeads,
    LinearHeadMerge,
    MaxOverHeads,
    Normaliser,
    Score,
    Softmax,
)
from gtx.attention.normalisers import CompleteGraphAggregator, EdgeListAggregator
from gtx.attention.scores import signed_root
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, by_equation, close, in_both_layouts, inputs, matrix_features, scaled_dot
from tests.attention.family import CASES, make

H, C, K = 3, 4, 5
EVERY = pytest.mark.parametrize("name", [name for name in CASES if name != "derived weigh"])  # says it in two ways


@EVERY
def test_the_score_is_what_its_state_weighs(name: str) -> None:
    """Queries `[b, r, H, C]`, keys `[b, s, H, C]`, pair features `[b, r, s, K]`: all lengths unlike."""
    layer = make(name)
    shapes = (2, 6, 1, H, layer.key_channels), (2, 1, 7, H, layer.key_channels), (2, 6, 7, layer.edge_dim or K)
    query, key, edge = (torch.randn(shape, dtype=torch.float64) for shape in shapes)
    state = layer.score.state(query, key, edge)
    assert state.shape == (2, 6, 7, H, layer.score.state_channels)
    torch.testing.assert_close(layer.score.weigh(state), layer.score(query, key, edge), atol=0, rtol=0)


@EVERY
def test_new_weights_are_drawn(name: str) -> None:
    score = make(name).score
    before = {key: value.clone() for key, value in score.state_dict().items()}
    score.reset_parameters()
    assert not any(torch.equal(before[key], value) for key, value in score.state_dict().items())


def test_the_signed_root_has_a_finite_slope_at_zero() -> None:
    """Its equation is that of GRIT in `test_equations.py`."""
    zero = torch.zeros(1, requires_grad=True)
    assert torch.autograd.grad(signed_root(zero), zero)[0].isfinite().all()


@pytest.mark.parametrize("clip", [0.0, -5.0, float("nan")])
def test_a_clip_that_makes_all_scores_the_same_is_refused(clip: float) -> None:
    for kind in (partial(ClippedDotScore, H, K), partial(GRITScore, H, C, K), partial(EdgeModulatedDotScore, H, C, K)):
        with pytest.raises(ValueError, match=f"expected a bound of the score above 0, got clip={clip}"):
            kind(clip=clip)


def test_a_subclass_whose_equation_nobody_would_call_is_refused() -> None:
    with pytest.raises(TypeError, match="Silent overrides forward, but inherits state and weigh"):

        class Silent(GRITScore):
            def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
                return (query * key).sum(-1)


def test_a_score_must_say_how() -> None:
    with pytest.raises(TypeError, match="Score does not say how to score: expected forward, or prepare if bilinear"):
        Score()(torch.zeros(1, 1), torch.zeros(1, 1))


# --- Weights into a receiver: one equation, on the edges of a list and on buckets of pairs.


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


def test_normalisers_that_do_not_fit_are_named() -> None:
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


# --- How heads become one vector.


def heads_of(layer: EdgeAttention, x: Tensor) -> Tensor:
    """What the heads of a layer collect, `[N, H, C]`."""
    return by_equation(layer, x, scaled_dot).view(len(x), H, C)


def test_one_weight_tensor_is_concatenation_and_output_weights() -> None:
    """Row (h, j) of W_o is w[j, h]."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, C, H, merge=LinearHeadMerge(H, C, 5)).double()
    w = layer.merge.weight  # [j, h, l]
    W_o = torch.stack([w[j, h] for h in range(H) for j in range(C)])  # [H * D, l]
    beside = torch.cat(list(heads_of(layer, x).unbind(1)), -1)
    assert layer.width == 5
    in_both_layouts(layer, beside @ W_o, x)


def test_the_largest_of_the_heads() -> None:
    """Heads side by side and their mean are those of GAT in `test_equations.py`."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, C, H, merge=MaxOverHeads()).double()
    assert layer.width == C
    in_both_layouts(layer, heads_of(layer, x).amax(1), x)


def test_weighted_heads_start_at_the_mean_and_learn() -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, C, H, merge=LearnedSumOverHeads(H)).double()
    heads = heads_of(layer, x)
    close(layer(x, GRAPH), heads.mean(1), 1e-6)
    with torch.no_grad():
        layer.merge.weight.copy_(torch.tensor([0.25, -1.0, 3.0]))
    in_both_layouts(layer, 0.25 * heads[:, 0] - heads[:, 1] + 3.0 * heads[:, 2], x)
    layer.reset_parameters()
    assert layer.merge.weight.eq(1 / 3).all()


def test_a_merge_takes_the_place_of_concat_and_project() -> None:
    layer = EdgeAttention(6, C, H, project=True, merge=MaxOverHeads())
    assert layer.lin_out is None and layer.width == C
    assert [repr(m) for m in (MaxOverHeads(), LinearHeadMerge(2, 3, 4))] == ["MaxOverHeads()", "LinearHeadMerge()"]
