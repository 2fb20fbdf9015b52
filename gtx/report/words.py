"""Numbers and names as a reader sees them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

PARTS = {"train": "training", "val": "validation", "test": "test"}
"""The parts of a split and what a sentence calls them."""

TITLES = {
    "mean": "Training mean",
    "ridge": "Ridge regression",
    "logistic": "Logistic regression",
    "poisson": "Poisson regression",
    "random_forest": "Random forest",
    "kernel": "Kernel ridge",
    "alike": "Mean of those alike",
}
"""What a reader calls each baseline."""


def titles(metrics: Mapping[str, Any]) -> dict[str, str]:
    """What a reader calls each metric of a task."""
    return {name: metric.title for name, metric in metrics.items()}


def number(value: float | None) -> str:
    """Three digits that count, and a true minus: `0.290`, `−1.20`, `12,345`; a dash for None."""
    if value is None or math.isnan(value):
        return "–"
    size = abs(value)
    if size < 1e-12:
        return "0"  # what rounding left of it
    form = ".1e" if size < 1e-3 else "#.3g" if size < 1000 else ",.0f"
    return f"{value:{form}}".rstrip(".").replace("-", "−")


def score(value: float | None, metric: str) -> str:
    """An error like any number; a count as it is; what cannot exceed 1 with three decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    if value is None or math.isnan(value) or metric in ("rmse", "mae", "deviance", "kl", "perplexity"):
        return number(value)
    return f"{value:z.3f}".replace("-", "−")


def signed(value: float) -> str:
    """The same with a sign before it."""
    return f"+{number(value)}" if value > 0 else number(value)


def in_unit(unit: str) -> str:
    """` (unit)`, or nothing without one."""
    return f" ({unit})" if unit else ""


def count(number: int, noun: str) -> str:
    """`1 molecule`, `1,128 molecules`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def flat(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Nested settings as lines: `model.channels`, `128`."""
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{above}{name}.")
        elif isinstance(value, float):
            yield f"{above}{name}", f"{value:.6g}"
        else:
            yield f"{above}{name}", ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
