"""What a task has to know; all else about a run is the same for every task."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from gtx.prediction import ModelHeader
from gtx.prediction.base import Answers, BasePredictor
from gtx.training import Member, TrainSettings
from gtx.workflow.dataset import Dataset, DataSettings


@dataclass(frozen=True)
class Judged:
    """A trained model and how good it is.

    Attributes:
        predictor: with all that its file is to hold, but the metrics.
        answers: of every molecule of the data set.
        metrics: as in `metrics.json`.
    """

    predictor: BasePredictor
    answers: Answers
    metrics: dict[str, Any]


class Task(Protocol):
    """From molecules to numbers, or to sequences. Making one checks what can be checked before the table is read.

    Attributes:
        data: the table, read as the task needs it.
        settings: the model's and its training's.
        model: `{"name": ..., "arguments": {...}}`, once the data were met.
    """

    data: DataSettings
    settings: TrainSettings
    model: dict[str, Any]

    def meet(self, dataset: Dataset) -> None:
        """Settle on a model for these data; what they say of a row is entered in the ledger."""

    def fit(self, out: Path, marks: dict[str, Any]) -> list[Member]:
        """Train in the folder `out`, or go on; `marks` tell these data from any other."""

    def judge(self, members: Sequence[Member], header: ModelHeader) -> Judged:
        """Predict every molecule and score it; the header lacks what the task knows."""

    def report(self, out: Path, judged: Judged, members: Sequence[Member], seconds: float) -> list[str]:
        """Write `report.html`; a line for what could not be drawn."""
