"""A trained model."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from gtx.tasks import Task


@dataclass
class Member:
    """A trained model.

    Attributes:
        model: with the averaged weights of the best epoch, in evaluation mode, on the CPU.
        task: what it learned, fitted: from its outputs to answers.
        history: one row per epoch, as in `log.csv`.
        best_epoch: the epoch kept, counted from 0.
        best_score: its `val_score`; infinite without validation molecules.
    """

    model: nn.Module
    task: Task
    history: list[dict[str, float]]
    best_epoch: int
    best_score: float

    @property
    def batch_pairs(self) -> int | None:
        """The budget of a batch that it was trained with, less than was asked for where memory was short."""
        return self.history[-1].get("batch_pairs") if self.history else None
