"""Predicted lists of numbers, one for each atom or bond of a molecule, and the same beside those of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gtx.data.lists import list_text
from gtx.data.rows import Row


@dataclass(frozen=True)
class PartPredictions:
    """T numbers for each part of m molecules, in the targets' own units.

    Attributes:
        mean: of each molecule float64 `[a, T]`, the mean over members.
        std: the same of the members' standard deviation; None for a single member.
        remarks: per molecule, what there is to warn of.
        targets: T.
    """

    mean: Sequence[np.ndarray]
    std: Sequence[np.ndarray] | None
    remarks: list[list[str]]
    targets: int

    @cached_property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules of whose parts every one has numbers."""
        return np.array([np.isfinite(each).all() for each in self.mean], bool)

    @property
    def joined(self) -> np.ndarray:
        """float64 `[R, T]`: the parts of all molecules, one after the other."""
        return np.concatenate([np.empty((0, self.targets)), *self.mean])

    def subset(self, rows: np.ndarray) -> PartPredictions:
        """Those of the molecules `rows`."""
        mean, std = ([each[i] for i in rows] if each is not None else None for each in (self.mean, self.std))
        return PartPredictions(mean, std, [self.remarks[i] for i in rows], self.targets)

    def columns(self) -> list[np.ndarray]:
        """JSON lists, `[m]` each, as `Task.output_columns` names them; None for a molecule that is not `finite`."""
        kinds = [kind for kind in (self.mean, self.std) if kind is not None]
        return [self._texts(kind, t) for t in range(self.targets) for kind in kinds]

    def _texts(self, lists: Sequence[np.ndarray], target: int) -> np.ndarray:
        texts = np.empty(len(lists), object)
        for i, (values, finite) in enumerate(zip(lists, self.finite, strict=True)):
            texts[i] = list_text(values[:, target]) if finite else None
        return texts


class PartScores:
    """Predictions beside the lists of a table, as far as it holds them.

    Args:
        task: of the model, a `gtx.tasks.parts.PartNumbers`.
        columns: of the table.
    """

    def __init__(self, task: Any, columns: Sequence[str]) -> None:
        self.task = task
        self.held = {t: columns.index(name) for t, name in enumerate(task.targets) if columns.count(name) == 1}
        self.y: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []
        self.unlike = 0

    def add(self, rows: Sequence[Row], answers: PartPredictions) -> None:
        """Take in some rows and what was predicted for them; a list of another length is not scored."""
        for row, predicted in zip(rows, answers.mean, strict=True):
            y = np.full(predicted.shape, np.nan)
            for t, place in self.held.items():
                values = self.task.parsed(row.cells[place])
                if values is not None and len(values) != len(y):
                    self.unlike += 1
                elif values is not None:
                    y[:, t] = values
            self.y.append(y)
            self.prediction.append(predicted)

    def metrics(self) -> dict[str, Any] | None:
        """As in `metrics.json`; None without a single measured value."""
        if not self.held or not self.y or np.isnan(y := np.concatenate(self.y)).all():
            return None
        found = self.task.evaluate(y, np.concatenate(self.prediction))
        names = [self.task.targets[t] for t in self.held]
        return {**found, "per_target": {name: found["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """How many lists were not scored."""
        each = f"one number for each {self.task.per}"
        return [f"{self.unlike} lists have another length than {each} and are not scored"] if self.unlike else []


def lists_of(values: np.ndarray, ptr: np.ndarray) -> list[np.ndarray]:
    """Rows of all molecules, `[R, *]`, as one array for each: molecule m has the rows `ptr[m]` to `ptr[m + 1]`."""
    return np.split(values, ptr[1:-1])
