"""The closed form is what refitting gives."""

import pytest
import torch

import gtx.kernel.ridge
from gtx.kernel import LearningCurve
from gtx.kernel.regression import FEWEST, measure_learning_curve
from gtx.kernel.ridge import RIDGES, cost, leave_one_out, rows_of_equal_cost, solve_kernel_ridge


def problem(n: int = 40, columns: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.rand(n, 3, dtype=torch.float64)
    kernel = torch.exp(-torch.cdist(x, x).square())
    y = torch.stack([x[:, 0] + 0.1 * torch.randn(n), x[:, 1].sin() + 0.2 * torch.randn(n)], 1)[:, :columns].double()
    return kernel, y


def test_each_row_is_predicted_as_if_it_were_left_out() -> None:
    kernel, y = problem()
    found = solve_kernel_ridge(kernel, torch.arange(40), y)
    for i in (0, 7, 39):
        rest = torch.arange(40) != i
        for column in range(2):
            inverse = torch.linalg.inv(kernel[rest][:, rest] + found.ridge[column] * torch.eye(39))
            refitted = found.centre[column] + kernel[i, rest] @ inverse @ (y[rest, column] - found.centre[column])
            assert found.left_out[i, column] == pytest.approx(float(refitted), rel=1e-6)
    for column in range(2):
        errors = leave_one_out(kernel, y - found.centre, found.ridge[column])[1]
        torch.testing.assert_close(y[:, column] - errors[:, column], found.left_out[:, column])


def test_the_ridge_is_the_one_that_predicts_left_out_rows_best() -> None:
    kernel, y = problem(columns=1)
    errors = []
    for ridge in RIDGES:
        inverse = torch.linalg.inv(kernel + ridge * torch.eye(40))
        errors.append(float((inverse @ (y - y.mean()) / inverse.diag()[:, None]).square().mean()))
    assert solve_kernel_ridge(kernel, torch.arange(40), y).ridge[0] == RIDGES[torch.tensor(errors).argmin()]


def test_blanks_are_as_rows_that_are_not_there() -> None:
    kernel, y = problem()
    y[::3, 1] = torch.nan
    found, rows = solve_kernel_ridge(kernel, torch.arange(40), y), (~y[:, 1].isnan()).nonzero().flatten()
    alone = solve_kernel_ridge(kernel[rows][:, rows], torch.arange(len(rows)), y[rows, 1:])
    assert rows_of_equal_cost(1000, y) == int(1000 / 2 ** (1 / 3)) and cost(y) == 40**3 + 26**3
    torch.testing.assert_close(found.dual[rows, 1], alone.dual[:, 0])
    torch.testing.assert_close(found.dual[:, 0], solve_kernel_ridge(kernel, torch.arange(40), y[:, :1]).dual[:, 0])
    assert (found.dual[::3, 1] == 0).all() and found.left_out[::3, 1].isnan().all()
    torch.testing.assert_close(found.scale[1], alone.scale[0])


def test_of_many_rows_some_choose_the_ridge_and_all_are_learned_from(monkeypatch) -> None:
    kernel, y = problem()
    y[::3, 1] = torch.nan
    monkeypatch.setattr(gtx.kernel.ridge, "MOST_SPECTRUM", 20)
    found = solve_kernel_ridge(kernel, torch.arange(40), y)
    for column in range(2):
        rows = (~y[:, column].isnan()).nonzero().flatten()
        inner = kernel[rows][:, rows] + found.ridge[column] * torch.eye(len(rows), dtype=torch.float64)
        expected = torch.linalg.solve(inner, y[rows, column] - y[rows, column].mean())
        torch.testing.assert_close(found.dual[rows, column], expected)
    assert found.left_out[::3, 1].isnan().all() and (found.dual[::3, 1] == 0).all()


def test_with_some_rows_in_place_of_all_it_leaves_out_alike() -> None:
    kernel, y = problem()
    chosen = torch.arange(0, 40, 3)
    some = solve_kernel_ridge(kernel[:, chosen], chosen, y)
    between = kernel[:, chosen] @ torch.linalg.inv(kernel[chosen][:, chosen] + 1e-9 * torch.eye(14)) @ kernel[chosen]
    rest = torch.arange(40) != 5
    inverse = torch.linalg.inv(between[rest][:, rest] + some.ridge[0] * torch.eye(39))
    refitted = some.centre[0] + between[5, rest] @ inverse @ (y[rest, 0] - some.centre[0])
    assert some.left_out[5, 0] == pytest.approx(float(refitted), rel=1e-3)
    assert ((kernel[:, chosen] @ some.dual + some.centre - y).square().mean(0) < 0.6 * y.var(0)).all()


def test_a_target_that_does_not_vary_is_its_mean() -> None:
    kernel, y = problem()
    y[:, 0] = 3.0
    found = solve_kernel_ridge(kernel, torch.arange(40), y)
    assert found.centre[0] == 3 and (found.dual[:, 0] == 0).all() and found.scale[0] == 0


# --- The learning curve of a kernel: laws that are known.


def points(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A Gaussian kernel between points of a line, and a smooth function of them."""
    x = torch.rand(n, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 10
    return torch.exp(-((x[:, None] - x) ** 2) / (2 * 0.3**2)), torch.sin(3 * x)


def test_a_power_law_is_recovered_and_an_error_that_does_not_fall_stays() -> None:
    law = LearningCurve((100, 200, 400), tuple(2.0 * n**-0.3 for n in (100, 200, 400)))
    assert law.exponent == pytest.approx(0.3)
    assert law.errors[-1] * law.ratio(1600) == pytest.approx(2.0 * 1600**-0.3)
    flat = LearningCurve((100, 200, 400), (0.5, 0.52, 0.51))
    assert flat.exponent == 0 and flat.ratio(1600) == 1


def test_more_molecules_help_a_smooth_function_and_not_a_noise() -> None:
    kernel, y = points(400)
    smooth = measure_learning_curve(kernel, y, 0.01)
    assert smooth is not None and smooth.rows == (100, 200, 400) and smooth.errors[0] > 2 * smooth.errors[-1]
    y = torch.randn(400, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    noise = measure_learning_curve(kernel, y, 10.0)
    assert noise is not None and noise.ratio(800) > 0.95


def test_repeated_measurements_do_not_predict_one_another() -> None:
    kernel, y = points(150)
    twice = torch.arange(150).repeat(2)
    repeated = measure_learning_curve(kernel[twice][:, twice], y[twice], 0.1)
    assert repeated == measure_learning_curve(kernel, y, 0.1) is not None


def test_a_few_molecules_have_no_curve() -> None:
    assert measure_learning_curve(*points(FEWEST - 1), 0.1) is None
    twice, (kernel, y) = torch.arange(FEWEST - 1).repeat(2), points(FEWEST - 1)
    assert measure_learning_curve(kernel[twice][:, twice], y[twice], 0.1) is None
    assert measure_learning_curve(points(FEWEST)[0], torch.ones(FEWEST, dtype=torch.float64), 0.1) is None  # no error
