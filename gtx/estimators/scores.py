"""Scores of several targets with blanks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import UndefinedMetricWarning

from gtx.errors import InputError
from gtx.estimators.given import as_columns


def mean_score(score: Callable[..., float], y: np.ndarray, predicted: np.ndarray, weights: Any, fewest: int) -> float:
    """The mean of a score over the targets that have `fewest` different values or more; blanks are left out.

    Args:
        score: of `y`, predictions and `sample_weight`, `[m]` each, such as `sklearn.metrics.r2_score`.
        y: `[n]` or `[n, T]`; NaN and None are blanks.
        predicted: of the same shape.
        weights: `[n]`, or None.
        fewest: different values that the score takes to be defined.

    Returns:
        NaN, with a warning, where no target has so many.

    Raises:
        InputError: y is of another shape.
    """
    if y.shape != predicted.shape:
        raise InputError(f"y must be of shape {list(predicted.shape)}, as the predictions are, not {list(y.shape)}")
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    found = []
    for column, own in zip(as_columns(y).T, as_columns(predicted).T, strict=True):
        known = ~pd.isna(column)
        if len(pd.unique(column[known])) >= fewest:
            found.append(float(score(column[known], own[known], sample_weight=weights[known])))
    if not found:
        warnings.warn(
            f"the score is not defined: no target has {fewest} different values", UndefinedMetricWarning, stacklevel=3
        )
        return float("nan")
    return float(np.mean(found))
