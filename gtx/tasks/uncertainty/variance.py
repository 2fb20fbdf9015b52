"""A variance for each molecule, learned with the number."""

from __future__ import annotations

from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from gtx.tasks.uncertainty.method import Method

FLOOR = 1e-4
"""The least variance in scaled units: an error of a hundredth of the targets' spread."""


class Variance(Method):
    r"""The negative log-likelihood of a Gaussian whose mean and variance the network gives, weighted:

    \[ \ell = \lfloor \sigma^{2 \beta} \rfloor \, \tfrac{1}{2}
       \Bigl( \ln \sigma^2 + \frac{(y - \mu)^2}{\sigma^2} \Bigr), \qquad
       \sigma^2 = \ln(1 + e^s) + 10^{-4}, \]

    where the factor in brackets has no gradient. With \(\beta = 0\) it is the likelihood itself (Nix & Weigend 1994),
    which neglects molecules that it has found hard; \(\beta = 1\) learns the mean as the squared error does; halfway
    is best, or nearly, in Seitzer et al. 2022 (arXiv:2203.09168).

    Args:
        beta: 0 to 1.
    """

    word: ClassVar[str] = "variance"
    width: ClassVar[int] = 2
    has_loss: ClassVar[bool] = True

    def __init__(self, beta: float = 0.5) -> None:
        self.beta = beta

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        variance = self.variance(output)
        likelihood = (variance.log() + (target - output[..., 0, :]).square() / variance) / 2
        return variance.detach() ** self.beta * likelihood

    def variance(self, output: Tensor) -> Tensor:
        return F.softplus(output[..., 1, :]) + FLOOR
