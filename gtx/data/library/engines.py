"""Who works at shards: this process, or processes of its own; and how shards are handed out, whoever works."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any, Protocol

from joblib.externals.loky import ProcessPoolExecutor

from gtx.data.library.journal import PATIENCE
from gtx.data.library.shards import Done, Shard
from gtx.data.workers import stop_workers
from gtx.errors import InputError


class Worker(Protocol):
    """Works at one shard after the other."""

    def work(self, shard: Shard) -> Done:
        """Make the part of a shard, whole or not at all."""


class Job(Protocol):
    """What all shards have in common; pickled small, it goes to every worker."""

    def worker(self) -> Worker:
        """A worker, in a process of its own."""

    def journal(self, shard: Shard) -> Path:
        """Where a worker notes how far it is."""


class WorkerDied(Exception):
    """The process of a worker has ended amid a shard."""


class Engine(Protocol):
    """Workers of one kind.

    Attributes:
        job: what they work at.
        workers: how many there are at most.
    """

    job: Job
    workers: int

    def start(self) -> Any:
        """One more worker."""

    def give(self, worker: Any, shard: Shard) -> Hashable:
        """Hand a shard to a worker that has none; what comes back stands for the outcome."""

    def first(self, given: Sequence[Hashable]) -> Hashable:
        """Wait for one of these to come out."""

    def result(self, given: Hashable) -> Done:
        """What came out; `WorkerDied` if nothing did."""

    def close(self) -> None:
        """End all workers, whatever they have in hand."""


def worked(engine: Engine, shards: Iterable[Shard]) -> Iterator[tuple[Shard, Done]]:
    """All shards with what became of them, as they are done; a shard whose worker died is given to another one.

    A worker has one shard at a time, and shards are drawn as they are needed, so nothing piles up.

    Raises:
        InputError: workers end before they begin.
    """
    coming, again = iter(shards), deque[Shard]()
    busy: dict[Hashable, tuple[Any, Shard]] = {}
    idle: list[Any] = []
    stillborn: Counter[Shard] = Counter()
    while True:
        while len(busy) < engine.workers and (shard := again.popleft() if again else next(coming, None)):
            worker = idle.pop() if idle else engine.start()
            busy[engine.give(worker, shard)] = worker, shard
        if not busy:
            return
        given = engine.first(list(busy))
        worker, shard = busy.pop(given)
        try:
            done = engine.result(given)
        except WorkerDied:
            stillborn[shard] += not engine.job.journal(shard).exists()
            if stillborn[shard] == PATIENCE:
                raise InputError("workers end before they begin: is there memory enough for so many?") from None
            again.append(shard)
            continue
        idle.append(worker)
        yield shard, done


class Here:
    """This process alone, with the processes that read for it.

    Args:
        job: what it works at.
        start: gives its worker.
    """

    workers = 1

    def __init__(self, job: Job, start: Callable[[], Worker]) -> None:
        self.job, self.start = job, start

    def give(self, worker: Worker, shard: Shard) -> Future[Done]:
        made: Future[Done] = Future()
        made.set_result(worker.work(shard))
        return made

    def first(self, given: Sequence[Future[Done]]) -> Future[Done]:
        return given[0]

    def result(self, given: Future[Done]) -> Done:
        return given.result()

    def close(self) -> None:
        """There is nobody to end."""


class Processes:
    """Processes of this machine, each with a worker; one that dies takes no other with it."""

    def __init__(self, job: Job, workers: int) -> None:
        self.job, self.workers = job, workers
        self._pools: list[ProcessPoolExecutor] = []

    def start(self) -> ProcessPoolExecutor:
        pool = ProcessPoolExecutor(1, initializer=_begin, initargs=(self.job,))
        self._pools.append(pool)
        return pool

    def give(self, worker: ProcessPoolExecutor, shard: Shard) -> Future[Done]:
        return worker.submit(_work, shard)

    def first(self, given: Sequence[Future[Done]]) -> Future[Done]:
        return next(iter(wait(given, return_when=FIRST_COMPLETED).done))

    def result(self, given: Future[Done]) -> Done:
        try:
            return given.result()
        except BrokenProcessPool:
            raise WorkerDied from None

    def close(self) -> None:
        for pool in self._pools:
            stop_workers(pool)


_worker: Worker


def _begin(job: Job) -> None:
    global _worker
    _worker = job.worker()


def _work(shard: Shard) -> Done:
    return _worker.work(shard)
