"""Classes by name: which labels a column holds, and the number of each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtx.data.targets import BLANKS, parse_number

POSITIVE = frozenset({"1", "active", "yes", "true", "positive", "pos", "toxic", "high", "y", "t", "hit"})
"""Labels that name the class one looks for, in any case."""


def label(cell: str) -> str | None:
    """The label in a cell, without white space around it; a number in its shortest form; None for a blank."""
    cell = cell.strip()
    if cell.lower() in BLANKS:
        return None
    number = parse_number(cell)
    return f"{number:.15g}" if np.isfinite(number) else cell


def distinct(cells: Sequence[str]) -> tuple[str, ...]:
    """The different labels in order: numbers by size, then texts, of which one that `POSITIVE` names comes last."""

    def key(text: str) -> tuple:
        number = parse_number(text)
        known = np.isfinite(number)
        return not known, number if known else 0.0, text.lower() in POSITIVE, text

    return tuple(sorted({found for cell in cells if (found := label(cell)) is not None}, key=key))


def indices(cells: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """The place of each cell's label among `labels`, float64 `[n]`: NaN for blanks, infinity for other labels."""
    place = {name: float(i) for i, name in enumerate(labels)}
    found = [label(cell) for cell in cells]
    return np.array([np.nan if name is None else place.get(name, np.inf) for name in found], np.float64)


def listed(labels: Sequence[str], most: int = 8) -> str:
    """The labels in words, the first few of many."""
    shown = ", ".join(map(repr, labels[:most]))
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
