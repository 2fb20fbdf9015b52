"""A split by time: the past trains, the present validates, the future is test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtx.data.splits import Split, ordered_split


def times(cells: Sequence[str]) -> np.ndarray:
    """Cells as numbers that can be compared: float64 `[n]`, NaN for those that cannot be read.

    All are numbers, such as years, or all are dates as ISO 8601 writes them: `2024`, `2024-05`, `2024-05-17`,
    `2024-05-17T08:30:00+02:00`. What more of the cells can be read as decides. 03/04/2024 is no such date: it is March
    to some and April to others.
    """
    import pandas as pd

    texts = pd.Series([cell.strip() for cell in cells], dtype=str)
    numbers = pd.to_numeric(texts, errors="coerce").to_numpy(float)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    dates = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
    if dates.notna().sum() <= np.isfinite(numbers).sum():
        return numbers
    microseconds = dates.dt.as_unit("us").astype("int64").to_numpy(float)
    return np.where(dates.notna(), microseconds, np.nan)


def time_split(when: np.ndarray, sizes: Sequence[float] = (0.8, 0.1, 0.1)) -> Split:
    """The oldest rows train, the next validate, the latest are test; rows of one time are in one part.

    Args:
        when: float `[n]`, of each row.
        sizes: as in `random_split`; kept as nearly as rows of one time allow.

    Raises:
        InputError: for bad sizes, or fewer than three different times.
    """
    _, row = np.unique(when, return_inverse=True)
    order = np.argsort(row, kind="stable")
    return ordered_split(np.split(order, np.flatnonzero(np.diff(row[order])) + 1), sizes, "times")
