"""The learning curve of a kernel: laws that are known, and errors that leaving out each molecule gives too."""

import pytest
import torch

from gtx.kernel import LearningCurve
from gtx.kernel.regression import FEWEST, measure_learning_curve
from gtx.kernel.ridge import leave_one_out

GENERATOR = torch.Generator().manual_seed(0)


def points(n: int, width: float = 0.3) -> tuple[torch.Tensor, torch.Tensor]:
    """A Gaussian kernel between points of a line, and a smooth function of them."""
    x = torch.rand(n, generator=GENERATOR, dtype=torch.float64) * 10
    return torch.exp(-((x[:, None] - x) ** 2) / (2 * width**2)), torch.sin(3 * x)


def test_a_power_law_is_recovered_and_an_error_that_does_not_fall_stays() -> None:
    law = LearningCurve((100, 200, 400), tuple(2.0 * n**-0.3 for n in (100, 200, 400)))
    assert law.exponent == pytest.approx(0.3)
    assert law.errors[-1] * law.ratio(1600) == pytest.approx(2.0 * 1600**-0.3)
    flat = LearningCurve((100, 200, 400), (0.5, 0.52, 0.51))
    assert flat.exponent == 0
    assert flat.ratio(1600) == 1


def test_the_closed_form_is_a_solution_without_each_molecule() -> None:
    kernel, y = points(12)
    for i, error in enumerate(leave_one_out(kernel, (y - y.mean())[:, None], 0.1)[1][:, 0]):
        others = torch.arange(12) != i
        inner = kernel[others][:, others] + 0.1 * torch.eye(11, dtype=torch.float64)
        # the mean is that of all molecules, as in gtx.kernel.solve_kernel_ridge
        predicted = y.mean() + kernel[i, others] @ torch.linalg.solve(inner, y[others] - y.mean())
        assert error == pytest.approx(float(y[i] - predicted))


def test_more_molecules_help_a_smooth_function_and_not_a_noise() -> None:
    kernel, y = points(400)
    smooth = measure_learning_curve(kernel, y, 0.01)
    assert smooth is not None
    assert smooth.rows == (100, 200, 400)
    assert smooth.errors[0] > 2 * smooth.errors[-1]
    noise = measure_learning_curve(kernel, torch.randn(400, generator=GENERATOR, dtype=torch.float64), 10.0)
    assert noise is not None
    assert noise.ratio(800) > 0.95


def test_repeated_measurements_do_not_predict_one_another() -> None:
    kernel, y = points(150)
    twice = torch.arange(150).repeat(2)
    once, repeated = (
        measure_learning_curve(kernel, y, 0.1),
        measure_learning_curve(kernel[twice][:, twice], y[twice], 0.1),
    )
    assert once == repeated


def test_a_few_molecules_have_no_curve() -> None:
    assert measure_learning_curve(*points(FEWEST - 1), 0.1) is None
    twice = torch.arange(FEWEST - 1).repeat(2)
    kernel, y = points(FEWEST - 1)
    assert measure_learning_curve(kernel[twice][:, twice], y[twice], 0.1) is None
    assert measure_learning_curve(points(FEWEST)[0], torch.ones(FEWEST, dtype=torch.float64), 0.1) is None  # no error
