"""A score is its equation, and a state behind it explains it; heads become one vector."""

from functools import partial

import pytest
import torch
from torch import Tensor

from gtx.attention import (
    ClippedDotScore,
    EdgeModulatedDotScore,
    GRITScore,
    LearnedSumOverHeads,
    LinearHeadMerge,
    MaxOverHeads,
    Score,
)
from gtx.attention.scores import signed_root
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, by_equation, close, in_both_layouts, inputs, scaled_dot
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
