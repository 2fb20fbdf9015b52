"""What predicts, as those see it who hand it molecules; and what becomes of its answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from gtx.data import MoleculeStore
from gtx.data.table_writer import Cell
from gtx.prediction.model_file import ModelHeader
from gtx.tasks.task import Answers

NOT_FINITE = "the model's output is no finite number"


class Answering(Protocol):
    """A `gtx.prediction.Predictor`, or what can stand for one.

    Attributes:
        header: how molecules are read, and what is predicted.
        task: what is predicted.
    """

    header: ModelHeader

    @property
    def task(self) -> Any: ...

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        """The columns of answers."""

    def predict_store(self, store: MoleculeStore) -> Answers:
        """Answers for molecules that are featurised already."""


def as_rows(answers: Answers) -> list[tuple[Cell, ...]]:
    """Per molecule, its answer, as `gtx.data.TableWriter` takes it."""
    return list(zip(*(column.tolist() for column in answers.columns()), strict=True))
