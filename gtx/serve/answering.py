"""From molecules to answers: requests that wait at the same time are predicted together; pictures are made beside."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Condition, Thread
from typing import Any, NamedTuple

import numpy as np

from gtx.data import chunk_size, in_workers
from gtx.data.columns import Row, Table
from gtx.data.featurising import process_pool, stop_workers
from gtx.data.ledger import Ledger
from gtx.data.table_writer import Cell, TableWriter, as_text, output_header
from gtx.errors import InputError
from gtx.explain import attribute, explain
from gtx.molecules import FlatMolecules, MoleculeError, draw_molecule, featurise_texts, read_smiles
from gtx.prediction import Predictor
from gtx.prediction.streaming import Chunk, ChunkAnswers, PredictorLike, output_rows, predict_featurised
from gtx.serve.limits import Limits, Metrics
from gtx.serve.requests import Explained


@dataclass(frozen=True)
class Part:
    """The answers to some of the molecules that were predicted together, see `gtx.tasks.task.Answers`."""

    finite: np.ndarray
    warnings: list[list[str]]
    cells: list[np.ndarray]

    def columns(self) -> list[np.ndarray]:
        """`[m]` each."""
        return self.cells


@dataclass
class _Job:
    chunk: Chunk
    future: Future[ChunkAnswers] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        return len(self.chunk[0])


class Batcher:
    """Answers chunks of molecules, several at once, in one thread of its own.

    A chunk waits until there are enough for a batch, or until `wait` is over. One that is cancelled while it waits is
    never predicted. Whoever calls it bounds how many chunks wait, see `gtx.serve.server`.

    Molecules are read in a process beside: a molecule may keep RDKit busy for seconds, in which no other thread of the
    same process runs and nobody would be answered, and one that ends the process ends no more than its row.

    Args:
        predictor: the model.
        wait: seconds.
        metrics: where batches are counted.
        apart: read molecules in the process beside; otherwise in this one.

    Attributes:
        most: molecules of a batch; a chunk should have no more.
    """

    def __init__(self, predictor: PredictorLike, wait: float, metrics: Metrics, apart: bool = True) -> None:
        self.predictor, self.wait, self.metrics = predictor, wait, metrics
        self._reader = process_pool(1) if apart else None
        self.most = chunk_size(predictor.header.featuriser)
        self._jobs: deque[_Job] = deque()
        self._change, self._ends = Condition(), False
        self._thread = Thread(target=self._work, name="gtx model", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Answer what waits, and end; what is in hand when the time is over is left to a thread that ends with the
        process."""
        with self._change:
            self._ends = True
            self._change.notify()
        self._thread.join(seconds)
        if self._reader is not None:
            stop_workers(self._reader)

    @property
    def waiting(self) -> int:
        """Molecules that wait."""
        with self._change:
            return sum(job.size for job in self._jobs if not job.future.cancelled())

    @property
    def alive(self) -> bool:
        """True while its thread runs."""
        return self._thread.is_alive()

    async def answer(self, chunk: Chunk) -> ChunkAnswers:
        """Answer some texts, see `gtx.prediction.streaming.ChunkAnswers`."""
        job = _Job(chunk)
        with self._change:
            if self._ends:
                raise RuntimeError("the service is ending")
            self._jobs.append(job)
            self._change.notify()
        return await asyncio.wrap_future(job.future)

    def _work(self) -> None:
        while (jobs := self._next()) is not None:
            if jobs := [job for job in jobs if job.future.set_running_or_notify_cancel()]:
                self._answer(jobs)

    def _next(self) -> list[_Job] | None:
        """Chunks of the next batch, none if all that waited are cancelled; None at the end."""
        with self._change:
            self._change.wait_for(lambda: self._jobs or self._ends)
            if not self._jobs:
                return None
            left = self._jobs[0].arrived + self.wait - time.monotonic()
            self._change.wait_for(lambda: self._ends or sum(job.size for job in self._jobs) >= self.most, max(left, 0))
            self._jobs = deque(job for job in self._jobs if not job.future.cancelled())
            taken, total = [], 0
            while self._jobs and (not taken or total + self._jobs[0].size <= self.most):
                taken.append(self._jobs.popleft())
                total += taken[-1].size
            return taken

    def _answer(self, jobs: Sequence[_Job]) -> None:
        texts, coordinates, features = ([entry for job in jobs for entry in job.chunk[part]] for part in range(3))
        try:
            answered = predict_featurised(self.predictor, [self._read(texts, coordinates)], features)
        except Exception as reason:
            if len(jobs) == 1:
                jobs[0].future.set_exception(reason)
                return
            for job in jobs:  # what stops one request is not to stop those that it was put together with
                self._answer([job])
            return
        self.metrics.batches.observe(len(texts))
        for job, part in zip(jobs, split(answered, [job.size for job in jobs]), strict=True):
            job.future.set_result(part)

    def _read(self, texts: Sequence[str], coordinates: Sequence[np.ndarray | None]) -> FlatMolecules:
        read = partial(featurise_texts, self.predictor.header.featuriser, smiles=False)
        if self._reader is None:
            return read(texts, coordinates)
        try:
            return self._reader.submit(read, texts, coordinates).result()
        except BrokenProcessPool:
            self._reader = process_pool(1)
            (found,) = in_workers(read, [(texts, coordinates)], workers=1)  # which finds the molecule at fault
            return found


def split(answered: ChunkAnswers, counts: Sequence[int]) -> Iterator[ChunkAnswers]:
    """Split an answer into those of consecutive groups of texts, by their counts."""
    columns = answered.answers.columns()
    for stop, count in zip(accumulate(counts), counts, strict=True):
        start = stop - count
        low, high = np.searchsorted(answered.good, [start, stop])
        part = Part(
            answered.answers.finite[low:high],
            answered.answers.warnings[low:high],
            [column[low:high] for column in columns],
        )
        good = answered.good[low:high] - start
        yield ChunkAnswers(answered.errors[start:stop], answered.warnings[start:stop], good, part)


_CHARACTERS = 50_000  # of a piece: molecules of which few keep the model long go in smaller pieces


class Answer(NamedTuple):
    """A table of predictions.

    Attributes:
        columns: those of the request, then those of answers, the error and the warning.
        named: the columns of answers, and what they hold.
        smiles_column: the column with the molecules.
        rows: as many cells as there are columns.
        ledger: counts of rows and errors.
    """

    columns: list[str]
    named: dict[str, type]
    smiles_column: str
    rows: list[list[Cell]]
    ledger: Ledger

    def csv(self) -> bytes:
        """The bytes that `gtx predict --out` would write."""
        with TemporaryDirectory(prefix="gtx-") as folder:
            file = Path(folder, "predictions.csv")
            with TableWriter(file, self.columns, self.named) as writer:
                for row in self.rows:
                    writer.write(row)
            return file.read_bytes()

    def table(self) -> bytes:
        """JSON: `columns`, `rows` with the cells as the CSV has them, and which columns are `answers`."""
        return _json(
            {
                "columns": self.columns,
                "rows": [[as_text(cell) for cell in row] for row in self.rows],
                "smiles_column": self.smiles_column,
                "answers": [{"name": name, "number": kind is float} for name, kind in self.named.items()],
                "summary": self.ledger.summary(),
            }
        )

    def records(self) -> bytes:
        """JSON: `rows`, each with its cells by name; what is missing is null."""
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        return _json({"rows": rows, "summary": self.ledger.summary()})


async def answer(table: Table, rows: Sequence[Row], batcher: Batcher, limits: Limits) -> Answer:
    """Predict rows of a table.

    Args:
        table: which says what its columns are called.
        rows: its rows.
        batcher: predicts them.
        limits: a SMILES that is longer than they say is an error of its row.
    """
    named = batcher.predictor.output_columns(table.columns)
    made = Answer(output_header(table.columns, named), named, table.smiles_column, [], Ledger())
    for piece in pieces(rows, batcher.most):
        errors = [_too_long(row, limits.max_smiles) for row in piece]
        texts = ["" if error else row.readable for row, error in zip(piece, errors, strict=True)]
        done = await batcher.answer((texts, [row.coordinates for row in piece], [row.features for row in piece]))
        done = done._replace(errors=[own or other for own, other in zip(errors, done.errors, strict=True)])
        made.rows.extend(await asyncio.to_thread(_entered, made, piece, done))
    return made


def pieces(rows: Sequence[Row], most: int) -> Iterator[list[Row]]:
    """Rows in pieces of at most so many, and of few where their molecules are long texts."""
    piece, characters = [], 0
    for row in rows:
        if piece and (len(piece) == most or characters + len(row.text) > _CHARACTERS):
            yield piece
            piece, characters = [], 0
        piece.append(row)
        characters += len(row.text)
    if piece:
        yield piece


def _entered(made: Answer, piece: Sequence[Row], done: ChunkAnswers) -> list[list[Cell]]:
    return list(output_rows(made.ledger, made.smiles_column, piece, done, len(made.named)))


def _too_long(row: Row, most: int) -> str | None:
    longest = max(map(len, (row.shown or "", *row.others)))
    return f"cannot be read: it has {longest:,} characters; the limit is {most:,}" if longest > most else None


def _plain(cell: Any) -> Any:
    return None if cell != cell else cell


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


MOST_WAITING = 8
DRAWS = 20  # random sets of atoms, or orders of them: less than `gtx explain` takes, for somebody waits
_DRAWN = 200  # atoms of a molecule that is drawn


class Busy(Exception):
    """Too many pictures are asked for at once."""


class Pictures:
    """Explains molecules, one after the other.

    Args:
        predictor: the model.
        limits: how large a molecule may be.
    """

    def __init__(self, predictor: Predictor, limits: Limits) -> None:
        self.predictor, self.limits = predictor, limits
        self._asked: SimpleQueue[tuple[Future[dict[str, str]], Explained]] = SimpleQueue()
        # a daemon, as the executors of the standard library are not: the end of the service does not wait for it
        Thread(target=self._work, name="gtx explain", daemon=True).start()

    async def explain(self, asked: Explained) -> dict[str, str]:
        """The picture as `svg`, and what was found as `text`.

        Raises:
            InputError: as `gtx.explain.explain`, or the molecule is too large.
            Busy: as many as `MOST_WAITING` are waited for.
        """
        if self._asked.qsize() >= MOST_WAITING:
            raise Busy
        picture: Future[dict[str, str]] = Future()
        self._asked.put((picture, asked))
        return await asyncio.wrap_future(picture)

    def _work(self) -> None:
        while True:
            picture, asked = self._asked.get()
            if picture.set_running_or_notify_cancel():  # what nobody waits for any more is not made
                try:
                    picture.set_result(self._explain(asked))
                except Exception as reason:
                    picture.set_exception(reason)

    def _explain(self, asked: Explained) -> dict[str, str]:
        self._check(asked.smiles)
        options = {"target": asked.target, "draws": DRAWS, "features": asked.features}
        if asked.method == "attention":
            found = explain(self.predictor, asked.smiles, **options)
        else:
            parts = "atoms" if asked.method == "shapley" else "substructures"
            found = attribute(self.predictor, asked.smiles, parts=parts, **options)
        return {"svg": found.svg(), "text": found.text()}

    def _check(self, smiles: str) -> None:
        if len(smiles) > self.limits.max_smiles:
            raise InputError(f"expected a SMILES of at most {self.limits.max_smiles:,} characters, got {len(smiles):,}")
        try:
            atoms = self.predictor.header.featuriser.read(smiles).GetNumAtoms()
        except MoleculeError as reason:
            raise InputError(f"the molecule {reason}") from None
        if atoms > self.limits.max_explained:
            most = self.limits.max_explained
            raise InputError(f"molecules of at most {most} atoms are explained here, this has {atoms}; gtx explain may")


def drawing(smiles: str, most: int) -> str:
    """A molecule as SVG.

    Raises:
        InputError: it cannot be read, or has too many characters or atoms to be drawn.
    """
    if len(smiles) > most:
        raise InputError(f"expected a SMILES of at most {most:,} characters, got {len(smiles):,}")
    try:
        mol = read_smiles(smiles)
    except MoleculeError as reason:
        raise InputError(f"the molecule {reason}") from None
    if mol.GetNumAtoms() > _DRAWN:
        raise InputError(f"molecules of at most {_DRAWN} atoms are drawn, this has {mol.GetNumAtoms()}")
    return draw_molecule(mol, size=(240, 150))
