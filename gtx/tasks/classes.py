"""What tasks of classes share: probabilities that are calibrated, and sets of classes that hold the true one."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gtx.data.columns import listed
from gtx.errors import InputError
from gtx.schema import ListOf, OrNone, flag, number, one_of
from gtx.tasks.calibration import evaluate_probabilities, fit_isotonic, fit_temperature, stepped, tempered
from gtx.tasks.conformal import LEVEL, conformal_half_width
from gtx.tasks.metrics import mean_scores
from gtx.tasks.numbers import NumberTask
from gtx.tasks.options import ClassOptions, learned
from gtx.tasks.predictions import Predictions
from gtx.tasks.task import Task

BETWEEN = "|"
"""What stands between the classes of a set."""


@dataclass(frozen=True)
class ClassTask(NumberTask, ClassOptions):
    r"""A task whose predictions are probabilities of classes, of each or, of two, of the second.

    With `sets`, \(\{ c : p_c \ge 1 - q \}\) and the likeliest class is the set of a molecule: q is the
    \(\lceil (n + 1) \cdot 0.9 \rceil\)-th of \(1 - p_y\) of n held-out rows, so that 90 % of sets hold the true class,
    by which the sets are the smallest there are (Sadinle et al. 2019, https://doi.org/10.1080/01621459.2017.1395341).

    Args:
        temperatures: per target, learned of validation rows where the calibration is "temperature".
        curves: per target and class, see `gtx.tasks.calibration.fit_isotonic`, where it is "isotonic".
        margins: per target q, None where there are too few validation rows.
    """

    temperatures: tuple[float, ...] | None = learned()
    curves: tuple[Any, ...] | None = learned()
    margins: tuple[float | None, ...] | None = learned()

    @abstractmethod
    def labels(self, target: int) -> tuple[str, ...]:
        """The labels of a target's classes."""

    def adopting(self, other: Task) -> Self:
        for t, at in enumerate(self.known(other)):
            if at >= 0 and other.labels(at) != self.labels(t):
                known, here = listed(other.labels(at)), listed(self.labels(t))
                raise InputError(f"{self.targets[t]}: the model knows the classes {known}, the table {here}")
        return self

    def shares(self, prediction: np.ndarray, target: int) -> np.ndarray:
        """The probability of each class of a target, `[m, C]`, of predictions `[m, P]`."""
        p = prediction[:, self.places[target].columns]
        return np.concatenate([1 - p, p], axis=1) if p.shape[1] == 1 else p

    def corrected(self, mean: np.ndarray) -> np.ndarray:
        parts = []
        for t, width in enumerate(self.widths):
            p = self.shares(mean, t)
            if self.temperatures is not None:
                p = tempered(p, self.temperatures[t])
            elif self.curves is not None and self.curves[t] is not None:
                p = stepped(p, self.curves[t])
            else:
                p = mean[:, self.places[t].columns]
            parts.append(p[:, -width:])
        return np.concatenate(parts, axis=1)

    def calibrated(self, answers: Predictions, y: np.ndarray) -> Self:
        """Probabilities first, then the sets by these."""
        known = [~np.isnan(column) for column in y.T]
        given = [(y[rows, t].astype(int), self.shares(answers.mean[rows], t)) for t, rows in enumerate(known)]
        task = self
        if self.calibration == "temperature":
            task = replace(self, temperatures=tuple(fit_temperature(*one) for one in given))
        elif self.calibration == "isotonic":
            task = replace(self, curves=tuple(fit_isotonic(*one) for one in given))
        return replace(task, margins=task._margins(task.corrected(answers.mean), y)) if self.sets else task

    def _margins(self, mean: np.ndarray, y: np.ndarray) -> tuple[float | None, ...]:
        found = []
        for t, column in enumerate(y.T):
            rows = ~np.isnan(column)
            lacking = 1 - np.take_along_axis(self.shares(mean[rows], t), column[rows, None].astype(int), 1)
            margin = float(conformal_half_width(lacking, np.zeros_like(lacking))[0])
            found.append(margin if np.isfinite(margin) else None)
        return tuple(found)

    def members_of_sets(self, mean: np.ndarray, target: int) -> np.ndarray:
        """Which classes are in the set of each molecule, bool `[m, C]`; all of them where nothing is known."""
        p = self.shares(mean, target)
        margin = self.margins[target]
        return (p >= 1 - (1 if margin is None else margin)) | (p == p.max(1, keepdims=True))

    def set_kinds(self) -> dict[str, type]:
        """The column of sets, if there is one."""
        return {} if self.margins is None else {"set": str}

    def set_columns(self, mean: np.ndarray, target: int) -> list[np.ndarray]:
        """Sets of a target as text, `[m]`: the labels, in order, with a bar between them."""
        if self.margins is None:
            return []
        labels = self.labels(target)
        rows = self.members_of_sets(mean, target)
        return [np.array([BETWEEN.join(labels[c] for c in row.nonzero()[0]) for row in rows], object)]

    def evaluate_uncertainty(self, y: np.ndarray, answers: Predictions) -> dict[str, Any]:
        """See `gtx.tasks.calibration.evaluate_probabilities`; of sets `coverage`, the share that hold the true class,
        and `size`, how many classes they hold on average."""
        per_target = {}
        for t, name in enumerate(self.targets):
            rows = ~np.isnan(y[:, t]) & answers.finite
            told = y[rows, t].astype(int)
            names = ("nll", "brier", "ece", "auroc", *(("coverage", "size") if self.margins is not None else ()))
            per_target[name] = dict.fromkeys(names)
            if len(told):
                per_target[name] |= evaluate_probabilities(told, self.shares(answers.mean[rows], t))
                if self.margins is not None:
                    held = self.members_of_sets(answers.mean[rows], t)
                    inside = np.take_along_axis(held, told[:, None], 1)
                    per_target[name] |= {"coverage": float(inside.mean()), "size": float(held.sum(1).mean())}
        return mean_scores(per_target)

    def set_notes(self) -> list[str]:
        """What validation rows made of probabilities and sets."""
        lines = []
        if self.temperatures is not None:
            lines.append(f"temperature of probabilities: {', '.join(f'{t:.3g}' for t in self.temperatures)}")
        if self.margins is not None:
            least = ", ".join("any" if m is None else f"{max(0.0, 1 - m):.3g}" for m in self.margins)
            lines.append(f"sets of {LEVEL:.0%}: classes of a probability of {least} or more, and the likeliest")
        return lines

    @classmethod
    def calibration_entries(cls, targets: int) -> dict[str, Any]:
        """What a model file may hold of this for so many targets."""
        line = ListOf(number(0, 1), 1)
        return {
            "calibration": one_of(["none", "temperature", "isotonic"]),
            "sets": flag(),
            "temperatures": OrNone(ListOf(number(1e-3, 1e3), targets, targets)),
            "curves": OrNone(ListOf(OrNone(ListOf(ListOf(line, 2, 2), 2)), targets, targets)),
            "margins": OrNone(ListOf(OrNone(number(0, 1)), targets, targets)),
        }
