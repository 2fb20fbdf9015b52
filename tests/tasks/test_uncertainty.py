"""Methods of uncertainty, on data whose spread is known."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.tasks import BinaryClassification, MulticlassClassification, Regression
from gtx.tasks.regression import TargetScaler
from gtx.tasks.uncertainty import UNCERTAINTY_METHODS, evaluate_spread, std_factors
from tests.molecules_for_tests import store


def drawn(rows: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """A number x from 0 to 1 and y = sin 4x + (0.1 + 0.9 x) noise: what is read, the target and its true spread."""
    random = torch.Generator().manual_seed(seed)
    x = torch.rand(rows, 1, generator=random)
    spread = 0.1 + 0.9 * x
    return x, (4 * x).sin() + spread * torch.randn(rows, 1, generator=random), spread


@pytest.fixture(scope="module", params=["variance", "quantiles", "evidential"])
def learned(request) -> tuple[str, Tensor]:
    """A method and the outputs `[m, 1, W, 1]` of a small network that learned by its loss, for 4,000 new rows."""
    method = UNCERTAINTY_METHODS[request.param]()
    torch.manual_seed(0)
    x, y, _ = drawn(1_000, 0)
    network = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, method.width))
    optimiser = torch.optim.Adam(network.parameters(), 0.02)
    for _ in range(400):
        optimiser.zero_grad()
        method.loss(network(x).unflatten(1, (-1, 1)), y).mean().backward()
        optimiser.step()
    with torch.no_grad():
        return request.param, network(drawn(4000, 1)[0]).unflatten(1, (-1, 1))[:, None]


def test_the_true_mean_and_spread_are_found(learned: tuple[str, Tensor]) -> None:
    name, outputs = learned
    x, y, truth = drawn(4000, 1)
    std, _, _ = UNCERTAINTY_METHODS[name]().spread(outputs)
    assert (outputs[:, 0, 0] - (4 * x).sin()).square().mean().sqrt() < 0.12
    factor = torch.from_numpy(std_factors(y.numpy(), outputs[:, 0, 0].numpy(), std.numpy()))
    # the evidence's own size is off, see the class: validation rows correct it
    assert float(factor) == pytest.approx(1, abs=0.2 if name == "evidential" else 0.1)
    assert ((std * factor) / truth).log().square().mean().sqrt() < 0.15


def test_quantiles_are_those_at_which_an_interval_of_its_level_ends() -> None:
    wide = UNCERTAINTY_METHODS["quantiles"](0.5)
    y = torch.linspace(-1, 1, 2001)[:, None]
    for q, at in ((0.25, -0.5), (0.75, 0.5)):  # where the loss is least, shifted one at a time
        shifts = torch.linspace(0.2, 0.8, 61)
        raw = (shifts - 1e-3).expm1().log()  # of which the softplus is the shift
        half = torch.full_like(raw, 0.5 - 1e-3).expm1().log()
        down, up = (raw, half) if q < 0.5 else (half, raw)
        each = [wide.loss(torch.stack([0 * d, d, u])[None, :, None], y).mean() for d, u in zip(down, up, strict=True)]
        assert float(shifts[torch.stack(each).argmin()]) == pytest.approx(abs(at), abs=0.02)
    std, _, _ = wide.spread(torch.zeros(1, 1, 3, 1))  # a range of 2 softplus(0)
    assert float(std) == pytest.approx((np.log(2) + 1e-3) / 0.67449, rel=1e-4)
    assert UNCERTAINTY_METHODS["quantiles"](0.9).normal == pytest.approx(1.6448536269514722, rel=1e-12)
    assert Regression("y", uncertainty="quantiles", coverage=0.5).method.tail == 0.25


def test_a_factor_makes_standard_deviations_of_the_right_size() -> None:
    random = np.random.default_rng(0)
    std = random.uniform(0.5, 2, (5000, 1))
    y = 3 * std * random.standard_normal(std.shape)
    assert std_factors(y, 0 * y, std) == pytest.approx([3], rel=0.03)
    assert std_factors(y[:9], 0 * y[:9], std[:9]).tolist() == [1.0]
    assert std_factors(y, y, std).tolist() == [1.0] and std_factors(y, 0 * y, 0 * std).tolist() == [1.0]


def test_scores_are_best_where_the_spread_is_true() -> None:
    random = np.random.default_rng(0)
    std = random.uniform(0.2, 2, (4000, 1))
    y, mean = std * random.standard_normal(std.shape), np.zeros_like(std)
    y[:7] = np.nan
    true = evaluate_spread(["y"], y, mean, std, -1.645 * std, 1.645 * std)
    assert true["coverage"] == pytest.approx(0.9, abs=0.015)
    assert true["width"] == pytest.approx(3.29 * std[7:].mean())
    assert true["ence"] < 0.06 and true["miscalibration_area"] < 0.02
    assert true["spearman"] > 0.35 and true["auroc"] > 0.75
    expected = np.log(std[7:] ** 2 * 2 * np.pi).mean() / 2 + 0.5
    assert true["nll"] == pytest.approx(expected, abs=0.03)
    for wrong in (0.4 * std, 2.5 * std, std[::-1], np.full_like(std, 1.2)):
        found = evaluate_spread(["y"], y, mean, wrong, None, None)
        assert found["nll"] > true["nll"] + 0.05 and "coverage" not in found
    assert found["spearman"] is None  # of one size for all, it ranks nothing
    assert evaluate_spread(["y"], y, mean, 2.5 * std, None, None)["ence"] == pytest.approx(0.6, abs=0.02)
    assert evaluate_spread(["y"], y, mean, None, None, None) == {}


def test_members_that_disagree_add_to_what_each_says() -> None:
    output = torch.tensor([[[[1.0], [0.5]], [[3.0], [0.5]]]])  # [m, K, W, T]
    own = float(UNCERTAINTY_METHODS["variance"]().variance(output)[0, 0])
    assert float(UNCERTAINTY_METHODS["variance"]().spread(output)[0]) == pytest.approx((own + 2) ** 0.5)


def test_what_a_method_needs_is_said_before_training() -> None:
    with pytest.raises(InputError, match="learned by gradients"):
        Regression("y", uncertainty="variance").objective.check(nn.Identity())


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        (Regression, {"uncertainty": "variance", "loss": "mae"}, "loss: .* has a loss of its own"),
        (Regression, {"uncertainty": "variance", "censored": True}, "censored: .* which knows no bounds"),
        (Regression, {"uncertainty": "sure"}, "uncertainty: expected one of 'none', 'variance'"),
        (Regression, {"loss": "mape", "level": "bond"}, "loss: expected one of mse, mae, huber for bonds, got mape"),
        (Regression, {"sum_to": "inf", "level": "atom"}, "sum_to: expected a finite number, got 'inf'"),
        (Regression, {"relation_column": "y"}, "'y' is a target; it cannot have the relations too"),
        (Regression, {"targets": ["y", "z"], "relation_column": "r"}, "relation_column: expected one target, whose "),
        (Regression, {"level": "part"}, "level: expected one of molecule, atom, bond for regression, got 'part'"),
        *((Regression, {"coverage": x}, "coverage: expected a .*number.*, got") for x in (0, 1, float("nan"), "much")),
        (BinaryClassification, {"sets": True, "coverage": 1}, "coverage: expected a number above 0 and below 1, got 1"),
        (BinaryClassification, {"coverage": 0.8}, "coverage: 0.8 needs sets"),
        (BinaryClassification, {"set_kind": "adaptive"}, "set_kind: adaptive needs sets"),
        (BinaryClassification, {"classes": (("a", "b", "c"),)}, r"classes\[0\]: expected at most 2 values, got 3"),
        (MulticlassClassification, {"classes": (("a", "b"),) * 2}, "classes: expected at most 1 values, got 2"),
    ],
)
def test_options_that_contradict_are_refused(kind: type, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        kind(**{"targets": "y"} | options)


def test_a_spread_is_in_the_users_units() -> None:
    task = Regression("y", uncertainty="variance", scaler=TargetScaler.fit(torch.tensor([[1.0], [5.0]])))
    outputs = torch.randn(3, 1, 2)
    own = UNCERTAINTY_METHODS["variance"]().variance(outputs[:, 0, :, None]).sqrt()
    np.testing.assert_allclose(task.answers.decode(outputs, store(["C"] * 3)).std, 2 * own.numpy())
