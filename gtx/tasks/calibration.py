"""Calibration: probabilities, conformal intervals and sets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from gtx.base.schema import valid

# --- Split-conformal prediction: intervals of numbers, and sets of classes.

LEVEL = 0.9
"""Share of new molecules whose value an interval or a set should hold, where nothing else is asked for."""
BETWEEN_0_AND_1 = Annotated[float, valid("a number above 0 and below 1", lambda level: 0 < level < 1)]
"""Kind of the level or the coverage of an interval."""
SET_KINDS = ("smallest", "adaptive")
SMALLEST = 1e-300  # reach that errors are divided by, so that 0 / 0 is 0
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
        `fewest`.
    """
    widths = np.full(y.shape[1], np.inf)
    for t, errors in enumerate(relative(y - prediction, reach).T):
        known = np.sort(np.abs(errors[~np.isnan(errors)]))
        if (position := rank(len(known), level)) <= len(known):
            widths[t] = known[position - 1]
    return widths


def relative(error: np.ndarray, reach: Reach | None) -> np.ndarray:
    """Divide signed errors `[n, T]` by the reach on their side."""
    return error if reach is None else error / np.maximum(np.where(error < 0, *reach), SMALLEST)


def conformal_interval(
    y: np.ndarray, prediction: np.ndarray, level: float = LEVEL, reach: Reach | None = None
) -> dict[str, Any]:
    """Compute conformal intervals as a model file stores them: `{"level": ..., "half_width": [...]}`, None where a
    half-width is infinite.
    """
    widths = conformal_half_width(y, prediction, level, reach)
    return {"level": level, "half_width": [float(width) if np.isfinite(width) else None for width in widths]}


def interval_words(interval: dict[str, Any], targets: Sequence[str], unit: str) -> str:
    """Describe the half-widths of the targets, and why one has none."""
    level, widths = interval["level"], interval["half_width"]
    pairs = zip(targets, widths, strict=True)
    each = ", ".join(f"{name} {'none' if width is None else f'±{width:.4g}{unit}'}" for name, width in pairs)
    lacking = f"; none with fewer than {fewest(level)} validation values" if None in widths else ""
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
        kind: one of `SET_KINDS`.
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
