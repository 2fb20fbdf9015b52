"""One thread that predicts: requests that wait at the same time are put together."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Condition, Thread

import numpy as np

from gtx.data import chunk_size
from gtx.prediction.answering import Answered, Answering, Chunk, answer_stream
from gtx.serve.metrics import Metrics


@dataclass(frozen=True)
class Part:
    """The answers to some of the molecules that were predicted together, see `gtx.tasks.task.Answers`."""

    finite: np.ndarray
    remarks: list[list[str]]
    cells: list[np.ndarray]

    def columns(self) -> list[np.ndarray]:
        """`[m]` each."""
        return self.cells


@dataclass
class _Job:
    chunk: Chunk
    future: Future[Answered] = field(default_factory=Future)
    arrived: float = field(default_factory=time.monotonic)

    @property
    def size(self) -> int:
        return len(self.chunk[0])


class Batcher:
    """Answers chunks of molecules, several at once, in one thread of its own.

    A chunk waits until there are enough for a batch, or until `wait` is over. One that is cancelled while it waits is
    never predicted. Whoever calls it bounds how many chunks wait, see `gtx.serve.guard`.

    Args:
        predictor: the model.
        wait: seconds.
        metrics: where batches are counted.

    Attributes:
        most: molecules of a batch; a chunk should have no more.
    """

    def __init__(self, predictor: Answering, wait: float, metrics: Metrics) -> None:
        self.predictor, self.wait, self.metrics = predictor, wait, metrics
        self.most = chunk_size(predictor.header.featuriser)
        self._jobs: deque[_Job] = deque()
        self._change, self._ends = Condition(), False
        self._thread = Thread(target=self._work, name="gtx model", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what waits, and end."""
        with self._change:
            self._ends = True
            self._change.notify()
        self._thread.join()

    @property
    def waiting(self) -> int:
        """Molecules that wait."""
        with self._change:
            return sum(job.size for job in self._jobs)

    @property
    def alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    async def answer(self, chunk: Chunk) -> Answered:
        """What becomes of some texts, see `gtx.prediction.answering.Answered`."""
        job = _Job(chunk)
        with self._change:
            if self._ends:
                raise RuntimeError("the service is ending")
            self._jobs.append(job)
            self._change.notify()
        return await asyncio.wrap_future(job.future)

    def _work(self) -> None:
        while jobs := self._next():
            if jobs := [job for job in jobs if job.future.set_running_or_notify_cancel()]:
                self._answer(jobs)

    def _next(self) -> list[_Job]:
        """The chunks of the next batch, at least one; none at the end."""
        with self._change:
            self._change.wait_for(lambda: self._jobs or self._ends)
            if not self._jobs:
                return []
            left = self._jobs[0].arrived + self.wait - time.monotonic()
            self._change.wait_for(lambda: self._ends or sum(job.size for job in self._jobs) >= self.most, max(left, 0))
            taken, total = [], 0
            while self._jobs and (not taken or total + self._jobs[0].size <= self.most):
                taken.append(self._jobs.popleft())
                total += taken[-1].size
            return taken

    def _answer(self, jobs: Sequence[_Job]) -> None:
        chunk = tuple([entry for job in jobs for entry in job.chunk[part]] for part in range(3))
        try:
            answered = next(answer_stream(self.predictor, [chunk], workers=0))
        except Exception as reason:
            if len(jobs) == 1:
                jobs[0].future.set_exception(reason)
                return
            for job in jobs:  # what stops one request is not to stop those that it was put together with
                self._answer([job])
            return
        self.metrics.batches.observe(len(chunk[0]))
        for job, part in zip(jobs, split(answered, [job.size for job in jobs]), strict=True):
            job.future.set_result(part)


def split(answered: Answered, counts: Sequence[int]) -> Iterator[Answered]:
    """What became of each so many texts, one after the other."""
    columns = answered.answers.columns()
    for stop, count in zip(accumulate(counts), counts, strict=True):
        start = stop - count
        low, high = np.searchsorted(answered.good, [start, stop])
        part = Part(
            answered.answers.finite[low:high],
            answered.answers.remarks[low:high],
            [column[low:high] for column in columns],
        )
        good = answered.good[low:high] - start
        yield Answered(answered.errors[start:stop], answered.warnings[start:stop], good, part)
