"""Learning curve of a kernel model in closed form: its error with fewer training rows, extrapolated to more."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from gtx.kernel.regression import KernelRidge

DIVISORS = (4, 2, 1)
"""The curve is measured with a quarter, a half and all of the rows."""
DRAWS = 2
"""How often the rows are divided at random into halves and quarters."""
FEWEST = 100
"""Fewest molecules whose learning curve is measured."""
_SAME = 1 - 1e-9


class LearningCurve(NamedTuple):
    r"""Leave-one-out error of a kernel model by number of training molecules, as a power law through its ends.

    \[ e(m) = e(n) \Bigl(\frac mn\Bigr)^{-b}, \qquad b = \max\Bigl(0, \log_4 \frac{e(n/4)}{e(n)}\Bigr) \]

    Attributes:
        rows: numbers of molecules, ascending; the last is n.
        errors: root mean square errors with as many.
    """

    rows: tuple[int, ...]
    errors: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The exponent b; 0 if more molecules do not lower the error."""
        if not 0 < self.errors[-1] < self.errors[0]:
            return 0.0
        return math.log(self.errors[0] / self.errors[-1]) / math.log(self.rows[-1] / self.rows[0])

    def ratio(self, rows: float) -> float:
        """Extrapolate the error with a number of molecules, as a ratio to the error with all n."""
        return (rows / self.rows[-1]) ** -self.exponent


def leave_one_out_errors(kernel: Tensor, y: Tensor, ridge: float) -> Tensor:
    r"""Compute the error of each molecule's prediction by all others, float64 `[n]`, from K `[n, n]` and y `[n]`.

    \[ y_i - \hat y_i^{(-i)} = \frac{[(K + \lambda I)^{-1} (y - \bar y)]_i}{[(K + \lambda I)^{-1}]_{ii}} \]
    """
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(kernel + ridge * torch.eye(len(y), dtype=y.dtype)))
    return (inverse @ (y - y.mean())) / inverse.diagonal()


def measure_learning_curve(kernel: Tensor, y: Tensor, ridge: float) -> LearningCurve | None:
    """Measure the learning curve of a kernel `[n, n]` and values `[n]`, by leaving out one molecule of each sample.

    The rows are divided at random into halves and into quarters. Of molecules that the kernel cannot distinguish, such
    as repeated measurements, only the first takes part, because the others would predict it. None for fewer than
    `FEWEST` molecules, or without an error.
    """
    first = (kernel > _SAME).int().argmax(1) == torch.arange(len(y))
    kernel, y = kernel[first][:, first], y[first]
    if (n := len(y)) < FEWEST:
        return None
    generator = torch.Generator().manual_seed(0)
    errors = []
    for divisor in DIVISORS:
        squares = [
            leave_one_out_errors(kernel[rows][:, rows], y[rows], ridge).square()
            for _ in range(1 if divisor == 1 else DRAWS)
            for rows in torch.randperm(n, generator=generator).tensor_split(divisor)
        ]
        errors.append(float(torch.cat(squares).mean().sqrt()))
    return LearningCurve(tuple(n // divisor for divisor in DIVISORS), tuple(errors)) if min(errors) > 0 else None


def measure_learning_curves(model: KernelRidge) -> list[LearningCurve | None]:
    """Measure the learning curve of each output of a fitted kernel model, whose references are its training molecules.

    The errors are in units of the outputs; None for an output with too few molecules.
    """
    if len(model.row) < FEWEST:
        return [None] * len(model.ridge)
    kernel, values = model.gram().cpu(), model.values().cpu()
    known = ~values.isnan()
    return [
        measure_learning_curve(kernel[rows][:, rows], column[rows], float(ridge))
        for column, rows, ridge in zip(values.T, known.T, model.ridge, strict=True)
    ]
