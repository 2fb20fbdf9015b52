"""How unlike the training molecules a molecule is."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from torch import Tensor

from gtx.tasks.late_functions import minimize_scalar
from gtx.tasks.uncertainty.method import Method, Spread

FEWEST = 50
"""Held-out values of a target that can tell how errors grow with the distance; of fewer, one width holds for all."""
STEEPEST = 8.0
PRIOR = 2.0


class Similarity(Method):
    r"""An error that grows with the distance d to the nearest training molecule, \(\sigma \propto e^{b d}\).

    The distance is 1 minus the Tanimoto similarity of Morgan counts, see `gtx.prediction.neighbours`; it stands behind
    the outputs of the networks. The slope b of each target, 0 or more, is `distance_slopes` of validation rows. With
    these deviations split-conformal intervals are normalised (Papadopoulos et al. 2002).
    """

    word: ClassVar[str] = "similarity"
    reads_similarity: ClassVar[bool] = True

    def spread(self, output: Tensor) -> Spread:
        """Of distances times slopes, `[m, T]`."""
        std = output.double().exp()
        return Spread(std, std, std)


def distance_slopes(error: np.ndarray, distance: np.ndarray) -> np.ndarray:
    r"""The slope b of each target: the likeliest of Laplace errors of the scale \(c\, e^{b d}\),

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
    known = np.isfinite(error)
    size, far = np.abs(error[known]), distance[known]
    if len(size) < FEWEST or not size.any():
        return 0.0

    def unlikely(slope: float) -> float:
        scale = np.mean(size * np.exp(-slope * far))
        return len(size) * np.log(scale) + slope * far.sum() + slope**2 / (2 * PRIOR**2)

    return float(minimize_scalar(unlikely, bounds=(0, STEEPEST), method="bounded").x)
