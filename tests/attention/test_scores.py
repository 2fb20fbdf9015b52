"""A score is its equation; a matrix form beside it gives the same; a state behind it explains it."""

from __future__ import annotations

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
    RMATScore,
    ScaledDotScore,
    Score,
)
from gtx.attention.scores import signed_root

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


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    """Queries `[b, r, H, C]`, keys `[b, s, H, C]`, pair features `[b, r, s, K]`: all lengths unlike."""
    torch.manual_seed(1)
    shapes = (2, 6, H, C), (2, 7, H, C), (2, 6, 7, K)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


@pytest.mark.parametrize("name", SCORES)
def test_the_score_is_what_its_state_weighs(name: str) -> None:
    score, (query, key, edge) = make(name), inputs()
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


def test_a_subclass_whose_equation_nobody_would_call_is_refused() -> None:
    with pytest.raises(TypeError, match="Silent overrides forward, but inherits state and weigh"):

        class Silent(GRITScore):
            def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
                return (query * key).sum(-1)


def test_a_score_must_say_how() -> None:
    with pytest.raises(TypeError, match="Score does not say how to score"):
        Score()(torch.zeros(1, 1), torch.zeros(1, 1))
    with pytest.raises(TypeError, match="not bilinear"):
        Score().prepare(torch.zeros(1, 1))
