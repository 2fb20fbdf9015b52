"""Answers with more columns after their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FurtherAnswers:
    """Answers, see `gtx.tasks.task.Answers`, and columns that follow theirs.

    Attributes:
        answers: of m molecules; whatever they have, this has too.
        further: `[m]` each.
    """

    answers: Any
    further: list[np.ndarray]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.answers, name)

    def columns(self) -> list[np.ndarray]:
        """Those of the answers, then the others."""
        return [*self.answers.columns(), *self.further]
