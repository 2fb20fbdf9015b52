"""Bounds: what was censored is found by what is known of it, and scores are of exact values."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.stats import norm

from gtx.base.errors import InputError
from gtx.data import Row, RowLog
from gtx.data.rows import InputFile
from gtx.tasks import Regression
from gtx.tasks.closed_form import fit_closed_form, why_no_closed_form
from gtx.tasks.columns import parse_bound
from gtx.tasks.metrics import censored_spread, censored_squares, with_bounds
from gtx.tasks.numeric import add_bound_scores
from tests.molecules_for_tests import store

TASK = Regression("y", censored=True)


def censored(y: np.ndarray, above: float, below: float) -> SimpleNamespace:
    """Values of which nothing is known beyond two bounds but that they are there."""
    value = torch.from_numpy(y)[:, None]
    bounds = torch.cat([torch.where(value > above, above, torch.nan), torch.where(value < below, below, torch.nan)], 1)
    return SimpleNamespace(y=value.masked_fill((value > above) | (value < below), torch.nan), bounds=bounds)


def found_mean(task: Regression, examples: SimpleNamespace) -> float:
    """The one output for all rows that has the least loss."""
    output = torch.zeros((), dtype=torch.float64, requires_grad=True)
    search = torch.optim.Adam([output], lr=0.05)
    for _ in range(150):
        search.zero_grad()
        task.objective.mean_loss(output.expand(len(examples.y), 1), examples).backward()
        search.step()
    return output.item()


def test_the_mean_of_what_was_censored_is_recovered() -> None:
    y = np.random.default_rng(0).normal(0.6, 1.8, 2000)
    examples = censored(y, above=1.0, below=-4.0)
    values, _ = with_bounds(examples.y, examples.bounds)
    allowed = replace(TASK, loss=lambda output, target: (output - target).square())  # no cost where a bound allows it
    assert float(examples.y.nanmean()) < -0.5 and float(values.mean()) < 0.1 and found_mean(allowed, examples) < 0.1
    assert found_mean(TASK, examples) == pytest.approx(y.mean(), abs=0.05)


def test_the_spread_is_found_with_it() -> None:
    y = np.random.default_rng(1).normal(0.0, 1.7, 5000)
    examples = censored(y, above=1.0, below=-9)
    value, side = with_bounds(examples.y, examples.bounds)
    say = torch.ones_like(value)
    assert censored_spread(-value, side, say).item() == pytest.approx(1.7, abs=0.08)
    exact = value[side == 0][:, None]
    plain = censored_spread(-exact, torch.zeros_like(exact), torch.ones_like(exact))
    assert plain.item() == pytest.approx(exact.square().mean().sqrt().item())
    assert censored_spread(-value, torch.ones_like(value), say).item() == 1  # no exact value says how large it is


def test_the_loss_is_that_of_the_likelihood_and_of_bounds_alone_where_the_spread_is_small() -> None:
    output = torch.tensor([[0.3], [0.1], [-2.0], [4.0]], dtype=torch.float64)
    value = torch.tensor([[1.0], [0.0], [1.0], [1.0]], dtype=torch.float64)
    side, say = torch.tensor([[0.0], [0.0], [1.0], [-1.0]]).double(), torch.ones(4, 1).double()
    spread = censored_spread(output - value, side, say).item()
    loss = censored_squares(output, value, side, say).flatten().tolist()
    expected = [0.49, 0.01, *(-2 * spread**2 * norm.logcdf(-3.0 / spread) for _ in range(2))]
    assert loss == pytest.approx(expected)
    small = censored_squares(output, value, side, torch.tensor([[1e9], [1e9], [1e-9], [1e-9]]).double())
    assert small[2:].flatten().tolist() == pytest.approx([9.0, 9.0], rel=0.25)
    allowed = censored_squares(output, value, -side, torch.tensor([[1e9], [1e9], [1e-9], [1e-9]]).double())
    assert allowed[2:].abs().max() < 1e-6


@pytest.mark.parametrize("loss", ["mae", "huber", lambda o, t: (o - t).abs() ** 3])
def test_other_losses_cost_nothing_where_a_bound_allows_it(loss: object) -> None:
    task = replace(TASK, loss=loss)
    output = torch.tensor([[2.0], [0.5], [9.0], [0.0]], requires_grad=True)
    y = torch.tensor([[torch.nan], [torch.nan], [1.0], [torch.nan]])
    bounds = torch.tensor([[1.0, torch.nan], [1.0, torch.nan], [torch.nan, torch.nan], [torch.nan, torch.nan]])
    found = task.objective.mean_loss(output, SimpleNamespace(y=y, bounds=bounds))
    each = task.objective.elementwise(torch.tensor([[0.5], [9.0]]), torch.tensor([[1.0], [1.0]])).sum() / 3
    torch.testing.assert_close(found.detach(), each)
    (gradient,) = torch.autograd.grad(found, output)
    assert gradient[0] == 0 and gradient[3] == 0 and gradient[1] < 0 < gradient[2]


def test_a_bound_is_a_sign_and_a_number() -> None:
    bounds = {">5": (1, 5.0), " <= 0.1 ": (-1, 0.1), ">= -2e3": (1, -2000.0), "≤4": (-1, 4.0), "<0": (-1, 0.0)}
    for cell in (*bounds, "5", ">", "> n/a", ">many", "5<", "", ">1e40"):
        assert parse_bound(cell) == bounds.get(cell), cell


def test_cells_become_values_and_bounds_or_errors_that_name_the_option() -> None:
    rows = [Row(i + 1, ["C", cell], "C") for i, cell in enumerate(["1.5", "> 5", "", "<0.1", ">x"])]
    row_log = RowLog()
    y, bounds, *_ = TASK.columns.parse(rows, ["smiles", "y"], row_log)
    np.testing.assert_array_equal(y[:, 0], [1.5, *[np.nan] * 4])
    np.testing.assert_array_equal(bounds, [[np.nan] * 2, [5, np.nan], [np.nan] * 2, [np.nan, 0.1], [np.nan] * 2])
    assert list(row_log.errors) == [5] and TASK.columns.parse([], ["smiles", "y"], row_log).bounds.shape == (0, 2)
    plain, row_log = Regression("y"), RowLog()
    assert plain.columns.parse(rows, ["smiles", "y"], row_log).bounds is None
    assert sorted(row_log.errors) == [2, 4, 5]
    assert row_log.errors[2] == (
        'row 2, column "y", value "> 5": is a bound, not a number; --censored learns from bounds too'
    )
    file = InputFile("t.csv", ["smiles", "y"], "smiles", [rows[1], rows[3]], RowLog(), 0)
    with pytest.raises(InputError, match=r"holds no value: '> 5' is a bound, .*--censored"):
        plain.infer_from_table([file])


def test_scores_are_of_exact_values_and_bounds_are_told_apart() -> None:
    y = np.array([[1.0], [np.nan], [np.nan], [np.nan]])
    bounds = np.array([[np.nan, np.nan], [5, np.nan], [np.nan, 2], [np.nan, np.nan]])
    prediction = np.array([[1.5], [6.0], [3.0], [0.0]])
    found = add_bound_scores(TASK.objective.evaluate(y, prediction), TASK.targets, bounds, prediction)
    assert found["mae"] == 0.5
    expected = {"rmse": 0.5, "mae": 0.5, "r2": None, "bounds": 2, "bounds_kept": 0.5}
    assert found["per_target"]["y"] == expected
    alone = add_bound_scores(TASK.objective.evaluate(y[:1], prediction[:1]), TASK.targets, bounds[:1], prediction[:1])
    assert "bounds" not in alone["per_target"]["y"]


def test_the_scale_takes_a_bound_for_what_is_beyond_it_and_no_closed_form_does() -> None:
    molecules = store(["C", "CC", "CCC", "CCCC"]).with_targets(torch.tensor([[1.0], [3.0], [torch.nan], [torch.nan]]))
    bounds = torch.tensor([[torch.nan] * 2, [torch.nan] * 2, [8.0, torch.nan], [torch.nan] * 2]).double()
    molecules = replace(molecules, bounds=bounds)
    task = replace(TASK, element_reference=False).fit(molecules)
    assert task.scaler.mean.item() == 4
    examples = task.objective.examples(molecules)
    assert examples.bounds[2, 0].item() == pytest.approx((8 - 4) / task.scaler.sd.item(), rel=1e-6)
    assert len(task.drop_blanks(molecules)) == 3
    with pytest.raises(InputError, match="a closed form supports no bounds"):
        fit_closed_form(None, task, molecules)
    assert why_no_closed_form(task, replace(molecules, bounds=None)) is None
