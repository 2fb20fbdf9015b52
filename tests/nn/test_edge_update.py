"""Edge states are updated by residuals; a degree scaler starts as nothing."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from gtx.nn import EdgeStateUpdate, LearnedDegreeScaling

K, S = 5, 6


@pytest.mark.parametrize("hidden", [0, 7])
@pytest.mark.parametrize("norm_first", [True, False])
def test_is_the_equation_in_its_docstring(hidden: int, norm_first: bool) -> None:
    torch.manual_seed(0)
    update = EdgeStateUpdate(K, S, hidden, norm_first=norm_first).double()
    e, states = torch.randn(9, K, dtype=torch.float64), torch.randn(9, S, dtype=torch.float64)

    def norm(x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, (K,))  # as the norms start

    expected = e + states @ update.lin_state.weight.T + update.lin_state.bias
    if norm_first:
        expected = expected + update.mlp(norm(expected)) if hidden else expected
    else:
        expected = norm(expected)
        expected = norm(expected + update.mlp(expected)) if hidden else expected
    torch.testing.assert_close(update(e, states), expected, atol=1e-12, rtol=0)


def test_dropout_acts_in_training_only() -> None:
    update = EdgeStateUpdate(K, S, 7, dropout=0.5)
    e, states = torch.randn(9, K), torch.randn(9, S)
    assert not torch.equal(update(e, states), update(e, states))
    update.eval()
    assert torch.equal(update(e, states), update(e, states))


def test_degree_scaler() -> None:
    """v θ_1 + log(1 + deg) v θ_2, started at θ = (1, 0)."""
    scaler = LearnedDegreeScaling(3).double()
    x, degree = torch.randn(4, 3, dtype=torch.float64), torch.tensor([0.0, 1.0, 2.0, 4.0])
    assert torch.equal(scaler(x, degree), x)
    one, two = torch.tensor([1.0, -2.0, 0.5]).double(), torch.tensor([0.25, 3.0, -1.0]).double()
    with torch.no_grad():
        scaler.weight.copy_(torch.stack([one, two]))
    for i, d in enumerate(degree.double()):
        torch.testing.assert_close(scaler(x, degree)[i], x[i] * one + torch.log(1 + d) * x[i] * two)
    assert repr(scaler) == "LearnedDegreeScaling(3)"
