"""Processes that hold the model: in one, simultaneous requests are predicted in batches; in another, explained."""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from loky import ProcessPoolExecutor

from gtx.base.errors import InputError, printable
from gtx.data.featurising import DEADLY, default_chunk_size, make_process_pool
from gtx.explain import Attribution, Explanation, compute_attribution, explain_prediction
from gtx.molecules import MoleculeError
from gtx.molecules.perception import Text
from gtx.prediction import Predictor
from gtx.prediction.streaming import Chunk, ChunkAnswers, predict_chunk

Result = TypeVar("Result")

_held: Any = None  # the model of this process


def _hold(predictor: Predictor) -> None:
    global _held
    _held = predictor


def _call(function: Callable[..., Result], *arguments: Any) -> Result:
    return function(_held, *arguments)


class ModelProcess:
    """Process with a copy of a model, in which functions are called one after the other.

    RDKit may need seconds for a molecule and blocks all threads of its process; and a process, unlike a thread, can be
    ended. The process starts at the first call, as does another one when it has ended.
    """

    def __init__(self, predictor: Predictor) -> None:
        self.predictor = predictor
        self.calls: int = 0  # that run or wait
        self._pool: ProcessPoolExecutor | None = None
        self._start: asyncio.Future[int]
        self._turn = asyncio.Lock()

    def start(self) -> ProcessPoolExecutor:
        """Start the process if there is none, which takes seconds."""
        if self._pool is None:
            self._pool = make_process_pool(1, _hold, self.predictor)
            self._start = asyncio.wrap_future(self._pool.submit(os.getpid))
        return self._pool

    async def call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Return `function(predictor, *arguments)`; if the caller is cancelled, the process is ended.

        Raises:
            BrokenProcessPool: the process died.
        """
        self.calls += 1
        try:
            async with self._turn:
                pool = self.start()
                await asyncio.wait((self._start,))  # while it starts it is not ended, but would only start again
                try:
                    return await asyncio.wrap_future(pool.submit(_call, function, *arguments))
                except (asyncio.CancelledError, BrokenProcessPool):
                    self.end()
                    raise
        finally:
            self.calls -= 1

    def end(self) -> None:
        """End the process, whatever it does."""
        pool, self._pool = self._pool, None
        if pool is not None:
            asyncio.get_running_loop().run_in_executor(None, partial(pool.shutdown, kill_workers=True))


# --- Predictions, in batches.

_PATIENCE = 2  # seconds for a batch that nobody waits for any more: another process takes longer to start


class _Job(NamedTuple):
    chunk: Chunk
    answers: asyncio.Future[ChunkAnswers]

    @property
    def size(self) -> int:
        """Number of molecules."""
        return len(self.chunk[0])


class Batcher:
    """Task that collects the molecules of simultaneous requests and predicts them in batches.

    The molecules of a request wait until there are enough for a batch, or until `wait` seconds are over. Those of a
    cancelled request are not predicted; a batch of cancelled requests alone is ended. If a molecule ends the process,
    only its row gets an error.

    Args:
        process: process that predicts.
        wait: longest waiting time, in seconds.
        observe: function that is called with the number of molecules of each batch.
    """

    def __init__(self, process: ModelProcess, wait: float, observe: Callable[[float], None]) -> None:
        self.process = process
        self.wait = wait
        self.observe = observe
        self.most: int = default_chunk_size(process.predictor.header.featuriser)  # molecules of a batch, or of a chunk
        self._jobs: deque[_Job] = deque()
        self._arrival = asyncio.Event()

    @property
    def waiting(self) -> int:
        """Number of molecules that wait."""
        return sum(job.size for job in self._jobs if not job.answers.done())

    async def answer(self, chunk: Chunk) -> ChunkAnswers:
        """Predict a chunk, see `gtx.prediction.streaming.ChunkAnswers`."""
        job = _Job(chunk, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._arrival.set()
        return await job.answers

    async def run(self) -> None:
        """Answer for ever."""
        while True:
            await self._arrival.wait()
            if self.waiting < self.most:
                await asyncio.sleep(self.wait)
            if jobs := self._next():
                await self._answer(jobs)

    def _next(self) -> list[_Job]:
        """Take the jobs of the next batch, without those that were cancelled."""
        jobs: list[_Job] = []
        total = 0
        while self._jobs and (not jobs or total + self._jobs[0].size <= self.most):
            job = self._jobs.popleft()
            if not job.answers.done():
                jobs.append(job)
                total += job.size
        if not self._jobs:
            self._arrival.clear()
        return jobs

    async def _answer(self, jobs: Sequence[_Job]) -> None:
        work = asyncio.create_task(self._predict([job.chunk for job in jobs]))
        gone = asyncio.create_task(asyncio.wait([job.answers for job in jobs]))
        try:
            await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait((work,), timeout=_PATIENCE)
            if not work.done():
                return
        finally:
            for task in (gone, work):
                task.cancel()  # without effect where it is done
            await asyncio.wait((gone, work))
        reason = work.exception()
        if reason is not None and len(jobs) > 1:  # an error in one request must not fail the others of its batch
            for job in jobs:
                if not job.answers.done():
                    await self._answer([job])
            return
        self.observe(sum(job.size for job in jobs))
        for i, job in enumerate(jobs):
            if job.answers.done():
                continue
            if reason is None:
                job.answers.set_result(work.result()[i])
            else:
                job.answers.set_exception(reason)

    async def _predict(self, chunks: Sequence[Chunk]) -> list[ChunkAnswers]:
        try:
            return await self.process.call(predict_chunks, chunks)
        except BrokenProcessPool:
            if len(chunks) > 1:
                raise
            return await self._predict_by_row(*chunks[0])

    async def _predict_by_row(self, texts: Sequence[Text], *columns: Sequence[Any]) -> list[ChunkAnswers]:
        """Predict a chunk at which the process has died, without the molecules at which it dies alone."""
        spared, deadly = list(texts), []
        for i, text in enumerate(texts):
            try:
                await self.process.call(predict_chunks, [([text], *(column[i : i + 1] for column in columns))])
            except BrokenProcessPool:
                deadly.append(i)
                spared[i] = "" if isinstance(text, str) else ("",) * len(text)
        [answered] = await self.process.call(predict_chunks, [(spared, *columns)])
        for i in deadly:
            answered.errors[i] = DEADLY
        return [answered]


def predict_chunks(predictor: Predictor, chunks: Sequence[Chunk]) -> list[ChunkAnswers]:
    """Predict the molecules of several requests as one batch, in the process of the model."""
    texts, coordinates, features = (list(chain.from_iterable(column)) for column in zip(*chunks, strict=True))
    answered = predict_chunk(predictor, (texts, coordinates, features))
    return list(split(answered, [len(texts) for texts, _, _ in chunks]))


def split(answered: ChunkAnswers, counts: Sequence[int]) -> Iterator[ChunkAnswers]:
    """Split answers into those of consecutive groups of texts, by their counts."""
    for stop, count in zip(accumulate(counts), counts, strict=True):
        start = stop - count
        low, high = np.searchsorted(answered.good, [start, stop])
        yield ChunkAnswers(
            answered.errors[start:stop],
            answered.warnings[start:stop],
            answered.good[low:high] - start,
            answered.answers.subset(np.arange(low, high)),
        )


# --- Explanations.


async def explain_in(process: ModelProcess, smiles: Text, *words: Any) -> dict[str, str]:
    """Call `explain` in the process of the model, a second time where the first has ended it.

    Raises:
        MoleculeError: as `explain`, or the molecule has ended the process twice.
    """
    for _ in range(2):
        with suppress(BrokenProcessPool):
            return await process.call(explain, smiles, *words)
    raise MoleculeError(f"{printable(smiles if isinstance(smiles, str) else ', '.join(smiles))} {DEADLY}")


DRAWS = 20  # random sets of atoms, or orders of them: fewer than those of `gtx explain`, as a person waits


def explain(
    predictor: Predictor, smiles: Text, method: str, target: str | None, features: dict[str, Any], most: int
) -> dict[str, str]:
    """Explain a molecule, or row of several, of at most so many atoms by a picture, `svg`, and lines of `text`.

    Raises:
        InputError: as `gtx.explain.explain_prediction`, or the molecule is too large.
        MoleculeError: the molecule cannot be read.
    """
    atoms = sum(mol.GetNumAtoms() for mol in predictor.header.featuriser.read_row(smiles))
    if atoms > most:
        raise InputError(f"expected a molecule of at most {most} atoms, got {atoms}; gtx explain has no limit")
    result: Explanation | Attribution
    if method == "attention":
        result = explain_prediction(predictor, smiles, target, draws=DRAWS, features=features)
    else:
        parts: Literal["atoms", "substructures"] = "atoms" if method == "shapley" else "substructures"
        result = compute_attribution(predictor, smiles, target, parts, draws=DRAWS, features=features)
    return {"svg": result.svg(), "text": result.text()}
