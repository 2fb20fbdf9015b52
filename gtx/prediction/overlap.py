"""Molecules of a table that the model learned from: what scores of a table with targets must say beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gtx.data.rows import Row
from gtx.prediction.training_rows import TrainingRows
from gtx.tasks.task import Answers, Task


@dataclass(frozen=True)
class Overlap:
    """From how many molecules of a table the model learned.

    A kernel that has a share in the prediction learned from the validation rows too.

    Attributes:
        trained: molecules from which it did.
        rows: molecules that could be read.
        sampled: the model file keeps only some of these, so there may be more.
        metrics: scores of the other molecules alone, as in `metrics.json`; None where nothing was measured of them.
    """

    trained: int
    rows: int
    sampled: bool
    metrics: dict[str, Any] | None

    def __str__(self) -> str:
        which = f"{'at least ' * self.sampled}{self.trained:,}"
        said = f"the model has learned from {which} of these {self.rows:,} molecules"
        if self.trained == self.rows:
            return f"{said}: the scores say nothing of new molecules"
        return said if self.metrics is None else f"{said}; the other {self.rows - self.trained:,} alone:"


class Trained:
    """Follows a table as it is predicted.

    Args:
        training: what the model file keeps.
        task: of the model.
        columns: of the table.
    """

    def __init__(self, training: TrainingRows, task: Task, columns: Sequence[str]) -> None:
        self.known, self.sampled = set(training.smiles), len(training) < training.trained
        self.others = task.scores(columns)
        self.trained = self.rows = 0

    def add(self, rows: Sequence[Row], answers: Answers, smiles: Sequence[str | None]) -> None:
        """Take in some rows, their answers and their canonical SMILES."""
        new = np.array([i for i, text in enumerate(smiles) if text not in self.known], np.int64)
        self.rows += len(rows)
        self.trained += len(rows) - len(new)
        if len(new):
            self.others.add([rows[i] for i in new], answers.subset(new))

    def overlap(self) -> Overlap | None:
        """What came of it; None where the model learned from no molecule."""
        return Overlap(self.trained, self.rows, self.sampled, self.others.metrics()) if self.trained else None
