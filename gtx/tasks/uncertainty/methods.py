"""Methods of uncertainty: each gives a standard deviation and an interval."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gtx.errors import InputError
from gtx.tasks.calibration import LEVEL
from gtx.tasks.options import minimize_scalar

# --- The interface of all methods.


class PredictionUncertainty(NamedTuple):
    """Standard deviations and intervals of the predictions for m molecules, float64 `[m, T]` each.

    Attributes:
        std: standard deviation of the prediction.
        below, above: widths of the interval below and above the prediction, up to a factor that is fitted to validation
            rows.
    """

    std: Tensor
    below: Tensor
    above: Tensor


class UncertaintyMethod:
    r"""Base class of methods that estimate the standard deviation of each prediction.

    The variance between networks is added to the variance that the networks predict:

    \[ \sigma^2 = \frac{1}{K} \sum_k \sigma_k^2 + \frac{1}{K - 1} \sum_k (\mu_k - \bar\mu)^2 \]

    (the law of total variance; Lakshminarayanan et al. 2017, arXiv:1612.01474). All is in scaled units.

    Attributes:
        word: name of the method in `UNCERTAINTY_METHODS`.
        width: number W of network outputs per target; the first output is the prediction.
        has_loss: whether `loss` replaces the loss of the task.
        reads_similarity: whether the method uses the distance to the nearest training molecule, which follows the
            outputs.
    """

    word: ClassVar[str]
    width: ClassVar[int] = 1
    has_loss: ClassVar[bool] = False
    reads_similarity: ClassVar[bool] = False

    def at(self, level: float) -> UncertaintyMethod:
        """Return the method for intervals of a level, between 0 and 1; most do not depend on it."""
        return self

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of each entry, `[B, T]`, from outputs `[B, W, T]` and targets `[B, T]`."""
        raise NotImplementedError(f"{type(self).__name__} has no loss of its own")

    def variance(self, output: Tensor) -> Tensor:
        """Return the variance that networks predict, `[..., T]`, from outputs `[..., W, T]`; 0 by default."""
        return torch.zeros_like(output[..., 0, :])

    def spread(self, output: Tensor) -> PredictionUncertainty:
        """Compute the spread from outputs `[m, K, W, T]` of K networks."""
        std = (self.variance(output).mean(1) + between(output)).sqrt()
        return PredictionUncertainty(std, std, std)

    def check(self, model: nn.Module, members: int) -> None:
        """Raise an `InputError` unless the method suits a model and the number of its members."""
        if self.width > 1:
            needs_gradients(self.word, model)


def needs_gradients(word: str, model: nn.Module) -> None:
    """Raise an `InputError` unless a model is trained by gradients, as the method `word` requires."""
    if not any(weight.requires_grad for weight in model.parameters()):
        raise InputError(f"uncertainty {word} is learned by gradients, which {type(model).__name__} is not")


def between(output: Tensor) -> Tensor:
    """Compute the sample variance of the numbers over K networks, `[m, T]`; 0 for a single one."""
    numbers = output[:, :, 0]
    return numbers.var(1) if numbers.shape[1] > 1 else torch.zeros_like(numbers[:, 0])


# --- Disagreement of the members of an ensemble.


class Ensemble(UncertaintyMethod):
    """Sample variance of two or more members, each trained from its own seed."""

    word: ClassVar[str] = "ensemble"

    def check(self, model: nn.Module, members: int) -> None:
        if members < 2:
            raise InputError(
                "uncertainty ensemble is how far members disagree, and this model has one: expected two or more, "
                "such as ensemble=5 in Python and --ensemble 5 on the command line"
            )


# --- A predicted variance of each molecule.

FLOOR = 1e-4
"""Least variance in scaled units: an error of a hundredth of the targets' spread."""


class Variance(UncertaintyMethod):
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


# --- A distribution over the mean and the variance of each molecule.


class Evidential(UncertaintyMethod):
    r"""A normal-inverse-gamma distribution of the mean and the variance (Amini et al. 2020, arXiv:1910.02600).

    The network gives \(\gamma, \nu > 0, \alpha > 1, \beta > 0\). The value follows Student's t distribution, and with
    \(\Omega = 2 \beta (1 + \nu)\) the loss is its negative log-likelihood and a penalty for evidence of what is wrong:

    \[ \ell = \tfrac{1}{2} \ln \frac{\pi}{\nu} - \alpha \ln \Omega
       + \bigl(\alpha + \tfrac{1}{2}\bigr) \ln\bigl( (y - \gamma)^2 \nu + \Omega \bigr)
       + \ln \frac{\Gamma(\alpha)}{\Gamma(\alpha + \frac{1}{2})}
       + \lambda\, |y - \gamma|\, (2 \nu + \alpha) \]

    The variance of a value is \(\frac{\beta}{\alpha - 1} (1 + \frac{1}{\nu})\).

    Its weakness: the likelihood depends on fewer numbers than the network gives, \(\nu\) is not determined by data, and
    the part attributed to the model's ignorance need not be it (Meinert et al. 2023, arXiv:2205.10060). Only the sum
    is used here, and validation rows set its scale.

    Args:
        penalty: lambda. With 0.2, as Soleimany et al. 2021 have it for molecules
            (https://doi.org/10.1021/acscentsci.1c00546), a spread that is known is missed by a factor of 2.7, with 0.05
            by 9 % (the data of tests/tasks/test_uncertainty.py).
    """

    word: ClassVar[str] = "evidential"
    width: ClassVar[int] = 4
    has_loss: ClassVar[bool] = True

    def __init__(self, penalty: float = 0.05) -> None:
        self.penalty = penalty

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        error = target - output[..., 0, :]
        nu, alpha, beta = self._evidence(output)
        omega = 2 * beta * (1 + nu)
        likelihood = (
            (math.pi / nu).log() / 2
            - alpha * omega.log()
            + (alpha + 0.5) * (error.square() * nu + omega).log()
            + torch.lgamma(alpha)
            - torch.lgamma(alpha + 0.5)
        )
        return likelihood + self.penalty * error.abs() * (2 * nu + alpha)

    def variance(self, output: Tensor) -> Tensor:
        nu, alpha, beta = self._evidence(output)
        return beta / (alpha - 1) * (1 + 1 / nu)

    @staticmethod
    def _evidence(output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        nu, alpha, beta = (F.softplus(output[..., k, :]) + 1e-4 for k in (1, 2, 3))
        return nu, alpha + 1, beta


# --- A median and two quantiles of each molecule, which may be skewed.


class Quantiles(UncertaintyMethod):
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
        self.tail: float = (1 - level) / 2
        self.normal: float = NormalDist().inv_cdf(1 - self.tail)  # upper quantile of a standard normal distribution

    def at(self, level: float) -> Quantiles:
        return Quantiles(level)

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        median, (down, up) = output[..., 0, :], self._reach(output)
        quantiles = (self.tail, median - down), (0.5, median), (1 - self.tail, median + up)
        errors = ((q, target - value) for q, value in quantiles)
        return torch.stack([(q * error).maximum((q - 1) * error) for q, error in errors]).sum(0)

    def variance(self, output: Tensor) -> Tensor:
        down, up = self._reach(output)
        return ((down + up) / (2 * self.normal)).square()

    def spread(self, output: Tensor) -> PredictionUncertainty:
        down, up = (reach.mean(1) for reach in self._reach(output))
        std = (self.variance(output).mean(1) + between(output)).sqrt()
        wider = 2 * self.normal * std / (down + up)  # as far as networks disagree
        return PredictionUncertainty(std, wider * down, wider * up)

    @staticmethod
    def _reach(output: Tensor) -> tuple[Tensor, Tensor]:
        return F.softplus(output[..., 1, :]) + 1e-3, F.softplus(output[..., 2, :]) + 1e-3


# --- Distance of a molecule from the training molecules.

FEWEST = 50
"""Least number of held-out values of a target to fit a slope; with fewer, all intervals have one width."""
STEEPEST = 8.0
PRIOR = 2.0


class Similarity(UncertaintyMethod):
    r"""An error that grows with the distance d to the nearest training molecule, \(\sigma \propto e^{b d}\).

    The distance is 1 minus the Tanimoto similarity of Morgan counts, see `gtx.prediction.neighbours`; it stands behind
    the outputs of the networks. The slope b of each target, 0 or more, is `distance_slopes` of validation rows. With
    these deviations split-conformal intervals are normalised (Papadopoulos et al. 2002).
    """

    word: ClassVar[str] = "similarity"
    reads_similarity: ClassVar[bool] = True

    def spread(self, output: Tensor) -> PredictionUncertainty:
        """Compute the spread from distances times slopes, `[m, T]`."""
        std = output.double().exp()
        return PredictionUncertainty(std, std, std)


def distance_slopes(error: np.ndarray, distance: np.ndarray) -> np.ndarray:
    r"""Fit the slope b of each target, the likeliest for Laplace errors of the scale \(c\, e^{b d}\),

    \[ \min_{b \ge 0} \; n \ln \frac{1}{n} \sum_i |\epsilon_i| e^{-b d_i} + b \sum_i d_i + \frac{b^2}{2 \cdot 2^2} \]

    with c the best for each b. The last term is a normal prior of standard deviation 2, which keeps few rows from a
    steep slope; a Laplace distribution, unlike a normal one, is not led by single large errors.

    Args:
        error: `[n, T]` of held-out rows, NaN for blanks.
        distance: `[n]`.

    Returns:
        float64 `[T]`, from 0 to 8; 0 for a target of fewer than 50 values.
    """
    return np.array([_slope(column, distance) for column in error.T])


def _slope(error: np.ndarray, distance: np.ndarray) -> float:
    rows = np.isfinite(error)
    size, far = np.abs(error[rows]), distance[rows]
    if len(size) < FEWEST or not size.any():
        return 0.0

    def unlikely(slope: float) -> float:
        scale = np.mean(size * np.exp(-slope * far))
        return len(size) * np.log(scale) + slope * far.sum() + slope**2 / (2 * PRIOR**2)

    return float(minimize_scalar(unlikely, bounds=(0, STEEPEST), method="bounded").x)
