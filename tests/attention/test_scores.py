"""A score is its equation, and a state behind it explains it; heads become one vector."""

from functools import partial

import pytest
import torch
from torch import Tensor

from gtx.attention import (
    AdditiveScore,
    BilinearScore,
    ClippedDotScore,
    EdgeModulatedDotScore,
    GATScore,
    GATv2Score,
    GRITScore,
    LearnedSumOverHeads,
    LinearHeadMerge,
    MaxOverHeads,
    RMATScore,
    ScaledDotScore,
    Score,
)
from gtx.attention.scores import signed_root
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, attention, close, in_both_layouts, inputs, project

H, C, K = 3, 4, 5
SCORES = {
    "scaled dot": lambda: ScaledDotScore(),
    "dot": lambda: ScaledDotScore(1.0),
    "own factor": lambda: ScaledDotScore(0.3),
    "general": lambda: BilinearScore(H, C),
    "concat": lambda: AdditiveScore(H, C),
    "GAT": lambda: GATScore(H, C),
    "GATv2": lambda: GATv2Score(H, C),
    "R-MAT": lambda: RMATScore(H, C, K),
    "EGT": lambda: ClippedDotScore(H, K, 0.5),
    "GRIT": lambda: GRITScore(H, C, K),
    "Exphormer": lambda: EdgeModulatedDotScore(H, C, K, clip=2.0),
}


def make(name: str) -> Score:
    torch.manual_seed(0)
    score = SCORES[name]().double()
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.normal_()
    return score


def tensors() -> tuple[Tensor, Tensor, Tensor]:
    """Queries `[b, r, H, C]`, keys `[b, s, H, C]`, pair features `[b, r, s, K]`: all lengths unlike."""
    torch.manual_seed(1)
    shapes = (2, 6, H, C), (2, 7, H, C), (2, 6, 7, K)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


@pytest.mark.parametrize("name", SCORES)
def test_the_score_is_what_its_state_weighs(name: str) -> None:
    score, (query, key, edge) = make(name), tensors()
    query, key = query[:, :, None], key[:, None]
    state = score.state(query, key, edge)
    assert state.shape == (2, 6, 7, H, score.state_channels)
    torch.testing.assert_close(score.weigh(state), score(query, key, edge), atol=0, rtol=0)


@pytest.mark.parametrize("name", SCORES)
def test_new_weights_are_drawn(name: str) -> None:
    score = make(name)
    before = {key: value.clone() for key, value in score.state_dict().items()}
    score.reset_parameters()
    assert not any(torch.equal(before[key], value) for key, value in score.state_dict().items())


def test_the_signed_root_is_the_root_of_the_paper_with_a_finite_slope() -> None:
    """sign(x) √|x| = √ReLU(x) - √ReLU(-x), to within √ε = 0.001."""
    x = torch.linspace(-4, 4, 8001, dtype=torch.float64)
    paper = x.relu().sqrt() - (-x).relu().sqrt()
    assert (signed_root(x) - paper).abs().max() <= 1e-3
    assert torch.equal(signed_root(-x), -signed_root(x)) and signed_root(x).diff().gt(0).all()
    zero = torch.zeros(1, requires_grad=True)
    assert torch.autograd.grad(signed_root(zero), zero)[0].isfinite().all()


@pytest.mark.parametrize("clip", [0.0, -5.0, float("nan")])
def test_a_clip_that_makes_all_scores_the_same_is_refused(clip: float) -> None:
    for make in (partial(ClippedDotScore, H, K), partial(GRITScore, H, C, K), partial(EdgeModulatedDotScore, H, C, K)):
        with pytest.raises(ValueError, match=f"expected a bound of the score above 0, got clip={clip}"):
            make(clip=clip)


def test_a_subclass_whose_equation_nobody_would_call_is_refused() -> None:
    with pytest.raises(TypeError, match="Silent overrides forward, but inherits state and weigh"):

        class Silent(GRITScore):
            def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
                return (query * key).sum(-1)


def test_a_score_must_say_how() -> None:
    with pytest.raises(TypeError, match="Score does not say how to score: expected forward, or prepare if bilinear"):
        Score()(torch.zeros(1, 1), torch.zeros(1, 1))


# --- How heads become one vector.


HEADS, WIDTH = 3, 4


def heads_by_hand(layer: EdgeAttention, x: Tensor) -> Tensor:
    q, k, v = (project(linear, x, HEADS) for linear in (layer.lin_query, layer.lin_key, layer.lin_value))
    return attention(lambda r, s, _: (q[r] * k[s]).sum(-1) / WIDTH**0.5, lambda r, s, _: v[s])


def test_one_weight_tensor_is_concatenation_and_output_weights() -> None:
    """Row (h, j) of W_o is w[j, h]."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, WIDTH, HEADS, merge=LinearHeadMerge(HEADS, WIDTH, 5)).double()
    w = layer.merge.weight  # [j, h, l]
    W_o = torch.stack([w[j, h] for h in range(HEADS) for j in range(WIDTH)])  # [H * D, l]
    beside = torch.cat(list(heads_by_hand(layer, x).unbind(1)), -1)
    assert layer.width == 5
    in_both_layouts(layer, beside @ W_o, x)


@pytest.mark.parametrize(
    ("merge", "of"),
    [
        ({}, lambda heads: torch.cat([heads[:, h] for h in range(HEADS)], -1)),
        ({"concat": False}, lambda heads: (heads[:, 0] + heads[:, 1] + heads[:, 2]) / 3),
        ({"merge": MaxOverHeads()}, lambda heads: torch.maximum(torch.maximum(heads[:, 0], heads[:, 1]), heads[:, 2])),
    ],
    ids=["beside", "mean", "max"],
)
def test_merges_without_weights(merge: dict, of: object) -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, WIDTH, HEADS, **merge).double()
    expected = of(heads_by_hand(layer, x))
    assert layer.width == expected.shape[1]
    in_both_layouts(layer, expected, x)


def test_weighted_heads_start_at_the_mean_and_learn() -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, WIDTH, HEADS, merge=LearnedSumOverHeads(HEADS)).double()
    heads = heads_by_hand(layer, x)
    close(layer(x, GRAPH), heads.mean(1), 1e-6)
    with torch.no_grad():
        layer.merge.weight.copy_(torch.tensor([0.25, -1.0, 3.0]))
    in_both_layouts(layer, 0.25 * heads[:, 0] - heads[:, 1] + 3.0 * heads[:, 2], x)
    layer.reset_parameters()
    assert layer.merge.weight.eq(1 / 3).all()


def test_a_merge_takes_the_place_of_concat_and_project() -> None:
    layer = EdgeAttention(6, WIDTH, HEADS, project=True, merge=MaxOverHeads())
    assert layer.lin_out is None and layer.width == WIDTH
    assert [repr(m) for m in (MaxOverHeads(), LinearHeadMerge(2, 3, 4))] == ["MaxOverHeads()", "LinearHeadMerge()"]
