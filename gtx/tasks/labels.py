"""Labels of classes: the labels in a column, and the index of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gtx.data.targets import BLANKS, parse_number
from gtx.errors import InputError
from gtx.schema import ListOf, text

MOST_CLASSES = 100

POSITIVE = frozenset({"1", "active", "yes", "true", "positive", "pos", "toxic", "high", "y", "t", "hit"})
"""Labels of a positive class, upper or lower case."""


def label(cell: str) -> str | None:
    """Read the label in a cell, see `written`; None for a blank."""
    return None if cell.strip().lower() in BLANKS else written(cell)


def written(text: str) -> str:
    """Normalise a label: without white space around it; a number in its shortest form."""
    number = parse_number(text)
    return f"{number:.15g}" if np.isfinite(number) else text.strip()


def distinct(cells: Sequence[str]) -> tuple[str, ...]:
    """List the distinct labels of cells, see `in_order`."""
    return in_order(map(label, cells))


def in_order(labels: Iterable[str | None]) -> tuple[str, ...]:
    """Sort the distinct labels: numbers by size, then texts; a label of `POSITIVE` comes last."""

    def key(text: str) -> tuple:
        number = parse_number(text)
        is_number = np.isfinite(number)
        return not is_number, number if is_number else 0.0, text.lower() in POSITIVE, text

    return tuple(sorted({label for label in labels if label is not None}, key=key))


def indices(cells: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """Look up the index of each cell's label among `labels`, see `label_indices`."""
    return label_indices(map(label, cells), labels)


def label_indices(found: Iterable[str | None], labels: Sequence[str]) -> np.ndarray:
    """Look up the index of each label among `labels`, float64 `[n]`: NaN for None, infinity for unknown labels."""
    index = {name: float(i) for i, name in enumerate(labels)}
    return np.array([np.nan if name is None else index.get(name, np.inf) for name in found], np.float64)


def check_count(found: Sequence[str], name: str, task: str, hint: str = "") -> None:
    """Check that a target column has two classes or more, not too many, and texts that a model file can store.

    Args:
        found: labels of the column, one or more.
        name: name of the column.
        task: name of the task.
        hint: text after the error of too many classes.

    Raises:
        InputError: a condition does not hold.
    """
    if len(found) < 2:
        raise InputError(f"target column {name!r} holds only the class {found[0]!r}; {task} needs two or more")
    if len(found) > MOST_CLASSES:
        many = f"holds {len(found)} different values, e.g. {listed(found, 3)}"
        raise InputError(f"target column {name!r} {many}; {task} takes at most {MOST_CLASSES} classes{hint}")
    ListOf(text()).check(found, f"target column {name!r}, classes")


def listed(labels: Sequence[str], most: int = 8) -> str:
    """List labels in a text, the first few of many."""
    shown = ", ".join(map(repr, labels[:most]))
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
