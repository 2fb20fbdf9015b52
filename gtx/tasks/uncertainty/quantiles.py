"""A median and two quantiles for each molecule, which need not lie evenly about it."""

from __future__ import annotations

from statistics import NormalDist
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from gtx.tasks.conformal import LEVEL
from gtx.tasks.uncertainty.method import Method, Spread, between


class Quantiles(Method):
    r"""The median of a target and the two quantiles at which an interval ends, such as 0.05 and 0.95 of one of 0.9, by
    the sum of their pinball losses:

    \[ \ell = \sum_q \max\bigl( q\,(y - \hat y_q),\; (q - 1)(y - \hat y_q) \bigr) \]

    (Koenker & Bassett 1978). The outer two are the median minus and plus a softplus, so that quantiles never cross.
    The prediction is the median. The standard deviation is that of a normal distribution with as wide a range. The
    interval reaches as far down and up as the quantiles do, times one factor by which validation rows are covered:
    conformalised quantile regression (Romano et al. 2019, arXiv:1905.03222), by a factor in place of a summand, so that
    no interval is turned over.

    Args:
        level: of the interval, between 0 and 1.
    """

    word: ClassVar[str] = "quantiles"
    width: ClassVar[int] = 3
    has_loss: ClassVar[bool] = True

    def __init__(self, level: float = LEVEL) -> None:
        self.tail = (1 - level) / 2
        self.normal = NormalDist().inv_cdf(1 - self.tail)  # of a standard normal distribution, the upper quantile

    def at(self, level: float) -> Quantiles:
        return Quantiles(level)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        median, (down, up) = output[..., 0, :], self._reach(output)
        quantiles = (self.tail, median - down), (0.5, median), (1 - self.tail, median + up)
        return sum(_pinball(target - value, q) for q, value in quantiles)

    def variance(self, output: Tensor) -> Tensor:
        down, up = self._reach(output)
        return ((down + up) / (2 * self.normal)).square()

    def spread(self, output: Tensor) -> Spread:
        down, up = (reach.mean(1) for reach in self._reach(output))
        std = (self.variance(output).mean(1) + between(output)).sqrt()
        wider = 2 * self.normal * std / (down + up)  # as far as networks disagree
        return Spread(std, wider * down, wider * up)

    @staticmethod
    def _reach(output: Tensor) -> tuple[Tensor, Tensor]:
        return F.softplus(output[..., 1, :]) + 1e-3, F.softplus(output[..., 2, :]) + 1e-3


def _pinball(error: Tensor, q: float) -> Tensor:
    return (q * error).maximum((q - 1) * error)
