"""What predicts, as those see it who hand it molecules; and a stream of texts through it."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from joblib.externals.loky.backend.reduction import dumps

from gtx.data import Featurised, MoleculeStore, featurise_stream, in_workers
from gtx.data.rows import RowFeatures
from gtx.data.table_writer import Cell
from gtx.molecules import FlatMolecules, featurise_texts
from gtx.prediction.model_file import ModelHeader
from gtx.tasks.task import Answers

Chunk = tuple[Sequence[str], Sequence[np.ndarray | None], Sequence[RowFeatures | None]]
"""Texts; coordinates in Å, where they are known; features, where the model takes any."""

_TOGETHER = 8  # chunks that a GPU predicts at once: it is busy with thousands of molecules, not with hundreds
NOT_FINITE = "the model's output is no finite number"


class Answering(Protocol):
    """A `gtx.prediction.Predictor`, or what can stand for one.

    Attributes:
        header: how molecules are read, and what is predicted.
        task: what is predicted.
        device: where it computes.
    """

    header: ModelHeader
    device: torch.device

    @property
    def task(self) -> Any: ...

    def output_columns(self, taken: Iterable[str]) -> dict[str, type]:
        """The columns of answers."""

    def predict_store(self, store: MoleculeStore) -> Answers:
        """Answers for molecules that are featurised already."""


class Answered(NamedTuple):
    """What became of n texts.

    Attributes:
        errors: per text, why it could not be read, or None.
        warnings: per text, what was odd about it.
        good: int64 `[m]`, the numbers of the texts that could be read.
        answers: for these, in order.
        smiles: per text, its canonical SMILES, or None; all None where none were asked for.
    """

    errors: list[str | None]
    warnings: list[tuple[str, ...]]
    good: np.ndarray
    answers: Answers
    smiles: Sequence[str | None] = ()


def answer_stream(
    predictor: Answering, chunks: Iterable[Chunk], workers: int, smiles: bool = False
) -> Iterator[Answered]:
    """Read and predict chunks of texts, in order; memory stays bounded.

    On a processor each worker process reads and predicts, with a copy of the model and one thread, and only answers go
    from process to process. With a model on a GPU workers read, and this process predicts, several chunks at a time.

    Args:
        predictor: the model.
        chunks: of texts.
        workers: processes; 0 works in this one.
        smiles: find canonical SMILES too.
    """
    if workers < 1 or predictor.device.type != "cpu":
        beside: deque[Sequence[RowFeatures | None]] = deque()

        def molecules() -> Iterator[tuple[Sequence[str], Sequence[np.ndarray | None]]]:
            for texts, coordinates, features in chunks:
                beside.append(features)
                yield texts, coordinates

        read = featurise_stream(predictor.header.featuriser, molecules(), workers, smiles=smiles)
        together = 1 if predictor.device.type == "cpu" else _TOGETHER
        while parts := list(islice(read, together)):
            yield _answered(predictor, parts, [row for _ in parts for row in beside.popleft()])
        return
    wanted = predictor.header.features
    # compiles what is to be compiled, so that the workers need not, each for itself
    _answer(predictor, [predictor.header.featuriser.simplest], [None], [wanted and wanted.unknown])
    with TemporaryDirectory(prefix="gtx-") as folder:
        file = Path(folder, "predictor")
        file.write_bytes(dumps(predictor))
        yield from in_workers(partial(_answer_in_worker, file, smiles=smiles), chunks, workers)


def as_rows(answers: Answers) -> list[tuple[Cell, ...]]:
    """Per molecule, its answer, as `gtx.data.TableWriter` takes it."""
    return list(zip(*(column.tolist() for column in answers.columns()), strict=True))


def _answered(predictor: Answering, parts: Sequence[FlatMolecules], features: Sequence[RowFeatures | None]) -> Answered:
    done, wanted = Featurised.join(parts), predictor.header.features
    done = wanted.joined(done, features) if wanted else done
    return Answered(done.errors, done.warnings, done.good, predictor.predict_store(done.store), done.smiles)


def _answer(
    predictor: Answering,
    texts: Sequence[str],
    coordinates: Sequence[np.ndarray | None],
    features: Sequence[RowFeatures | None],
    smiles: bool = False,
) -> Answered:
    part = featurise_texts(predictor.header.featuriser, texts, coordinates, smiles=smiles)
    return _answered(predictor, [part], features)


def _answer_in_worker(file: Path, *chunk: Sequence[Any], smiles: bool = False) -> Answered:
    return _answer(_opened(file), *chunk, smiles=smiles)


@lru_cache(maxsize=1)
def _opened(file: Path) -> Answering:
    """The predictor of this worker process, whose file no other call ever has."""
    torch.set_num_threads(1)  # there are as many workers as are to compute
    return pickle.loads(file.read_bytes())
