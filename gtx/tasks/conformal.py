"""Split-conformal prediction intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

LEVEL = 0.9
"""Share of new molecules whose value the interval should cover."""


def conformal_half_width(y: np.ndarray, prediction: np.ndarray, level: float = LEVEL) -> np.ndarray:
    r"""Half the width of an interval around a prediction, by how far off the held-out predictions were.

    With the n held-out residuals in ascending order it is the \(\lceil (n + 1) \cdot level \rceil\)-th of
    \(|y - \hat y|\) (Lei et al. 2018, https://arxiv.org/abs/1604.04173): a molecule exchangeable with the held-out ones
    then lies within with a probability of at least `level`, whatever the model. Rows that also chose the epoch make
    the interval slightly too narrow.

    Args:
        y: `[n, T]`, measured, NaN for blanks; rows that were not trained on.
        prediction: `[n, T]`, in the same units.
        level: coverage, between 0 and 1.

    Returns:
        float64 `[T]` in the targets' units; infinite where there are too few values for that level (fewer than 9 for
        0.9).
    """
    return np.array([_quantile(np.abs(r[~np.isnan(r)]), level) for r in (y - prediction).T])


def _quantile(residuals: np.ndarray, level: float) -> float:
    rank = math.ceil((len(residuals) + 1) * level)
    return float(np.partition(residuals, rank - 1)[rank - 1]) if rank <= len(residuals) else math.inf


def conformal_interval(y: np.ndarray, prediction: np.ndarray, level: float = LEVEL) -> dict[str, Any]:
    """As a model file keeps it: `{"level": ..., "half_width": [...]}`, None where a half-width is infinite."""
    widths = conformal_half_width(y, prediction, level)
    return {"level": level, "half_width": [float(width) if np.isfinite(width) else None for width in widths]}
