"""Measured numbers that lie far from the others: a typing error, another unit, or values that span magnitudes."""

from __future__ import annotations

import numpy as np

from gtx.data.ledger import counted
from gtx.dataset.rows import Dataset
from gtx.tasks import Regression

FAR = 20
"""Interquartile ranges from the median; of a normal distribution no value is so far off."""


def outlier_lines(dataset: Dataset) -> list[str]:
    """A line for each target with such values."""
    if not isinstance(dataset.task, Regression):
        return []
    lines = []
    for name, y in zip(dataset.task.targets, dataset.y.T, strict=True):
        known = np.flatnonzero(~np.isnan(y))
        low, middle, high = np.percentile(y[known], (25, 50, 75)) if len(known) else (0, 0, 0)
        off = np.abs(y[known] - middle)
        far = int((off > FAR * (high - low)).sum())
        if high > low and far:
            first = known[off.argmax()]
            most = f"{counted(far, 'value')} far from the others, half of which lie from {low:.4g} to {high:.4g}"
            lines.append(
                f"warning: {name} has {most}; the farthest is {y[first]:.4g} in {dataset.place_words(first)}: a typing "
                "error, or another unit? Of values that span magnitudes, train on the logarithm"
            )
    return lines
