"""Kinds of targets in a report, and their words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gtx.tasks import BinaryClassification, FractionRegression, Task
from gtx.tasks.columns import ZERO_ONE, list_labels

# --- Numbers and names as a reader sees them.

PARTS = {"train": "training", "val": "validation", "folds": "out-of-fold", "test": "test"}
"""The parts of a split and what a sentence calls them. `folds` are, in place of `val`, training molecules predicted by
the network of their fold."""

TITLES = {
    "mean": "Training mean",
    "ridge": "Ridge regression",
    "logistic": "Logistic regression",
    "random_forest": "Random forest",
    "kernel": "Kernel ridge",
    "alike": "Mean of those alike",
}
"""Names of the baselines for readers."""


def titles(metrics: Mapping[str, Any]) -> dict[str, str]:
    """Names of a task's metrics for readers."""
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
    """Format a score: an error like any number, a count as it is, a share with three decimals."""
    if isinstance(value, int):
        return f"{value:,}"
    if value is None or math.isnan(value) or metric in ("rmse", "mae", "kl", "perplexity"):
        return number(value)
    return f"{value:z.3f}".replace("-", "−")


def signed(value: float) -> str:
    """Format a number with its sign."""
    return f"+{number(value)}" if value > 0 else number(value)


def sentence(text: str) -> str:
    """With a capital letter and a full stop, as a user's text may lack them."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '?', '!')) else '.'}"


# --- How a report speaks of each kind of target: measured values, predictions and errors as a reader sees them.


class Numbers:
    """Targets of a task that are numbers."""

    has_thresholds = False
    """True if predictions are probabilities that a threshold turns into classes."""

    def __init__(self, task: Any) -> None:
        self.task = task

    def lede(self, several: bool) -> str:
        """Complete the first sentence after the names of the targets."""
        return ", as fractions that add up to 1" if isinstance(self.task, FractionRegression) else ""

    def errors(self, t: int, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Compute the signed errors of predictions of a target, `[m]`; NaN for blanks."""
        return self.task.errors(prediction, y)

    def value_text(self, t: int, y: float) -> str:
        """Format a measured value."""
        return number(float(y))

    def prediction_text(self, t: int, prediction: Any) -> str:
        """Format a prediction."""
        return number(float(prediction))

    def summary(self, t: int, y: np.ndarray) -> dict[str, str]:
        """Summarise the distribution of the measured values `[m]` of a target in words."""
        names = ("mean", "sd", "smallest", "largest")
        if not len(y):
            return {name: number(None) for name in names}
        mean, sd = float(y.mean()), float(y.std())
        if abs(mean) < 1e-6 * sd:
            mean = 0.0  # the mean of z-scores, but for rounding
        return {name: number(value) for name, value in zip(names, (mean, sd, y.min(), y.max()), strict=True)}

    def goodness(self, t: int, y: np.ndarray, prediction: np.ndarray) -> dict[str, str]:
        """Summarise in words how good one or more predictions for one kind of atom or bond are."""
        error = self.errors(t, y, prediction)
        means = {"mean measured": y.mean(), "RMSE": np.sqrt(np.square(error).mean()), "mean error": error.mean()}
        return {name: number(float(value)) for name, value in means.items()}


class Labels(Numbers):
    """Targets that are classes, of which each has a probability."""

    def lede(self, several: bool) -> str:
        return (
            ", each as one of several classes" if several else f", as one of the classes {list_labels(self.labels(0))}"
        )

    def labels(self, t: int) -> tuple[str, ...]:
        """Name the classes of a target."""
        return self.task.columns.labels(t)

    def likeliest(self, prediction: np.ndarray) -> np.ndarray:
        """Find the number of the likeliest class of each molecule, `[m]`."""
        return _of_each_class(prediction).argmax(1)

    def errors(self, t: int, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """Compute 1 minus the probability of the measured class."""
        known = ~np.isnan(y)
        measured = np.where(known, y, 0).astype(int)[:, None]
        return np.where(known, 1 - np.take_along_axis(_of_each_class(prediction), measured, 1)[:, 0], np.nan)

    def value_text(self, t: int, y: float) -> str:
        return self.labels(t)[int(y)]

    def prediction_text(self, t: int, prediction: Any) -> str:
        p = _of_each_class(np.asarray(prediction)[None])[0]
        return f"{self.labels(t)[int(p.argmax())]} ({p.max():.2f})"

    def classes_shown(self, t: int) -> dict[int, str]:
        """Names of the classes whose shares are shown, by number."""
        several = len(self.task.targets) > 1
        return {k: f"{self.task.targets[t]} {name}" if several else name for k, name in enumerate(self.labels(t))}

    def summary(self, t: int, y: np.ndarray) -> dict[str, str]:
        counts = ", ".join(f"{name} {int((y == k).sum()):,}" for k, name in enumerate(self.labels(t)))
        return {f"{self.task.level}s of each class": counts}

    def goodness(self, t: int, y: np.ndarray, prediction: np.ndarray) -> dict[str, str]:
        right = (self.likeliest(prediction) == y).mean()
        of_measured = 1 - self.errors(t, y, prediction).mean()
        return {"accuracy": f"{right:.3f}", "mean probability of the measured class": number(float(of_measured))}


class Probabilities(Labels):
    """Targets that are one of two classes, of which the second has a probability."""

    has_thresholds = True

    def lede(self, several: bool) -> str:
        return f", {'each ' * several}as the probability of class {self.labels(0)[1] if not several else 1}"

    errors = Numbers.errors

    def prediction_text(self, t: int, prediction: Any) -> str:
        return number(float(prediction))

    def classes_shown(self, t: int) -> dict[int, str]:
        """Name the second class alone."""
        name = self.task.targets[t]
        return {1: name if self.labels(t) == ZERO_ONE else f"{name} {self.labels(t)[1]}"}

    def summary(self, t: int, y: np.ndarray) -> dict[str, str]:
        return {"share of the second class": number(y.mean() if len(y) else None)}


def kind_of(task: Task) -> Numbers:
    """Choose the wording and figures for a task of numbers or classes, of molecules, atoms or bonds."""
    if not task.discrete:
        return Numbers(task)
    of_molecules = isinstance(task, BinaryClassification) and task.level == "molecule"
    return (Probabilities if of_molecules else Labels)(task)


def _of_each_class(prediction: np.ndarray) -> np.ndarray:
    """Return the probability of each class `[R, C]`, from that or from the second of two `[R]`."""
    return np.stack([1 - prediction, prediction], 1) if prediction.ndim == 1 else prediction
