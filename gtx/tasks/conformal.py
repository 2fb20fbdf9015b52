"""Split-conformal prediction: intervals of numbers, and sets of classes."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from gtx.schema import Value

LEVEL = 0.9
"""Share of new molecules whose value an interval or a set should hold, where nothing else is asked for."""
BETWEEN_0_AND_1 = Value(
    "a number above 0 and below 1",
    lambda level: isinstance(level, (int, float)) and not isinstance(level, bool) and 0 < level < 1,
)
"""What a level, or a coverage, may be."""
SET_KINDS = ("smallest", "adaptive")
SMALLEST = 1e-300  # of a reach, so that an error of 0 is within one of 0
Reach = tuple[np.ndarray, np.ndarray]
"""How far an interval is to reach below and above predictions, `[n, T]` each."""


def rank(rows: int, level: float) -> int:
    r"""Which of so many held-out scores, in ascending order from 1, bounds intervals or sets of a level:
    \(\lceil (n + 1) \cdot level \rceil\), of the level as it is written in decimals; above n where n are too few."""
    return math.ceil((rows + 1) * Fraction(str(level)))


def fewest(level: float) -> int:
    """How many held-out values a level takes: 9 for 0.9, 19 for 0.95, 99 for 0.99."""
    exact = Fraction(str(level))
    return math.ceil(exact / (1 - exact))


def percent(level: float) -> str:
    """A level as a reader sees it, such as `95%`, `99.5%`."""
    return f"{100 * level:g}%"


def conformal_half_width(
    y: np.ndarray, prediction: np.ndarray, level: float = LEVEL, reach: Reach | None = None
) -> np.ndarray:
    r"""Half the width of an interval around a prediction, by how far off the held-out predictions were.

    With the n held-out residuals in ascending order it is the \(\lceil (n + 1) \cdot level \rceil\)-th of
    \(|y - \hat y|\) (Lei et al. 2018, https://arxiv.org/abs/1604.04173): a molecule exchangeable with the held-out ones
    then lies within with a probability of at least `level`, whatever the model. Rows that also chose the epoch make
    the interval slightly too narrow.

    Where a model says how far off each prediction may be, residuals are divided by that, and so is the half-width: the
    interval is normalised (Papadopoulos et al. 2002), wide where the model is unsure, and holds as many on average.

    Args:
        y: `[n, T]`, measured, NaN for blanks; rows that were not trained on.
        prediction: `[n, T]`, in the same units.
        level: coverage, between 0 and 1.
        reach: `[n, T]` each, how far an interval is to reach below and above its prediction, but for one factor.

    Returns:
        float64 `[T]` in the targets' units, or with a reach the factor; infinite where there are too few values for
        that level, see `fewest`.
    """
    return np.array([_quantile(np.abs(r[~np.isnan(r)]), level) for r in relative(y - prediction, reach).T])


def relative(error: np.ndarray, reach: Reach | None) -> np.ndarray:
    """Errors `[n, T]`, with a sign, by how far off they were to be on their side."""
    return error if reach is None else error / np.maximum(np.where(error < 0, *reach), SMALLEST)


def _quantile(residuals: np.ndarray, level: float) -> float:
    place = rank(len(residuals), level)
    return float(np.partition(residuals, place - 1)[place - 1]) if place <= len(residuals) else math.inf


def conformal_interval(
    y: np.ndarray, prediction: np.ndarray, level: float = LEVEL, reach: Reach | None = None
) -> dict[str, Any]:
    """As a model file keeps it: `{"level": ..., "half_width": [...]}`, None where a half-width is infinite."""
    widths = conformal_half_width(y, prediction, level, reach)
    return {"level": level, "half_width": [float(width) if np.isfinite(width) else None for width in widths]}


def interval_words(interval: dict[str, Any], unit: str) -> str:
    """Half-widths in words, and why a target has none."""
    level, widths = interval["level"], interval["half_width"]
    each = ", ".join("none" if width is None else f"±{width:.4g}{unit}" for width in widths)
    lacking = f"; none with fewer than {fewest(level)} validation values" if None in widths else ""
    return f"intervals of {percent(level)}: {each}{lacking}"


def unlikeliness(p: np.ndarray, kind: str) -> np.ndarray:
    r"""By which score classes enter a set, the lowest first: those of a score up to that which held-out rows have for
    their true classes, at the rank of `conformal_half_width`.

    "smallest": \(1 - p_c\), by which sets are the smallest on average (Sadinle et al. 2019,
    https://doi.org/10.1080/01621459.2017.1395341). "adaptive": what all likelier classes have together, and half of
    what the class itself has,

    \[ s_c = \sum_{k:\, p_k > p_c} p_k + \tfrac{1}{2}\, p_c \]

    (Romano et al. 2020, arXiv:2006.02544, in whose equation a random number from 0 to 1 stands for the half; so a
    molecule has the same set whenever it is asked for). Sets are then larger where more classes are possible, and hold
    the true one for about as many hard molecules as easy ones. Of two classes both kinds have the same sets.

    Args:
        p: probabilities, `[n, C]`.
        kind: one of `SET_KINDS`.

    Returns:
        `[n, C]`, from 0 to 1.
    """
    if kind == "smallest":
        return 1 - p
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, 1)
    scores = np.empty_like(p)
    np.put_along_axis(scores, order, ranked.cumsum(1) - ranked / 2, 1)
    return np.clip(scores, 0, 1)
