"""Counts: whole numbers of hits, of events, of days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from gtx.data.targets import parse_number
from gtx.errors import InputError
from gtx.schema import ListOf, Record, number
from gtx.tasks.late_functions import mean_absolute_error, mean_squared_error
from gtx.tasks.losses import constants
from gtx.tasks.metrics import has_values
from gtx.tasks.numbers import NumberTask
from gtx.tasks.options import CountOptions, learned
from gtx.tasks.task import Metric

if TYPE_CHECKING:
    from gtx.data import MoleculeStore

MOST = 10**15
"""The largest count; a float64 holds every whole number up to there."""


def deviance(p: Tensor, y: Tensor) -> Tensor:
    r"""The mean Poisson deviance, \(2\,[y \ln (y / p) - y + p]\); infinite where a count was held impossible."""
    return 2 * (torch.xlogy(y, y) - torch.xlogy(y, p) - y + p).mean()


@dataclass(frozen=True)
class Counts(NumberTask, CountOptions):
    r"""Counts, by the logarithm of a Poisson rate: the output o says that \(m e^o\) are expected, m the mean of the
    training rows.

    The loss is the negative log-likelihood in units of m, and a constant that makes 0 the least:

    \[ \ell = e^o - t\, o + t \ln t - t, \qquad t = y / m \]

    It is half of the deviance, over m (McCullagh & Nelder 1989, section 6.2). Answers are the expected count,
    `<target>_pred`, which is no whole number.

    Args:
        targets: names of the target columns.
        means: per target the mean of the training rows.
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

    means: tuple[float, ...] | None = learned()

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        found = np.array([parse_number(cell) for cell in cells], np.float64)
        whole = (found >= 0) & (found <= MOST) & (found == np.floor(found))
        return np.where(np.isnan(found) | whole, found, np.inf)

    def complaint(self, target: int, cell: str) -> str:
        return "is not a whole number of 0 or more, nor blank"

    def fitted(self, train: MoleculeStore) -> Self:
        super().fitted(train)
        if self.means is not None:
            return self
        y = train.y.cpu()
        for place in ((y < 0) | (y != y.floor()) & ~y.isnan()).nonzero().tolist()[:1]:
            molecule, name = f"training molecule {place[0]}, counted from 0", self.targets[place[1]]
            raise InputError(f"target {name!r} of {molecule}, {y[tuple(place)]:g}, {self.complaint(place[1], '')}")
        means = y.nanmean(0).tolist()
        for name, mean in zip(self.targets, means, strict=True):
            if mean == 0:
                raise InputError(f"target {name!r} is 0 for all training molecules; there is no rate to learn")
        return replace(self, means=tuple(means))

    def adopting(self, other: NumberTask) -> Self:
        known = zip(self.means, self.known(other), strict=True)
        return replace(self, means=tuple(own if at < 0 else other.means[at] for own, at in known))

    def scaled(self, store: MoleculeStore) -> Tensor:
        return (store.y.cpu() / constants(self.means, store.y.cpu())).float()

    def regressands(self, store: MoleculeStore) -> Tensor:
        y = store.y.cpu()
        return (y + 0.5).log() - constants(self.means, y).log()

    def surprise(self, output: Tensor, scaled: Tensor) -> Tensor:
        return super().surprise(output, scaled) * constants(self.means, output)  # the loss is in units of these

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return output.exp() - target * output + torch.xlogy(target, target) - target

    def unscaled(self, output: Tensor, store: MoleculeStore) -> Tensor:
        """The expected count."""
        output = output.double()
        return output.exp() * constants(self.means, output)

    def quantity(self, column: int) -> str:
        return f"expected {self.targets[column]}"

    @classmethod
    def kept_entries(cls, targets: int) -> Record:
        return Record({"means": ListOf(number(0, MOST), targets, targets)})
