"""Classes by name: which labels a column holds, and the number of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gtx.data.targets import BLANKS, parse_number
from gtx.errors import InputError
from gtx.schema import ListOf, text

MOST_CLASSES = 100

POSITIVE = frozenset({"1", "active", "yes", "true", "positive", "pos", "toxic", "high", "y", "t", "hit"})
"""Labels that name the class one looks for, in any case."""


def label(cell: str) -> str | None:
    """The label in a cell, see `written`; None for a blank."""
    return None if cell.strip().lower() in BLANKS else written(cell)


def written(text: str) -> str:
    """A label without white space around it; a number in its shortest form."""
    number = parse_number(text)
    return f"{number:.15g}" if np.isfinite(number) else text.strip()


def distinct(cells: Sequence[str]) -> tuple[str, ...]:
    """The different labels of cells, see `in_order`."""
    return in_order(map(label, cells))


def in_order(labels: Iterable[str | None]) -> tuple[str, ...]:
    """The different labels: numbers by size, then texts, of which one that `POSITIVE` names comes last."""

    def key(text: str) -> tuple:
        number = parse_number(text)
        known = np.isfinite(number)
        return not known, number if known else 0.0, text.lower() in POSITIVE, text

    return tuple(sorted(set(labels) - {None}, key=key))


def indices(cells: Sequence[str], labels: Sequence[str]) -> np.ndarray:
    """The place of each cell's label among `labels`, see `places`."""
    return places(map(label, cells), labels)


def places(found: Iterable[str | None], labels: Sequence[str]) -> np.ndarray:
    """The place of each label that was found among `labels`, float64 `[n]`: NaN for None, infinity for other labels."""
    place = {name: float(i) for i, name in enumerate(labels)}
    return np.array([np.nan if name is None else place.get(name, np.inf) for name in found], np.float64)


def check_count(found: Sequence[str], name: str, task: str, hint: str = "") -> None:
    """Check that the classes in a target column are at least two, not too many, and texts that a model file can store.

    Args:
        found: one class or more.
        name: of the column.
        task: which needs them.
        hint: what else to do where they are too many.

    Raises:
        InputError: they are not.
    """
    if len(found) < 2:
        raise InputError(f"target column {name!r} holds only the class {found[0]!r}; {task} needs two or more")
    if len(found) > MOST_CLASSES:
        many = f"holds {len(found)} different values, e.g. {listed(found, 3)}"
        raise InputError(f"target column {name!r} {many}; {task} takes at most {MOST_CLASSES} classes{hint}")
    ListOf(text()).check(found, f"target column {name!r}, classes")


def listed(labels: Sequence[str], most: int = 8) -> str:
    """The labels in words, the first few of many."""
    shown = ", ".join(map(repr, labels[:most]))
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
