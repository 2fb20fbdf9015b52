"""Standard deviations of the right size."""

from __future__ import annotations

import numpy as np

FEWEST = 10
"""Held-out values of a target that can tell the size of its errors to within a quarter."""


def std_factors(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    r"""By which factor per target standard deviations have the largest Gaussian likelihood for held-out values:

    \[ c = \sqrt{\frac{1}{n} \sum_i \frac{(y_i - \mu_i)^2}{\sigma_i^2}} \]

    (Levi et al. 2022, https://doi.org/10.3390/s22155540, section 3.3; z scaling in chemprop). Which molecule is less
    sure than which stays as it is.

    Args:
        y: `[n, T]`, measured, NaN for blanks.
        mean, std: `[n, T]`.

    Returns:
        float64 `[T]`; 1 for a target of fewer than 10 values, and where either the errors or the deviations are 0.
    """
    return np.array([_factor(*columns) for columns in zip((y - mean).T, std.T, strict=True)])


def _factor(error: np.ndarray, std: np.ndarray) -> float:
    told = ~np.isnan(error) & (std > 0)
    if told.sum() < FEWEST:
        return 1.0
    return float(np.sqrt(np.mean((error[told] / std[told]) ** 2))) or 1.0
