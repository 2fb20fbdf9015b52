"""Evaluation and scaling of standard deviations and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from gtx.tasks.metrics import mean_scores
from gtx.tasks.options import roc_auc_score, spearmanr

# --- Standard deviations of the right size.

FEWEST = 10
"""Least number of held-out values of a target; they give the size of its errors to within a quarter."""


def std_factors(y: np.ndarray, mean: np.ndarray, std: np.ndarray) -> np.ndarray:
    r"""Fit a factor per target that makes standard deviations likeliest for held-out values, as of a Gaussian:

    \[ c = \sqrt{\frac{1}{n} \sum_i \frac{(y_i - \mu_i)^2}{\sigma_i^2}} \]

    (Levi et al. 2022, https://doi.org/10.3390/s22155540, section 3.3; z scaling in chemprop). The order of the
    molecules stays as it is.

    Args:
        y: `[n, T]`, measured, NaN for blanks.
        mean, std: `[n, T]`.

    Returns:
        float64 `[T]`; 1 for a target of fewer than 10 values, and where either the errors or the deviations are 0.
    """
    return np.array([_factor(*columns) for columns in zip((y - mean).T, std.T, strict=True)])


def _factor(error: np.ndarray, std: np.ndarray) -> float:
    rows = ~np.isnan(error) & (std > 0)
    if rows.sum() < FEWEST:
        return 1.0
    return float(np.sqrt(np.mean((error[rows] / std[rows]) ** 2))) or 1.0


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

    Args:
        targets: names of the T targets.
        y: `[n, T]`, NaN for blanks.
        mean, std, low, high: `[n, T]` each, or None.
        distance: `[n]`, to the nearest training molecule; None: no scores of thirds.

    Returns:
        The mean of each score over the targets where it is defined, and `per_target`; None where it is not. The scores
        of what is None are left out; without any of them the whole is empty.
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
                scores |= _by_distance(inside, width, distance[rows])
        per_target[name] = scores
    return mean_scores(per_target) if names else {}


def _by_distance(inside: np.ndarray, width: np.ndarray, distance: np.ndarray) -> dict[str, float]:
    """Compute coverage and width of each third of the molecules."""
    thirds = np.array_split(np.argsort(-distance, kind="stable"), 3)
    means = [float(values[rows].mean()) for values in (inside, width) for rows in thirds]
    return dict(zip(BY_DISTANCE, means, strict=True))


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
        large = size > np.quantile(size, 1 - WORST)
        scores["spearman"] = float(spearmanr(std, size).statistic)
        scores["auroc"] = float(roc_auc_score(large, std)) if 0 < large.sum() < len(large) else None
    return {name: value if value is not None and np.isfinite(value) else None for name, value in scores.items()}


def bins_by_std(error: np.ndarray, std: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Group molecules by standard deviation, 20 or more in a group.

    Returns:
        The root mean square of the deviations and that of the errors, `[bins]` each, in ascending order.
    """
    groups = np.array_split(np.argsort(std, kind="stable"), int(np.clip(len(std) // A_BIN, 1, MOST_BINS)))
    stated, actual = (np.array([np.sqrt(np.mean(x[rows] ** 2)) for rows in groups]) for x in (std, error))
    return stated, actual


def calibration_error(error: np.ndarray, std: np.ndarray) -> float:
    r"""Compute the expected normalised calibration error, the mean over groups of molecules of like \(\sigma\) of

    \[ |\mathrm{RMSE} - \mathrm{RMS}\,\sigma| \; / \; \mathrm{RMS}\,\sigma \]

    (Levi et al. 2022, https://doi.org/10.3390/s22155540); 0 at best.

    By chance alone it is about \(1 / \sqrt{\pi m}\) with m molecules in a group, 0.13 of 20 (Pernot 2023,
    arXiv:2305.11905, on how it depends on the number of groups).
    """
    stated, actual = bins_by_std(error, std)
    return float(np.mean(np.abs(actual - stated) / stated))
