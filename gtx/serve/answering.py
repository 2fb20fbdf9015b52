"""Answers of the service: batches of requests that wait at the same time, and pictures in a thread of their own."""

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
from typing import Any, Literal, NamedTuple

import numpy as np

from gtx.data.columns import Row, Table
from gtx.data.featurising import default_chunk_size, make_process_pool, map_in_workers, stop_workers
from gtx.data.row_log import RowLog
from gtx.data.table_writer import Cell, TableWriter, as_text, output_header
from gtx.errors import InputError
from gtx.explain import Attribution, Explanation, compute_attribution, explain_prediction
from gtx.molecules import FeaturisedMolecules, MoleculeError, draw_molecule, read_smiles
from gtx.molecules.perception import Text, featurise_texts
from gtx.prediction import Predictor
from gtx.prediction.streaming import Chunk, ChunkAnswers, PredictorLike, output_rows, predict_featurised
from gtx.serve.limits import Metrics, ServiceLimits
from gtx.serve.requests import ExplainRequest


@dataclass
class RequestAnswers:
    """Answers to the molecules of one request out of a batch, see `gtx.tasks.task.Answers`."""

    finite: np.ndarray
    warnings: list[list[str]]
    cells: list[np.ndarray]

    def columns(self) -> list[np.ndarray]:
        """Return the columns of the answers, `[m]` each."""
        return self.cells

    def subset(self, rows: np.ndarray) -> RequestAnswers:
        """Select the molecules `rows`."""
        warnings = [self.warnings[i] for i in rows]
        return RequestAnswers(self.finite[rows], warnings, [column[rows] for column in self.cells])


@dataclass
class _Job:
    chunk: Chunk
    future: Future[ChunkAnswers] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        """Number of molecules."""
        return len(self.chunk[0])


class RequestBatcher:
    """Thread that collects the molecules of simultaneous requests and predicts them in batches.

    The molecules of a request wait until there are enough for a batch, or until `wait` seconds are over. Molecules of a
    cancelled request are not predicted. The server limits the number of waiting requests, see `gtx.serve.server`. A
    separate process reads the molecules, because RDKit may need seconds for a molecule and blocks other threads of its
    process. If a molecule kills the process, only the row of the molecule gets an error.

    Args:
        predictor: predictor of the model.
        wait: longest waiting time, in seconds.
        metrics: metrics in which batches are counted.
        separate: whether molecules are read in a separate process, or in the current process.

    Attributes:
        most: molecules of a batch; a chunk should have no more.
    """

    def __init__(self, predictor: PredictorLike, wait: float, metrics: Metrics, separate: bool = True) -> None:
        self.predictor = predictor
        self.wait = wait
        self.metrics = metrics
        self._reader = make_process_pool(1) if separate else None
        self.most: int = default_chunk_size(predictor.header.featuriser)
        self._jobs: deque[_Job] = deque()
        self._change, self._ends = Condition(), False
        self._thread = Thread(target=self._work, name="gtx model", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Answer the waiting chunks, and end.

        A batch that is not ready after `seconds` is left to the thread, which ends with the process.
        """
        with self._change:
            self._ends = True
            self._change.notify()
        self._thread.join(seconds)
        if self._reader is not None:
            stop_workers(self._reader)

    @property
    def waiting(self) -> int:
        """Number of molecules that wait."""
        with self._change:
            return sum(job.size for job in self._jobs if not job.future.cancelled())

    @property
    def alive(self) -> bool:
        """True while the thread of the model runs."""
        return self._thread.is_alive()

    async def answer(self, chunk: Chunk) -> ChunkAnswers:
        """Predict a chunk, see `gtx.prediction.streaming.ChunkAnswers`."""
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
        """Wait for the chunks of the next batch; none if all that waited are cancelled, None at the end."""
        with self._change:
            self._change.wait_for(lambda: self._jobs or self._ends)
            if not self._jobs:
                return None
            left = self._jobs[0].arrived + self.wait - time.monotonic()
            self._change.wait_for(lambda: self._ends or sum(job.size for job in self._jobs) >= self.most, max(left, 0))
            self._jobs = deque(job for job in self._jobs if not job.future.cancelled())
            taken: list[_Job] = []
            total = 0
            while self._jobs and (not taken or total + self._jobs[0].size <= self.most):
                taken.append(self._jobs.popleft())
                total += taken[-1].size
            return taken

    def _answer(self, jobs: Sequence[_Job]) -> None:
        texts = [text for job in jobs for text in job.chunk[0]]
        coordinates = [positions for job in jobs for positions in job.chunk[1]]
        features = [values for job in jobs for values in job.chunk[2]]
        try:
            answered = predict_featurised(self.predictor, [self._read(texts, coordinates)], features)
        except Exception as reason:
            if len(jobs) == 1:
                jobs[0].future.set_exception(reason)
                return
            for job in jobs:  # an error in one request must not fail the others of its batch
                self._answer([job])
            return
        self.metrics.batches.observe(len(texts))
        for job, answer in zip(jobs, split(answered, [job.size for job in jobs]), strict=True):
            job.future.set_result(answer)

    def _read(self, texts: Sequence[Text], coordinates: Sequence[np.ndarray | None]) -> FeaturisedMolecules:
        read = partial(featurise_texts, self.predictor.header.featuriser, smiles=False)
        if self._reader is None:
            return read(texts, coordinates)
        try:
            return self._reader.submit(read, texts, coordinates).result()
        except BrokenProcessPool:
            self._reader = make_process_pool(1)
            (molecules,) = map_in_workers(read, [(texts, coordinates)], workers=1)  # finds the molecule at fault
            return molecules


def split(answered: ChunkAnswers, counts: Sequence[int]) -> Iterator[ChunkAnswers]:
    """Split an answer into those of consecutive groups of texts, by their counts."""
    columns = answered.answers.columns()
    for stop, count in zip(accumulate(counts), counts, strict=True):
        start = stop - count
        low, high = np.searchsorted(answered.good, [start, stop])
        answers = RequestAnswers(
            answered.answers.finite[low:high],
            answered.answers.warnings[low:high],
            [column[low:high] for column in columns],
        )
        good = answered.good[low:high] - start
        yield ChunkAnswers(answered.errors[start:stop], answered.warnings[start:stop], good, answers)


_CHARACTERS = 50_000  # of a chunk: large molecules go in smaller chunks


class Answer(NamedTuple):
    """A table of predictions.

    Attributes:
        columns: names of the columns of the request, then of the answers, the error and the warning.
        kinds: type of each column of the answers, by name.
        smiles_column: the column with the molecules.
        rows: the cells, one for each column.
        row_log: counts of rows and errors.
    """

    columns: list[str]
    kinds: dict[str, type]
    smiles_column: str
    rows: list[list[Cell]]
    row_log: RowLog

    def csv(self) -> bytes:
        """Write the table as `gtx predict --out` does."""
        with TemporaryDirectory(prefix="gtx-") as folder:
            file = Path(folder, "predictions.csv")
            with TableWriter(file, self.columns, self.kinds) as writer:
                for row in self.rows:
                    writer.write(row)
            return file.read_bytes()

    def table(self) -> bytes:
        """Write the table as JSON: `columns`, `rows` with the cells of the CSV, and the columns of `answers`."""
        return _json(
            {
                "columns": self.columns,
                "rows": [[as_text(cell) for cell in row] for row in self.rows],
                "smiles_column": self.smiles_column,
                "answers": [{"name": name, "number": kind is float} for name, kind in self.kinds.items()],
                "summary": self.row_log.summary(),
            }
        )

    def records(self) -> bytes:
        """Write the rows as JSON: `rows`, each with its cells by name, null for a missing one."""
        rows = [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]
        return _json({"rows": rows, "summary": self.row_log.summary()})


async def answer(table: Table, rows: Sequence[Row], batcher: RequestBatcher, limits: ServiceLimits) -> Answer:
    """Predict rows of a table.

    Args:
        table: names of the columns.
        rows: its rows.
        batcher: predicts them.
        limits: a SMILES with more than `max_smiles` characters is an error of its row.
    """
    kinds = batcher.predictor.output_columns(table.columns)
    result = Answer(output_header(table.columns, list(kinds)), kinds, table.smiles_column, [], RowLog())
    for some in in_chunks(rows, batcher.most):
        too_long = [_too_long(row, limits.max_smiles) for row in some]
        texts = ["" if error else row.readable for row, error in zip(some, too_long, strict=True)]
        answered = await batcher.answer((texts, [row.coordinates for row in some], [row.features for row in some]))
        errors = [first or second for first, second in zip(too_long, answered.errors, strict=True)]
        result.rows.extend(await asyncio.to_thread(_cells, result, some, answered._replace(errors=errors)))
    return result


def in_chunks(rows: Sequence[Row], most: int) -> Iterator[list[Row]]:
    """Cut rows into chunks of at most `most`, and of fewer where the molecules are long texts."""
    chunk: list[Row] = []
    characters = 0
    for row in rows:
        if chunk and (len(chunk) == most or characters + len(row.text) > _CHARACTERS):
            yield chunk
            chunk, characters = [], 0
        chunk.append(row)
        characters += len(row.text)
    if chunk:
        yield chunk


def _cells(result: Answer, rows: Sequence[Row], answered: ChunkAnswers) -> list[list[Cell]]:
    return list(output_rows(result.row_log, result.smiles_column, rows, answered, len(result.kinds)))


def _too_long(row: Row, most: int) -> str | None:
    longest = max(map(len, (row.message_text or "", *row.others)))
    return f"cannot be read: it has {longest:,} characters; the limit is {most:,}" if longest > most else None


def _plain(cell: Any) -> Any:
    return None if cell != cell else cell


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


MOST_WAITING = 8  # requests for pictures
DRAWS = 20  # random sets of atoms, or orders of them: fewer than those of `gtx explain`, as a person waits
_MOST_ATOMS = 200  # of a molecule that is drawn


class Busy(Exception):
    """Error: too many pictures are requested at once."""


class Pictures:
    """Explains molecules, one after the other.

    Args:
        predictor: the model.
        limits: how large a molecule may be.
    """

    def __init__(self, predictor: Predictor, limits: ServiceLimits) -> None:
        self.predictor = predictor
        self.limits = limits
        self._queue: SimpleQueue[tuple[Future[dict[str, str]], ExplainRequest]] = SimpleQueue()
        # a daemon, unlike an executor of the standard library: the end of the service does not wait for it
        Thread(target=self._work, name="gtx explain", daemon=True).start()

    async def explain(self, request: ExplainRequest) -> dict[str, str]:
        """Explain a molecule by a picture, `svg`, and lines of `text`.

        Raises:
            InputError: as `gtx.explain.explain_prediction`, or the molecule is too large.
            Busy: `MOST_WAITING` requests wait already.
        """
        if self._queue.qsize() >= MOST_WAITING:
            raise Busy
        picture: Future[dict[str, str]] = Future()
        self._queue.put((picture, request))
        return await asyncio.wrap_future(picture)

    def _work(self) -> None:
        while True:
            picture, request = self._queue.get()
            if picture.set_running_or_notify_cancel():  # False if the client has gone
                try:
                    picture.set_result(self._explain(request))
                except Exception as reason:
                    picture.set_exception(reason)

    def _explain(self, request: ExplainRequest) -> dict[str, str]:
        self._check(request.smiles)
        smiles, target, features = request.smiles, request.target, request.features
        result: Explanation | Attribution
        if request.method == "attention":
            result = explain_prediction(self.predictor, smiles, target, draws=DRAWS, features=features)
        else:
            parts: Literal["atoms", "substructures"] = "atoms" if request.method == "shapley" else "substructures"
            result = compute_attribution(self.predictor, smiles, target, parts, draws=DRAWS, features=features)
        return {"svg": result.svg(), "text": result.text()}

    def _check(self, smiles: str) -> None:
        if len(smiles) > self.limits.max_smiles:
            raise InputError(f"expected a SMILES of at most {self.limits.max_smiles:,} characters, got {len(smiles):,}")
        try:
            atoms = self.predictor.header.featuriser.read(smiles).GetNumAtoms()
        except MoleculeError as reason:
            raise InputError(f"the molecule {reason}") from None
        if atoms > self.limits.max_explained:
            most = self.limits.max_explained
            raise InputError(f"expected a molecule of at most {most} atoms, got {atoms}; gtx explain has no limit")


def drawing(smiles: str, most: int) -> str:
    """Draw a molecule of at most `most` characters as SVG.

    Raises:
        InputError: it cannot be read, or has too many characters or atoms to be drawn.
    """
    if len(smiles) > most:
        raise InputError(f"expected a SMILES of at most {most:,} characters, got {len(smiles):,}")
    try:
        mol = read_smiles(smiles)
    except MoleculeError as reason:
        raise InputError(f"the molecule {reason}") from None
    if mol.GetNumAtoms() > _MOST_ATOMS:
        raise InputError(f"expected a molecule of at most {_MOST_ATOMS} atoms, got {mol.GetNumAtoms()}")
    return draw_molecule(mol, size=(240, 150))
