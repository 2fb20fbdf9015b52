"""Fractions of a whole, which add up to 1: compositions, products of a reaction, spectra."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.settings.tasks import FractionOptions
from gtx.tasks.columns import Columns
from gtx.tasks.metrics import Metric, has_values, mean_absolute_error, root_mean_squared_error
from gtx.tasks.numeric import NumericAnswers, NumericObjective, NumericTask
from gtx.tasks.task import Task

TOLERANCE = 0.01 + 1e-9
"""Tolerance for the sum of a row's fractions, which rounding moves away from 1; fractions are divided by their sum."""
FLOOR = 1e-4
"""Least fraction that a baseline predicts; without it a wrong 0 has an infinite loss."""


def divergence(p: Tensor, y: Tensor) -> Tensor:
    r"""Compute the contribution of each fraction to the divergence: \(y \ln (y / p) - y + p\), at least 0."""
    return torch.xlogy(y, y) - torch.xlogy(y, p) - y + p


@dataclass(frozen=True)
class FractionColumns(Columns):
    """Columns of numbers of 0 or more, which add up to 1 in each row.

    Attributes:
        normalise: whether the fractions of a row are divided by their sum.
    """

    normalise: bool = False

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        numbers = super().values(target, cells)
        return np.where(numbers < 0, np.inf, numbers)

    def complaint(self, target: int, cell: str) -> str:
        return "is not a number of 0 or more, nor blank"

    def check_rows(self, y: np.ndarray) -> np.ndarray:
        total = y.sum(axis=1, keepdims=True)  # NaN where one is blank
        valid = total > 0 if self.normalise else np.abs(total - 1) <= TOLERANCE
        fractions = y / np.where(valid, total, 1)
        return np.where(valid, fractions, np.where(np.isnan(y).all(axis=1, keepdims=True), np.nan, np.inf))

    def row_complaint(self, y: np.ndarray) -> str:
        named = f"the {len(self.targets)} fractions from {self.targets[0]!r} to {self.targets[-1]!r}"
        if np.isnan(y).any():
            blank = self.targets[int(np.isnan(y).argmax())]
            return f"{named} are incomplete: {blank!r} has no value; write 0 for nothing, or leave all of them blank"
        total = f"{named} add up to {y.sum():g}, not to 1"
        return total if self.normalise else f"{total}; --normalise divides each by that"


class Divergence(NumericObjective):
    r"""Kullback-Leibler divergence of the softmax p of T outputs from the measured fractions y.

    \[ \mathrm{KL}(y \,\|\, p) = \sum_t y_t \ln \frac{y_t}{p_t} = \sum_t \left[ y_t \ln \frac{y_t}{p_t} - y_t + p_t
    \right] \]

    (Kullback & Leibler 1951, https://doi.org/10.1214/aoms/1177729694). No summand of the last form is negative; each
    summand is the loss and the score of one fraction.
    """

    has_link: ClassVar[bool] = True
    metrics: ClassVar[dict[str, Metric]] = {
        "kl": Metric("KL divergence", lambda p, y: divergence(p, y).mean(), has_values, lower=True, summed=True),
        "rmse": Metric("RMSE", root_mean_squared_error, has_values, lower=True),
        "mae": Metric("MAE", mean_absolute_error, has_values, lower=True),
    }

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        super().fit(train)
        y = self.level.targets(train).cpu().numpy()
        measured = ~np.isnan(y).all(1)
        for i in np.flatnonzero(measured & ((y < 0).any(1) | ~(np.abs(y.sum(1) - 1) <= TOLERANCE)))[:1]:
            raise InputError(
                f"training molecule {i}, counted from 0: {self.task.columns.row_complaint(y[i])}, or one is negative"
            )
        return {}

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.scale(store).double()

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        """Compute it from the mean divergence, whose size is unknown: the same for all fractions."""
        measured = ~scaled.isnan().any(1)
        mean = divergence(output[measured].softmax(-1), scaled[measured]).sum(1).mean()
        return (measured.sum() / 2 * mean.clamp(min=1e-12).log()).expand(len(self.targets))

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        log_p = output.log_softmax(-1)
        each = torch.xlogy(target, target) - target * log_p - target + log_p.exp()
        return each * len(self.targets)  # so that the mean over a row is its divergence

    def unscale(self, output: Tensor, store: MoleculeStore | None = None) -> Tensor:
        """Compute the fractions, which add up to 1."""
        return output.double().softmax(-1)


class FractionAnswers(NumericAnswers):
    """Fractions, one for each target."""

    def quantity(self, column: int) -> str:
        return f"fraction of {self.objective.targets[column]}"


@dataclass(frozen=True)
class FractionRegression(NumericTask, FractionOptions):
    """Task of predicting T fractions of a whole, which add up to 1, by their `Divergence`.

    Args:
        targets: names of the target columns, two or more.
        normalise: whether the fractions of a row are divided by their sum.

    Raises:
        InputError: there is only one target.
    """

    name: ClassVar[str] = "fractions"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.targets) < 2:
            raise InputError(f"{self.name} need two target columns or more, which add up to 1; got {self.targets[0]!r}")

    @cached_property
    def columns(self) -> FractionColumns:
        return FractionColumns(self.targets, normalise=self.normalise)

    objective = cached_property(Divergence)
    answers = cached_property(FractionAnswers)

    def outputs_of(self, other: Task) -> None:
        """Return None: among other targets an output has another meaning."""

    def project(self, prediction: np.ndarray) -> np.ndarray:
        fractions = prediction.clip(min=FLOOR)
        return fractions / fractions.sum(axis=1, keepdims=True)
