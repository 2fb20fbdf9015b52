"""Uncertainty of numbers: methods that give a standard deviation and an interval, their scaling and their scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import ndtr
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.tasks.calibration import LEVEL, ranking
from gtx.tasks.metrics import mean_scores

Spread = tuple[Tensor, Tensor, Tensor]
"""Standard deviations of the predictions for m molecules, and widths of the intervals below and above them, up to a
factor that is fitted to validation rows, float64 `[m, T]` each."""

# --- The interface of all methods.


class UncertaintyMethod:
    r"""Method that estimates the standard deviation of each prediction; the base class is the method `none`.

    The variance between networks is added to the variance that the networks predict:

    \[ \sigma^2 = \frac{1}{K} \sum_k \sigma_k^2 + \frac{1}{K - 1} \sum_k (\mu_k - \bar\mu)^2 \]

    (the law of total variance; Lakshminarayanan et al. 2017, arXiv:1612.01474). All is in scaled units.

    Attributes:
        width: number W of network outputs per target; the first output is the prediction. With more than one, `loss`
            replaces the loss of the task.
        reads_similarity: whether the method uses the distance to the nearest training molecule, which follows the
            outputs.
    """

    width: ClassVar[int] = 1
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

    def spread(self, output: Tensor) -> Spread:
        """Compute the spread from outputs `[m, K, W, T]` of K networks."""
        variance = self.variance(output).mean(1)
        std = (variance + output[:, :, 0].var(1) if output.shape[1] > 1 else variance).sqrt()
        return std, std, std


def needs_gradients(word: str, model: nn.Module) -> None:
    """Raise an `InputError` unless a model is trained by gradients, as the method `word` requires."""
    if not any(weight.requires_grad for weight in model.parameters()):
        raise InputError(f"uncertainty {word} is learned by gradients, which {type(model).__name__} is not")


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
    is best, or nearly, in Seitzer et al. 2022 (arXiv:2203.09168). That is \(\beta\) here.
    """

    width: ClassVar[int] = 2

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        variance = self.variance(output)
        likelihood = (variance.log() + (target - output[..., 0, :]).square() / variance) / 2
        return variance.detach().sqrt() * likelihood

    def variance(self, output: Tensor) -> Tensor:
        return F.softplus(output[..., 1, :]) + FLOOR


# --- A distribution over the mean and the variance of each molecule.

PENALTY = 0.05


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
    is used here, and validation rows set its scale. Lambda is 0.05: with 0.2, as Soleimany et al. 2021 have it for
    molecules (https://doi.org/10.1021/acscentsci.1c00546), a spread that is known is missed by a factor of 2.7, with
    0.05 by 9 % (the data of tests/tasks/test_uncertainty.py).
    """

    width: ClassVar[int] = 4

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
        return likelihood + PENALTY * error.abs() * (2 * nu + alpha)

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
    """

    width: ClassVar[int] = 3

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

    def spread(self, output: Tensor) -> Spread:
        down, up = (reach.mean(1) for reach in self._reach(output))
        std, _, _ = super().spread(output)
        wider = 2 * self.normal * std / (down + up)  # as far as networks disagree
        return std, wider * down, wider * up

    @staticmethod
    def _reach(output: Tensor) -> tuple[Tensor, Tensor]:
        return F.softplus(output[..., 1, :]) + 1e-3, F.softplus(output[..., 2, :]) + 1e-3


# --- Distance of a molecule from the training molecules.

FEWEST_ERRORS = 50
"""Least number of held-out values of a target to fit a slope; with fewer, all intervals have one width."""
STEEPEST = 8.0
PRIOR = 2.0


class Similarity(UncertaintyMethod):
    r"""An error that grows with the distance d to the nearest training molecule, \(\sigma \propto e^{b d}\).

    The distance is 1 minus the Tanimoto similarity of Morgan counts, see `gtx.prediction.neighbours`; it stands behind
    the outputs of the networks. The slope b of each target, 0 or more, is `distance_slopes` of validation rows. With
    these deviations split-conformal intervals are normalised (Papadopoulos et al. 2002).
    """

    reads_similarity: ClassVar[bool] = True

    def spread(self, output: Tensor) -> Spread:
        """Compute the spread from distances times slopes, `[m, T]`."""
        std = output.double().exp()
        return std, std, std


def distance_slopes(error: np.ndarray, distance: np.ndarray) -> np.ndarray:
    r"""Fit the slope b of each target `[T]`, from 0 to 8, the likeliest for Laplace errors of the scale
    \(c\, e^{b d}\),

    \[ \min_{b \ge 0} \; n \ln \frac{1}{n} \sum_i |\epsilon_i| e^{-b d_i} + b \sum_i d_i + \frac{b^2}{2 \cdot 2^2} \]

    with c the best for each b. The last term is a normal prior of standard deviation 2, which keeps few rows from a
    steep slope; a Laplace distribution, unlike a normal one, is not led by single large errors.

    Args:
        error: `[n, T]` of held-out rows, NaN for blanks; a target of fewer than 50 values has the slope 0.
        distance: `[n]`.
    """
    from scipy.optimize import minimize_scalar

    def unlikeliness(slope: float, size: np.ndarray, distance: np.ndarray) -> float:
        scale = np.mean(size * np.exp(-slope * distance))
        return len(size) * np.log(scale) + slope * distance.sum() + slope**2 / (2 * PRIOR**2)

    slopes = np.zeros(error.shape[1])
    for t, column in enumerate(error.T):
        rows = np.isfinite(column)
        known = np.abs(column[rows]), distance[rows]
        if rows.sum() >= FEWEST_ERRORS and known[0].any():
            slopes[t] = minimize_scalar(unlikeliness, bounds=(0, STEEPEST), method="bounded", args=known).x
    return slopes


UNCERTAINTY_METHODS: dict[str, UncertaintyMethod] = {
    "none": UncertaintyMethod(),
    "variance": Variance(),
    "quantiles": Quantiles(),
    "evidential": Evidential(),
    "similarity": Similarity(),
}
"""Methods of uncertainty by the words that `--uncertainty` and model files use."""


# --- Standard deviations of the right size.

FEWEST_VALUES = 10
"""Least number of held-out values of a target; they give the size of its errors to within a quarter."""


def std_factors(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    r"""Fit a factor per target `[T]` that makes standard deviations likeliest for held-out values, as of a Gaussian:

    \[ c = \sqrt{\frac{1}{n} \sum_i \frac{(y_i - \mu_i)^2}{\sigma_i^2}} \]

    (Levi et al. 2022, https://doi.org/10.3390/s22155540, section 3.3; z scaling in chemprop). The order of the
    molecules stays as it is. It is 1 for a target of fewer than 10 values, and where errors or deviations are 0.

    Args:
        y: `[n, T]`, measured, NaN for blanks.
        mean, std: `[n, T]`.
    """
    known = ~np.isnan(y) & (std > 0)
    factors = np.ones(y.shape[1])
    for t, rows in enumerate(known.T):
        if rows.sum() >= FEWEST_VALUES:
            factors[t] = np.sqrt(np.mean(((y - mean)[rows, t] / std[rows, t]) ** 2)) or 1.0
    return factors


# --- Scores of standard deviations and intervals.

A_BIN = 20
"""Least number of molecules for a root mean square."""
MOST_BINS = 20
WORST = 0.2
"""Share of molecules whose errors count as large."""
NAMES = ("nll", "ence", "miscalibration_area", "spearman", "auroc", "coverage", "width")
BY_DISTANCE = tuple(f"{score}_{third}" for score in ("coverage", "width") for third in ("far", "middle", "near"))


def evaluate_spread(
    targets: Sequence[str],
    y: np.ndarray,
    mean: np.ndarray,
    std: np.ndarray | None,
    low: np.ndarray | None,
    high: np.ndarray | None,
    distance: np.ndarray | None = None,
) -> dict[str, Any]:
    r"""Score standard deviations and intervals of predictions.

    * `nll`: the mean of \(\tfrac{1}{2} \ln(2 \pi \sigma^2) + (y - \mu)^2 / 2 \sigma^2\), in nats.
    * `ence`: the expected normalised calibration error (`calibration_error`); the best value is 0.
    * `miscalibration_area`: the mean over all levels of how far the share of values within the central interval of a
      normal distribution is off the level (Tran et al. 2020, https://doi.org/10.1088/2632-2153/ab7e1a); 0 to 0.5.
    * `spearman`: the rank correlation of \(\sigma\) and \(|y - \mu|\). The correlation is far below 1 even for a
      perfect \(\sigma\), because some errors are small by chance.
    * `auroc`: the ROC-AUC of \(\sigma\) for the fifth of the molecules with the largest errors.
    * `coverage`: the share of values within their intervals; `width`: the mean width of these.
    * `coverage_far`, `coverage_middle`, `coverage_near`: of the third of the molecules that is furthest from the
      training molecules, of the next and of the nearest; `width_far` and so on likewise.

    The arguments are `[n, T]` each, with NaN for blanks in y, and the distance to the nearest training molecule `[n]`.
    The scores of what is None are left out; without any of them the result is empty. A score is the mean over the
    targets where it is defined; None without any.
    """
    names = (() if std is None else NAMES[:5]) + (() if low is None else NAMES[5:])
    names += () if low is None or distance is None else BY_DISTANCE
    per_target = {}
    for t, name in enumerate(targets):
        rows = ~np.isnan(y[:, t]) & np.isfinite(mean[:, t])
        scores: dict[str, float | None] = dict.fromkeys(names)
        error = y[rows, t] - mean[rows, t]
        if std is not None and len(error) and (std[rows, t] > 0).all():
            scores |= _of_std(error, std[rows, t])
        if low is not None and high is not None and len(error) and not np.isnan(low[:, t]).all():
            inside = (low[rows, t] <= y[rows, t]) & (y[rows, t] <= high[rows, t])
            width = (high - low)[rows, t]
            scores |= {"coverage": float(inside.mean()), "width": float(width.mean())}
            if distance is not None and len(error) >= A_BIN:
                thirds = np.array_split(np.argsort(-distance[rows], kind="stable"), 3)
                means = [float(values[third].mean()) for values in (inside, width) for third in thirds]
                scores |= dict(zip(BY_DISTANCE, means, strict=True))
        per_target[name] = scores
    return mean_scores(per_target) if names else {}


def _of_std(error: np.ndarray, std: np.ndarray) -> dict[str, float | None]:
    size = np.abs(error)
    z = size / std
    levels, inside = np.linspace(0, 1, 101), 2 * ndtr(z) - 1  # the level of the interval that a value just lies in
    observed = np.searchsorted(np.sort(inside), levels, side="right") / len(z)
    scores: dict[str, float | None] = {
        "nll": float(np.mean(np.log(2 * np.pi * std**2) / 2 + z**2 / 2)),
        "ence": calibration_error(error, std),
        "miscalibration_area": float(np.trapezoid(np.abs(observed - levels), levels)),
    }
    if len(np.unique(std)) > 1 and len(np.unique(size)) > 1:
        from scipy.stats import spearmanr

        large = size > np.quantile(size, 1 - WORST)
        scores["spearman"] = float(spearmanr(std, size).statistic)
        scores["auroc"] = ranking(large, std)
    return {name: value if value is not None and np.isfinite(value) else None for name, value in scores.items()}


def calibration_error(error: np.ndarray, std: np.ndarray) -> float:
    r"""Compute the expected normalised calibration error, the mean over groups of molecules of like \(\sigma\) of

    \[ |\mathrm{RMSE} - \mathrm{RMS}\,\sigma| \; / \; \mathrm{RMS}\,\sigma \]

    (Levi et al. 2022, https://doi.org/10.3390/s22155540); 0 at best. There are 20 molecules or more in a group, in at
    most 20 groups.

    By chance alone it is about \(1 / \sqrt{\pi m}\) with m molecules in a group, 0.13 of 20 (Pernot 2023,
    arXiv:2305.11905, on how it depends on the number of groups).
    """
    groups = np.array_split(np.argsort(std, kind="stable"), int(np.clip(len(std) // A_BIN, 1, MOST_BINS)))
    stated, actual = (np.array([np.sqrt(np.mean(x[rows] ** 2)) for rows in groups]) for x in (std, error))
    return float(np.mean(np.abs(actual - stated) / stated))
