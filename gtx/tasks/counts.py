"""Counts by a Poisson rate, and fractions that add up to 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from gtx.data.columns import Row
from gtx.data.delimited import LARGEST
from gtx.data.row_log import RowLog
from gtx.data.targets import parse_number
from gtx.errors import InputError
from gtx.schema import ListOf, OrNone, Record, flag, number
from gtx.tasks.metrics import constants, has_values
from gtx.tasks.numbers import BAD_TARGET, NumericTask
from gtx.tasks.options import CountOptions, FractionOptions, learned, mean_absolute_error, mean_squared_error
from gtx.tasks.task import Metric, Task, targets_of

if TYPE_CHECKING:
    from gtx.data import MoleculeStore


# --- Counts: whole numbers of hits, of events, of days.

MOST = 10**15
"""The largest count; a float64 holds every whole number up to there."""


def deviance(p: Tensor, y: Tensor) -> Tensor:
    r"""Compute the mean Poisson deviance, \(2\,[y \ln (y / p) - y + p]\); infinite if p is 0 for a count above 0."""
    return 2 * (torch.xlogy(y, y) - torch.xlogy(y, p) - y + p).mean()


@dataclass(frozen=True)
class CountRegression(NumericTask, CountOptions):
    r"""Task of predicting counts (0, 1, 2, ...); the network's output is the logarithm of a Poisson rate.

    An output o predicts the count \(m e^o\), with m the mean of the training rows. The loss is the negative
    log-likelihood in units of m, plus a constant such that the smallest loss is 0:

    \[ \ell = e^o - t\, o + t \ln t - t, \qquad t = y / m \]

    The loss is half of the deviance, divided by m (McCullagh & Nelder 1989, section 6.2). The prediction
    `<target>_pred` is the expected count, which is usually not an integer.

    Args:
        targets: names of the target columns.
        means: mean of the training rows for each target.
    """

    name: ClassVar[str] = "counts"
    log_linear: ClassVar[bool] = True
    linked: ClassVar[bool] = True
    metrics: ClassVar[dict[str, Metric]] = {
        "deviance": Metric("Poisson deviance", deviance, has_values, lower=True),
        "rmse": Metric(
            "RMSE", lambda p, y: mean_squared_error(p, y, squared=False), has_values, lower=True, in_units=True
        ),
        "mae": Metric("MAE", mean_absolute_error, has_values, lower=True, in_units=True),
    }

    means: tuple[float, ...] = learned()

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        numbers = np.array([parse_number(cell) for cell in cells], np.float64)
        whole = (numbers >= 0) & (numbers <= MOST) & (numbers == np.floor(numbers))
        return np.where(np.isnan(numbers) | whole, numbers, np.inf)

    def complaint(self, target: int, cell: str) -> str:
        return "is not a whole number of 0 or more, nor blank"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        if self.means is not None:
            return self
        y = targets_of(train).cpu()
        for position in ((y < 0) | (y != y.floor()) & ~y.isnan()).nonzero().tolist()[:1]:
            molecule, name = f"training molecule {position[0]}, counted from 0", self.targets[position[1]]
            raise InputError(
                f"target {name!r} of {molecule}, {y[tuple(position)]:g}, {self.complaint(position[1], '')}"
            )
        means = y.nanmean(0).tolist()
        for name, mean in zip(self.targets, means, strict=True):
            if mean == 0:
                raise InputError(f"target {name!r} is 0 for all training molecules; there is no rate to learn")
        return replace(self, means=tuple(means))

    def adopting(self, other: Task) -> Self:
        if not isinstance(other, CountRegression):
            return self
        pairs = zip(self.means, self.shared(other), strict=True)
        return replace(self, means=tuple(own if at < 0 else other.means[at] for own, at in pairs))

    def scaled(self, store: MoleculeStore) -> Tensor:
        y = targets_of(store).cpu()
        return (y / constants(self.means, y)).float()

    def regressands(self, store: MoleculeStore) -> Tensor:
        y = targets_of(store).cpu()
        return (y + 0.5).log() - constants(self.means, y).log()

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        return super().nll(output, scaled) * constants(self.means, output)  # the loss is in units of these

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return output.exp() - target * output + torch.xlogy(target, target) - target

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        """Compute the expected count."""
        output = output.double()
        return output.exp() * constants(self.means, output)

    def quantity(self, column: int) -> str:
        return f"expected {self.targets[column]}"

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        return Record({"means": ListOf(number(0, MOST), targets, targets)})


# --- Fractions of a whole: compositions, products of a reaction, spectra.

TOLERANCE = 0.01 + 1e-9
"""Tolerance for the sum of a row's fractions, which rounding moves away from 1; fractions are divided by their sum."""
FLOOR = 1e-4
"""Least fraction that a baseline predicts; without it a wrong 0 has an infinite loss."""


def divergence(p: Tensor, y: Tensor) -> Tensor:
    r"""Compute the contribution of each fraction to the divergence: \(y \ln (y / p) - y + p\), at least 0."""
    return torch.xlogy(y, y) - torch.xlogy(y, p) - y + p


@dataclass(frozen=True)
class FractionRegression(NumericTask, FractionOptions):
    r"""Task of predicting T fractions of a whole, which add up to 1, by a softmax of T outputs.

    The loss of a row is the Kullback-Leibler divergence of the predicted fractions p from the measured fractions y:

    \[ \mathrm{KL}(y \,\|\, p) = \sum_t y_t \ln \frac{y_t}{p_t} = \sum_t \left[ y_t \ln \frac{y_t}{p_t} - y_t + p_t
    \right] \]

    (Kullback & Leibler 1951, https://doi.org/10.1214/aoms/1177729694). No summand of the last form is negative; each
    summand is the loss and the score of one fraction.

    Args:
        targets: names of the target columns, two or more.
        normalise: whether the fractions of a row are divided by their sum.

    Raises:
        InputError: there is only one target.
    """

    name: ClassVar[str] = "fractions"
    linked: ClassVar[bool] = True
    metrics: ClassVar[dict[str, Metric]] = {
        "kl": Metric("KL divergence", lambda p, y: divergence(p, y).mean(), has_values, lower=True, summed=True),
        "rmse": Metric("RMSE", lambda p, y: mean_squared_error(p, y, squared=False), has_values, lower=True),
        "mae": Metric("MAE", mean_absolute_error, has_values, lower=True),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.targets) < 2:
            raise InputError(f"{self.name} need two target columns or more, which add up to 1; got {self.targets[0]!r}")

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        y = super().parse(rows, columns, row_log)
        whole = self.joined(y)
        for i in np.flatnonzero(np.isinf(whole).any(1)).tolist():
            row_log.error(rows[i].number, None, None, self._fault(y[i]), category=BAD_TARGET)
        whole[np.isinf(whole)] = np.nan
        return whole

    def outputs_of(self, other: Task) -> None:
        """Return None: among other targets an output has another meaning."""

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        numbers = np.array([parse_number(cell) for cell in cells], np.float64)
        return np.where((numbers < 0) | (numbers > LARGEST), np.inf, numbers)

    def complaint(self, target: int, cell: str) -> str:
        return "is not a number of 0 or more, nor blank"

    def joined(self, y: np.ndarray) -> np.ndarray:
        total = y.sum(axis=1, keepdims=True)  # NaN where one is blank
        whole = total > 0 if self.normalise else np.abs(total - 1) <= TOLERANCE
        fractions = y / np.where(whole, total, 1)
        return np.where(whole, fractions, np.where(np.isnan(y).all(axis=1, keepdims=True), np.nan, np.inf))

    joint_words: ClassVar[str] = "fractions that are incomplete, or do not add up to 1"

    def _fault(self, y: np.ndarray) -> str:
        """Describe why the values of a row `[T]` are no fractions."""
        named = f"the {len(self.targets)} fractions from {self.targets[0]!r} to {self.targets[-1]!r}"
        if np.isnan(y).any():
            blank = self.targets[int(np.isnan(y).argmax())]
            return f"{named} are incomplete: {blank!r} is blank; write 0 for nothing, or leave all of them blank"
        fault = f"{named} add up to {y.sum():g}, not to 1"
        return fault if self.normalise else f"{fault}; --normalise divides each by that"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        y = targets_of(train).cpu().numpy()
        measured = ~np.isnan(y).all(1)
        for i in np.flatnonzero(measured & ((y < 0).any(1) | ~(np.abs(y.sum(1) - 1) <= TOLERANCE)))[:1]:
            raise InputError(f"training molecule {i}, counted from 0: {self._fault(y[i])}, or one is negative")
        return self

    def regressands(self, store: MoleculeStore) -> Tensor:
        return self.scaled(store).double()

    def nll(self, output: Tensor, scaled: Tensor) -> Tensor:
        """Compute it from the mean divergence, whose size is unknown: the same for all fractions."""
        measured = ~scaled.isnan().any(1)
        mean = divergence(output[measured].softmax(-1), scaled[measured]).sum(1).mean()
        return (measured.sum() / 2 * mean.clamp(min=1e-12).log()).expand(len(self.targets))

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        log_p = output.log_softmax(-1)
        each = torch.xlogy(target, target) - target * log_p - target + log_p.exp()
        return each * len(self.targets)  # so that the mean over a row is its divergence

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        """Compute the fractions, which add up to 1."""
        return output.double().softmax(-1)

    def admissible(self, prediction: np.ndarray) -> np.ndarray:
        fractions = prediction.clip(min=FLOOR)
        return fractions / fractions.sum(axis=1, keepdims=True)

    def quantity(self, column: int) -> str:
        return f"fraction of {self.targets[column]}"

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        return Record({}, {"normalise": OrNone(flag())})
