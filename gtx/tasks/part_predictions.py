"""Predicted lists, an item for each atom or bond of a molecule, and the same beside those of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gtx.data.lists import list_text
from gtx.data.rows import Row
from gtx.errors import InputError


@dataclass(frozen=True)
class PartPredictions:
    """Predictions for each part of m molecules: numbers in the targets' own units, or probabilities of classes.

    Attributes:
        mean: of each molecule float64 `[a, P]`, the mean over members.
        table: the columns that `Task.output_columns` names; each has of each molecule `[a]` numbers or texts.
        remarks: per molecule, what there is to warn of.
    """

    mean: Sequence[np.ndarray]
    table: Sequence[Sequence[np.ndarray]]
    remarks: list[list[str]]

    @cached_property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules of whose parts every one has numbers."""
        return np.array([np.isfinite(each).all() for each in self.mean], bool)

    def subset(self, rows: np.ndarray) -> PartPredictions:
        """Those of the molecules `rows`."""
        mean, *table = ([each[i] for i in rows] for each in (self.mean, *self.table))
        return PartPredictions(mean, table, [self.remarks[i] for i in rows])

    def columns(self) -> list[np.ndarray]:
        """JSON lists, `[m]` each, as `Task.output_columns` names them; None for a molecule that is not `finite`."""
        return [self._texts(column) for column in self.table]

    def _texts(self, lists: Sequence[np.ndarray]) -> np.ndarray:
        texts = np.empty(len(lists), object)
        for i, (items, finite) in enumerate(zip(lists, self.finite, strict=True)):
            texts[i] = list_text(items) if finite else None
        return texts


class PartScores:
    """Predictions beside the lists of a table, as far as it holds them.

    Args:
        task: of the model, a `gtx.tasks.parts.PartTask`.
        columns: of the table.
    """

    def __init__(self, task: Any, columns: Sequence[str]) -> None:
        self.task = task
        self.held = {t: columns.index(name) for t, name in enumerate(task.targets) if columns.count(name) == 1}
        self.y: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []
        self.unlike = self.unread = 0

    def add(self, rows: Sequence[Row], answers: PartPredictions) -> None:
        """Take in some rows and what was predicted for them; a list that cannot be read, or of another length, is not
        scored."""
        for row, predicted in zip(rows, answers.mean, strict=True):
            y = np.full((len(predicted), len(self.task.targets)), np.nan)
            for t, place in self.held.items():
                try:
                    values = self.task.read(t, row.cells[place])
                except InputError:
                    self.unread += 1
                    continue
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
        one, several = self.task.items
        unlike = f"{self.unlike} lists have another length than one {one} for each {self.task.per} and are not scored"
        unread = f"{self.unread} lists hold something else than {several} that the model knows and are not scored"
        return [unlike] * bool(self.unlike) + [unread] * bool(self.unread)


def lists_of(values: np.ndarray, ptr: np.ndarray) -> list[np.ndarray]:
    """Rows of all molecules, `[R, ...]`, as one array for each: molecule m has the rows `ptr[m]` to `ptr[m + 1]`."""
    return np.split(values, ptr[1:-1])
