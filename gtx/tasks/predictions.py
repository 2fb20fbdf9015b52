"""Predicted numbers, and predicted numbers beside the measured ones of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtx.data.magnitude import LARGEST
from gtx.data.rows import Row


@dataclass(frozen=True)
class Predictions:
    """Numbers for m molecules, in the targets' own units; for classes, probabilities.

    Attributes:
        mean: float64 `[m, P]`, the mean over members; a column per target, or one per class of each target.
        std: float64 `[m, P]`, the standard deviation that a method of uncertainty tells, or that of the members; None
            for a single member.
        low, high: float64 `[m, T]`, bounds of an interval, or None; NaN for a target that has none.
        reach: float64 `[m, T]` each, how far an interval is to reach below and above the mean, but for one factor per
            target; None for equally far everywhere.
        remarks: per molecule, what there is to warn of.
        distance: float64 `[m]`, 1 - similarity to the nearest training molecule, where the task reads it; or None.
        vacuity: float64 `[m, T]`, how little is known of a target's classes, from 0 to 1, where a method tells it; or
            None.
        table: `[m]` each, the columns that `Task.output_columns` names.
    """

    mean: np.ndarray
    std: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    remarks: list[list[str]]
    table: Sequence[np.ndarray] = ()
    reach: tuple[np.ndarray, np.ndarray] | None = None
    distance: np.ndarray | None = None
    vacuity: np.ndarray | None = None

    @property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules that every target has a number for."""
        return np.isfinite(self.mean).all(axis=1)

    def subset(self, rows: np.ndarray) -> Predictions:
        """Those of the molecules `rows`."""
        cut = [None if each is None else each[rows] for each in (self.mean, self.std, self.low, self.high)]
        reach = None if self.reach is None else tuple(each[rows] for each in self.reach)
        distance, vacuity = (None if each is None else each[rows] for each in (self.distance, self.vacuity))
        table = [column[rows] for column in self.table]
        return Predictions(*cut, [self.remarks[i] for i in rows], table, reach, distance, vacuity)

    def columns(self) -> list[np.ndarray]:
        """As `Task.output_columns` names them; NaN or None for a molecule that is not `finite`."""
        blanks = (np.nan if column.dtype.kind == "f" else None for column in self.table)
        return [np.where(self.finite, column, blank) for column, blank in zip(self.table, blanks, strict=True)]


class NumberScores:
    """Predictions beside the measured values, as far as the table holds them: 16 bytes per row and target.

    Args:
        task: of the model, a `gtx.tasks.NumberTask`.
        columns: of the table.
    """

    def __init__(self, task: Any, columns: Sequence[str]) -> None:
        self.task, self.columns = task, columns
        self.held = {t: columns.index(name) for t, name in enumerate(task.targets) if columns.count(name) == 1}
        self.y: list[np.ndarray] = []
        self.bounds: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []

    def add(self, rows: Sequence[Row], answers: Predictions) -> None:
        """Take in some rows and what was predicted for them."""
        if not self.held:
            return
        y = np.full((len(rows), len(self.task.targets)), np.nan)
        for t, place in self.held.items():
            y[:, t] = self.task.values(t, [row.cells[place] for row in rows])
        y = self.task.joined(np.where(np.isinf(y), np.nan, y))
        self.y.append(np.where(np.abs(y) > LARGEST, np.nan, y))  # and what is no number is infinite
        self.prediction.append(answers.mean)
        if (
            len(self.held) == len(self.task.targets)
            and (bounds := self.task.parse_bounds(rows, self.columns)) is not None
        ):
            self.bounds.append(bounds)

    def metrics(self) -> dict[str, Any] | None:
        """As in `metrics.json`; None without a single measured value."""
        if not self.y:
            return None
        y, prediction = np.concatenate(self.y), np.concatenate(self.prediction)
        if np.isnan(y).all() and not self.bounds:
            return None
        found = self.task.evaluate(y, prediction)
        if self.bounds:
            found = self.task.with_kept(found, np.concatenate(self.bounds), prediction)
        names = [self.task.targets[t] for t in self.held]
        return {**found, "per_target": {name: found["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """Nothing: numbers speak for themselves."""
        return []
