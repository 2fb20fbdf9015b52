"""Uncertainty: calibration, conformal intervals and sets, and the methods that give a standard deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import ndtr
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.base.schema import entries, list_of, number, valid
from gtx.tasks.metrics import mean_scores

# --- Split-conformal prediction: intervals of numbers, and sets of classes.

LEVEL = 0.9
"""Share of new molecules whose value an interval or a set should hold, where nothing else is asked for."""
BETWEEN_0_AND_1 = Annotated[float, valid("a number above 0 and below 1", lambda level: 0 < level < 1)]
"""Kind of the level or the coverage of an interval."""
Reach = tuple[np.ndarray, np.ndarray]
"""Distances from predictions to the lower and upper ends of intervals, `[n, T]` each."""


def rank(rows: int, level: float) -> int:
    r"""Return the rank \(\lceil (n + 1) \cdot level \rceil\), counted from 1 in ascending order, of the held-out score
    that bounds intervals or sets of a level; a rank above n means that n rows are too few.
    """
    return math.ceil((rows + 1) * Fraction(str(level)))


def fewest(level: float) -> int:
    """Return the number of held-out values that a level needs: 9 for 0.9, 19 for 0.95, 99 for 0.99."""
    exact = Fraction(str(level))
    return math.ceil(exact / (1 - exact))


def percent(level: float) -> str:
    """Write a level as a percentage, such as `95%`, `99.5%`."""
    return f"{100 * level:g}%"


def conformal_half_width(
    y: np.ndarray, prediction: np.ndarray, level: float = LEVEL, reach: Reach | None = None
) -> np.ndarray:
    r"""Compute half the width of an interval around a prediction from the errors of held-out predictions.

    The half-width is the \(\lceil (n + 1) \cdot level \rceil\)-th smallest of the n held-out errors \(|y - \hat y|\)
    (Lei et al. 2018, https://arxiv.org/abs/1604.04173). For a molecule exchangeable with the held-out molecules, the
    interval then contains the true value with a probability of at least `level`, for any model. If the held-out rows
    also selected the epoch, the interval is slightly too narrow.

    Out-of-fold errors bound the intervals of several folds. CV+ (Barber et al. 2021, arXiv:1905.02928, theorem 4) adds
    each of them to the prediction of the model that made it, and holds a value with a probability of at least
    \(2 \cdot level - 1 - \sqrt{2 / n}\). Here they are added to the mean of these models, for which no bound is proven.

    If a model estimates the error of each prediction, the held-out errors are divided by the estimate, and the
    half-width is in units of the estimate. Such a normalised interval (Papadopoulos et al. 2002) is wide for uncertain
    predictions, and has the same coverage on average.

    Args:
        y: measured values of rows that were not used for training, `[n, T]`, NaN for blanks.
        prediction: their predictions, `[n, T]`.
        level: coverage, between 0 and 1.
        reach: relative widths of the interval below and above the prediction; one factor scales all of them.

    Returns:
        The half-width of each target, float64 `[T]`, or with `reach` the factor; infinite for fewer values than
        `fewest`, or where no factor of the reach is enough.
    """
    widths = np.full(y.shape[1], np.inf)
    errors = y - prediction
    if reach is not None:
        with np.errstate(divide="ignore", invalid="ignore"):  # of a reach of 0 any error but 0 is infinitely large
            errors = np.where(errors == 0, 0.0, errors / np.where(errors < 0, *reach))
    for t, column in enumerate(np.abs(errors).T):
        known = np.sort(column[~np.isnan(column)])
        if (position := rank(len(known), level)) <= len(known):
            widths[t] = known[position - 1]
    return widths


def conformal_interval(
    y: np.ndarray, prediction: np.ndarray, level: float = LEVEL, reach: Reach | None = None
) -> dict[str, Any]:
    """Compute conformal intervals as a model file stores them: `{"level": ..., "half_width": [...]}`, None where a
    half-width is infinite.
    """
    widths = conformal_half_width(y, prediction, level, reach)
    return {"level": level, "half_width": [float(width) if np.isfinite(width) else None for width in widths]}


def interval_entries(targets: int) -> Any:
    """Describe what `conformal_interval` returns for a number of targets, see `gtx.base.schema.entries`."""
    return entries({"level": BETWEEN_0_AND_1, "half_width": list_of(number(0) | None, targets, targets)})


def interval_words(interval: dict[str, Any], targets: Sequence[str], unit: str) -> str:
    """Describe the half-widths of the targets, and why one has none."""
    level, widths = interval["level"], interval["half_width"]
    pairs = zip(targets, widths, strict=True)
    each = ", ".join(f"{name} {'none' if width is None else f'±{width:.4g}{unit}'}" for name, width in pairs)
    others = f" or with{unit} of 0" if unit else ""
    lacking = f"; none with fewer than {fewest(level)} validation values{others}" if None in widths else ""
    return f"intervals of {percent(level)}: {each}{lacking}"


def unlikeliness(p: np.ndarray, kind: str) -> np.ndarray:
    r"""Score classes for prediction sets, `[n, C]`, 0 to 1; classes with low scores are in the set.

    A set has the classes whose score is at most a threshold: the score of the true class of held-out rows at the rank
    of `conformal_half_width`.

    The kind "smallest" has the score \(1 - p_c\), with which sets are the smallest on average (Sadinle et al. 2019,
    https://doi.org/10.1080/01621459.2017.1395341). The kind "adaptive" has as score the probability of all likelier
    classes plus half the probability of the class,

    \[ s_c = \sum_{k:\, p_k > p_c} p_k + \tfrac{1}{2}\, p_c \]

    (Romano et al. 2020, arXiv:2006.02544, in whose equation a random number from 0 to 1 stands for the half; so a
    molecule has the same set whenever it is asked for). Adaptive sets are larger for molecules with more possible
    classes, and have similar coverage for hard and easy molecules. For two classes, both kinds give the same sets.

    Args:
        p: probabilities of the classes, `[n, C]`.
        kind: "smallest" or "adaptive".
    """
    if kind == "smallest":
        return 1 - p
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, 1)
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, ranked.cumsum(1) - ranked / 2, 1)
    return np.clip(scores, 0, 1)


# --- Calibration of probabilities on held-out rows.

FEWEST = 10
"""Least number of held-out rows of a target for a calibration of its probabilities."""
TINY = 1e-12
COOLEST, HOTTEST = 0.05, 20.0


def fit_temperature(y: np.ndarray, p: np.ndarray) -> float:
    r"""Fit the temperature T, from 0.05 to 20, at which held-out rows are likeliest; 1 for fewer than 10 rows:

    \[ p'_c = p_c^{1 / T} \Big/ \sum_k p_k^{1 / T} \]

    (Guo et al. 2017, arXiv:1706.04599). A temperature above 1 makes an overconfident model less confident; the
    likeliest class does not change.

    Args:
        y: int `[n]`, numbers of classes.
        p: `[n, C]`, probabilities.
    """
    if len(y) < FEWEST:
        return 1.0

    def surprise(log_temperature: float) -> float:
        scaled = apply_temperature(p, np.exp(log_temperature))
        return -np.log(scaled[np.arange(len(y)), y] + TINY).mean()

    from scipy.optimize import minimize_scalar

    fit = minimize_scalar(surprise, bounds=(np.log(COOLEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(fit.x))


def apply_temperature(p: np.ndarray, temperature: float) -> np.ndarray:
    """Apply a temperature to probabilities `[n, C]`."""
    logits = np.log(p + TINY) / temperature
    odds = np.exp(logits - logits.max(1, keepdims=True))
    return odds / odds.sum(1, keepdims=True)


def fit_isotonic(y: np.ndarray, p: np.ndarray) -> list[list[list[float]]] | None:
    """Fit an ascending step function per class to held-out rows by least squares, the class against the rest.

    Source: Zadrozny & Elkan 2002, https://doi.org/10.1145/775047.775151.

    For n rows, no calibrated probability is closer to 0 or 1 than 1 / (n + 2).

    Returns:
        The knots `[before, after]` of the calibration curve of each class, which is linear between knots; None for
        fewer than 10 rows.
    """
    if len(y) < FEWEST:
        return None
    from sklearn.isotonic import IsotonicRegression

    least = 1 / (len(y) + 2)
    fits = [IsotonicRegression(y_min=least, y_max=1 - least).fit(column, y == c) for c, column in enumerate(p.T)]
    return [[fit.X_thresholds_.tolist(), fit.y_thresholds_.tolist()] for fit in fits]


def apply_curves(p: np.ndarray, curves: list[list[list[float]]]) -> np.ndarray:
    """Apply the curves of `fit_isotonic` to probabilities `[n, C]`, and divide them by their sum."""
    values = np.stack([np.interp(column, xs, ys) for column, (xs, ys) in zip(p.T, curves, strict=True)], axis=1)
    return values / values.sum(1, keepdims=True)


def evaluate_probabilities(y: np.ndarray, p: np.ndarray) -> dict[str, Any]:
    r"""Score probabilities `[n, C]` of the true classes, int `[n]`, of one or more rows.

    `nll` is the mean of \(-\ln p_y\), in nats; `brier` the mean of \(\sum_c (p_c - [c = y])^2\), 0 to 2; `ece`, of ten
    groups by the probability of the likeliest class, the mean distance from that to the share that is right (Guo et al.
    2017); `auroc` how well that probability tells right from wrong.
    """
    best, top = p.argmax(1), p.max(1)
    right = best == y
    group = np.minimum((top * 10).astype(int), 9)
    gaps = [abs(float(top[group == g].sum() - right[group == g].sum())) for g in range(10)]
    return {
        "nll": float(-np.log(p[np.arange(len(y)), y] + TINY).mean()),
        "brier": float(np.square(p - np.eye(p.shape[1])[y]).sum(1).mean()),
        "ece": sum(gaps) / len(y),
        "auroc": ranking(right, top),
    }


def ranking(positive: np.ndarray, score: np.ndarray) -> float | None:
    """Compute the ROC-AUC of a score `[n]` for telling `positive` rows from others; None if there is only one kind."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positive, score)) if 0 < positive.sum() < len(positive) else None


# --- Methods that give a standard deviation and an interval of numbers.


Spread = tuple[Tensor, Tensor, Tensor]
"""Standard deviations of the predictions for m molecules, and widths of the intervals below and above them, up to a
factor that is fitted to validation rows, float64 `[m, T]` each."""


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
        level: level of the intervals, between 0 and 1.
    """

    width: ClassVar[int] = 1
    reads_similarity: ClassVar[bool] = False

    def __init__(self, level: float = LEVEL) -> None:
        self.level = level

    def loss(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of each entry, `[B, T]`, from outputs `[B, W, T]` and targets `[B, T]`."""
        raise NotImplementedError(f"{type(self).__name__} has no loss of its own")

    def variance(self, output: Tensor) -> Tensor:
        """Return the variance that networks predict, `[..., T]`, from outputs `[..., W, T]`; 0 by default."""
        return torch.zeros_like(output[..., 0, :])

    def spread(self, output: Tensor) -> Spread:
        """Compute the spread from outputs `[m, K, W, T]` of K networks."""
        variance = self.variance(output).mean(1)
        std = (variance + output[:, :, 0].var(1) if len(output) and output.shape[1] > 1 else variance).sqrt()
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
        super().__init__(level)
        self.tail: float = (1 - level) / 2
        self.normal: float = NormalDist().inv_cdf(1 - self.tail)  # upper quantile of a standard normal distribution

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

    The distance is 1 minus the Tanimoto similarity of Morgan counts, see `gtx.prediction.domain`; it stands behind
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


UNCERTAINTY_METHODS: dict[str, type[UncertaintyMethod]] = {
    "none": UncertaintyMethod,
    "variance": Variance,
    "quantiles": Quantiles,
    "evidential": Evidential,
    "similarity": Similarity,
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
            scores |= _score_std(error, std[rows, t])
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


def _score_std(error: np.ndarray, std: np.ndarray) -> dict[str, float | None]:
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
