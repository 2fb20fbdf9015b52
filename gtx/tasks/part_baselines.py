"""What one gets of atoms or bonds without a model: the mean of those that look alike."""

from __future__ import annotations

import numpy as np


def means_of_alike(codes: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """For each part the mean over the training parts with the same codes; where none has a value, over those with the
    same first code; else over all.

    Args:
        codes: integers `[R, K]`.
        y: `[R, T]`, NaN for blanks; every target has a value in training.
        train: bool `[R]`.

    Returns:
        float64 `[R, T]`.
    """
    found = np.broadcast_to(np.nanmean(y[train], axis=0), y.shape).copy()
    for columns in (codes[:, :1], codes):
        _, kind = np.unique(columns, axis=0, return_inverse=True)
        kind = kind.reshape(-1)
        for t in range(y.shape[1]):
            known = train & ~np.isnan(y[:, t])
            count = np.bincount(kind[known], minlength=kind.max(initial=-1) + 1)
            mean = np.bincount(kind[known], y[known, t], len(count)) / np.maximum(count, 1)
            found[:, t] = np.where(count[kind] > 0, mean[kind], found[:, t])
    return found
