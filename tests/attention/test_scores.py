"""A score is its equation; a matrix form beside it gives the same."""

from __future__ import annotations

import pytest
import torch

from gtx.attention import ScaledDot, Score


@pytest.mark.parametrize("score", [ScaledDot(), ScaledDot(1.0), ScaledDot(0.3)], ids=repr)
def test_matrix_form_equals_the_equation(score: Score) -> None:
    query, key = torch.randn(2, 5, 3, 4, dtype=torch.float64), torch.randn(2, 6, 3, 4, dtype=torch.float64)
    pairs = score(query[:, :, None], key[:, None])  # [2, 5, 6, 3]
    matrix = torch.einsum("bnhc,bmhc->bnmh", score.prepare(query), key)
    torch.testing.assert_close(matrix, pairs, atol=1e-12, rtol=0)


def test_scaled_dot_keeps_the_variance_at_one() -> None:
    """The reason for the scale: dot products of d_k independent entries have variance d_k."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 20_000, 1, 64)
    assert abs(float(ScaledDot()(query, key).var()) - 1.0) < 0.05
    assert abs(float(ScaledDot(1.0)(query, key).var()) - 64.0) < 3.0


def test_a_score_must_say_how() -> None:
    with pytest.raises(TypeError, match="Score does not say how to score"):
        Score()(torch.zeros(1, 1), torch.zeros(1, 1))
    with pytest.raises(TypeError, match="not bilinear"):
        Score().prepare(torch.zeros(1, 1))
