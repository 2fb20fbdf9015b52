"""How large a target may be."""

from __future__ import annotations

import numpy as np

LARGEST = 1e30
"""The largest target, with either sign. Squares and their sums stay far below the largest float64, 1.8e308, and the
target itself below the largest float32, 3.4e38. What file formats write for a missing number (9.97e36, 1.8e308) is
larger."""

LIMIT = f"a target lies between -{LARGEST:g} and {LARGEST:g}; leave the cell empty where there is no value"


def too_large(y: np.ndarray) -> tuple[int, int] | None:
    """Row and column of the first target that is beyond the limit; None if there is none.

    Args:
        y: `[n, T]`, NaN for blanks.
    """
    found = np.argwhere(np.abs(y) > LARGEST)
    return tuple(found[0].tolist()) if len(found) else None
