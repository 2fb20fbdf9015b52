"""What all predictors have in common: molecules in, answers out, whatever an answer is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from gtx.data import Featurised, MoleculeStore, PairBudgetSampler, featurise
from gtx.data.table_writer import Cell, fresh_name
from gtx.molecules.naming import name_code
from gtx.prediction.model_file import ModelHeader
from gtx.prediction.onednn import without_onednn
from gtx.prediction.threads import in_threads

if TYPE_CHECKING:
    from gtx.data.rows import Row
    from gtx.prediction.streaming import TableOutcome

BATCH_PAIRS, BATCH_MOLECULES = 50_000, 256  # larger batches are hardly faster on a CPU, and need more memory
NOT_FINITE = "the model's output is no finite number"

Made = TypeVar("Made")


class Answers(Protocol):
    """What a predictor says of m molecules.

    Attributes:
        finite: bool `[m]`: the molecules it has an answer for.
        remarks: per molecule, what there is to warn of.
    """

    finite: np.ndarray
    remarks: list[list[str]]

    def columns(self) -> list[np.ndarray]:
        """`[m]` each, named by the predictor's `output_columns`; NaN or None where there is no answer."""


class Scores(Protocol):
    """Answers beside what is true, collected while a table is read."""

    def add(self, rows: Sequence[Row], answers: Answers) -> None:
        """Take in some rows and what was said of them."""

    def metrics(self) -> dict[str, Any] | None:
        """As in `metrics.json`; None if the table does not hold the truth."""

    def notes(self) -> list[str]:
        """What else to say of all answers, a line each."""


class BasePredictor(ABC):
    """The members of a model file and what it takes to use them.

    A subclass says what an answer is: `output_columns`, `predict_store` and `scores`.

    Args:
        members: networks of the same kind, one or more.
        header: what the file says of them.
        device: where they run; by default a GPU if there is one.
    """

    def __init__(self, members: Sequence[nn.Module], header: ModelHeader, device: str | None = None) -> None:
        self.header = header
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.members = [member.to(self.device).eval() for member in members]

    def __repr__(self) -> str:
        h = self.header
        return f"{type(self).__name__}({h.task} of {', '.join(h.targets)}, {len(self.members)} x {h.model['name']})"

    def __reduce__(self) -> tuple[Any, ...]:
        # a pickle made beside a GPU can be opened where there is none
        return type(self), ([deepcopy(member).cpu() for member in self.members], self.header)

    @abstractmethod
    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        """The columns of answers, target by target, and whether they hold float, bool or str: `y_pred`, or `y_pred1`
        where `taken` has that name."""

    @abstractmethod
    def predict_store(self, store: MoleculeStore) -> Answers:
        """Predict molecules that are featurised already, by the header's featuriser."""

    @abstractmethod
    def scores(self, columns: Sequence[str]) -> Scores:
        """To score a table with these columns, as far as it holds the truth."""

    def predict(self, smiles: Iterable[str] | str, workers: int | None = None) -> pd.DataFrame:
        """Predict molecules given as SMILES.

        Args:
            smiles: one, or any number of them (a list, an array, a pandas column).
            workers: processes that read molecules; by default none for a few, all cores for many.

        Returns:
            A row per SMILES, in order: `smiles` as given, the columns that `output_columns` names, `error` and
            `warning` (both missing where there is none). A row has an answer or an error, never both.
        """
        given = [smiles] if isinstance(smiles, str) else list(smiles)
        done = self._featurise(as_texts(given), workers)
        answers = self.predict_store(done.store)
        errors, notes = list(done.errors), [list(entry) for entry in done.warnings]
        for i, finite, remarks in zip(done.good.tolist(), answers.finite.tolist(), answers.remarks, strict=True):
            notes[i] += remarks
            errors[i] = None if finite else NOT_FINITE
        columns = zip(self.output_columns(["smiles", "error", "warning"]), answers.columns(), strict=True)
        frame = {"smiles": given, **{name: _spread(column, done.good, len(given)) for name, column in columns}}
        return pd.DataFrame(frame).assign(error=errors, warning=["; ".join(entry) or None for entry in notes])

    def predict_table(self, source: str | Path, out: str | Path, **options: Any) -> TableOutcome:
        """Predict a table of any length and write it; see `gtx.prediction.predict_table`."""
        from gtx.prediction.streaming import predict_table

        return predict_table(self, source, out, **options)

    def _featurise(self, texts: Sequence[str], workers: int | None) -> Featurised:
        return featurise(self.header.featuriser, texts, workers=workers)

    def _batches(self, store: MoleculeStore) -> list[Tensor]:
        """Which molecules go together."""
        return PairBudgetSampler(store.sizes, BATCH_PAIRS, max_molecules=BATCH_MOLECULES, shuffle=False).batches()

    def _run_all(self, run: Callable[[Tensor], Made], batches: Sequence[Tensor]) -> list[Made]:
        """`run(rows)` of every batch, several at once on a CPU."""
        with without_onednn():
            return in_threads(run, batches) if self.device.type == "cpu" else list(map(run, batches))


def name_unseen(codes: Sequence[tuple[str, int, int]]) -> str | None:
    """What a model has not seen of a molecule, in words; None if there is no such thing."""
    return f"not seen in training: {', '.join(name_code(*code) for code in codes)}" if codes else None


def as_texts(smiles: Iterable[str] | str) -> list[str]:
    """As a list; what is no text (a gap of a pandas column) is an empty one, which cannot be read."""
    texts = [smiles] if isinstance(smiles, str) else list(smiles)
    return [text if isinstance(text, str) else "" for text in texts]


def as_rows(answers: Answers) -> list[tuple[Cell, ...]]:
    """Per molecule, its answer, as `gtx.data.TableWriter` takes it."""
    return list(zip(*(column.tolist() for column in answers.columns()), strict=True))


def fresh_columns(taken: Iterable[str], wanted: Iterable[tuple[str, type]]) -> dict[str, type]:
    """The columns `wanted`, under names that are not `taken`."""
    names, fresh = list(taken), {}
    for name, kind in wanted:
        names.append(fresh_name(names, name))
        fresh[names[-1]] = kind
    return fresh


def _spread(column: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """The column of some rows as that of all; the others have NaN, or None where it is not of numbers."""
    numbers = column.dtype.kind == "f"
    whole = np.full(count, np.nan if numbers else None, column.dtype if numbers else object)
    whole[rows] = column
    return whole
