"""Workers at shards: this process, processes of its own or Ray's actors; and how shards are handed out to them."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, Protocol

from joblib.externals.loky import ProcessPoolExecutor

from gtx.data.columns import Table
from gtx.data.featurising import default_workers, process_pool, stop_workers
from gtx.data.ledger import Ledger
from gtx.errors import InputError
from gtx.library.tables import PATIENCE, Done, Hopeless, Journal, Library, Reader, Shard, Unreadable

# --- What a worker does with a shard.


@dataclass(frozen=True, kw_only=True)
class ShardJob(ABC):
    """Work that all shards have in common; pickled small, it goes to every worker.

    Attributes:
        root: the folder of the tables.
        parts: the folder for what is made of them.
        on_error: "fail" stops at the first row that cannot be used.
    """

    root: Path
    parts: Path
    on_error: Literal["report", "fail"] = "report"

    @abstractmethod
    def worker(self) -> ShardWorker:
        """Start a worker, in a process of its own."""

    def journal(self, shard: Shard) -> Path:
        """File where a worker notes how far it is."""
        part = self.parts / shard.part
        return part.with_name(f".{part.name}.journal")


class ShardWorker(ABC):
    """Makes the part of one shard after the other, whole or not at all.

    Args:
        job: what there is to do.
        opened: a table, of its path and of how many rows at its start are to be passed over.
    """

    def __init__(self, job: ShardJob, opened: Callable[[Path, int], Table]) -> None:
        self.job, self._reader = job, Reader(job.root, opened)

    @abstractmethod
    def write(self, shard: Shard, table: Table, journal: Journal, ledger: Ledger) -> Done:
        """Write the part of a shard, whole or not at all, and count by `done_with`."""

    def work(self, shard: Shard) -> Done:
        """Write the part of a shard; what cannot be read, or ends worker after worker, is told in words.

        Raises:
            InputError: the part cannot be written; or, with "fail", a row cannot be used.
        """
        try:
            journal = Journal(self.job.journal(shard))
            done = self.write(shard, self._reader.table(shard), journal, Ledger(self.job.on_error))
        except (Unreadable, Hopeless) as reason:
            return Done(0, {}, 0, 0, f"{shard.file}: {reason}")
        except InputError as reason:
            raise InputError(f"{shard.file}: {reason}") from None
        journal.close()
        return done


def done_with(shard: Shard, ledger: Ledger, kept: int) -> Done:
    """Count what became of a shard; `Unreadable` where its file has other rows by now."""
    if ledger.rows != shard.rows:
        raise Unreadable(f"has changed: {shard.rows} rows were expected from {shard.first + 1} on, {ledger.rows} came")
    return Done(ledger.rows, dict(ledger.kinds), ledger.warned, kept)


# --- Who works: this process, or processes of its own.


class WorkerDied(Exception):
    """The process of a worker has ended amid a shard."""


class Engine(Protocol):
    """Workers of one kind.

    Attributes:
        job: what they work at.
        workers: how many there are at most.
    """

    job: ShardJob
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

    def __init__(self, job: ShardJob, start: Callable[[], ShardWorker]) -> None:
        self.job, self.start = job, start

    def give(self, worker: ShardWorker, shard: Shard) -> Future[Done]:
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

    def __init__(self, job: ShardJob, workers: int) -> None:
        self.job, self.workers = job, workers
        self._pools: list[ProcessPoolExecutor] = []

    def start(self) -> ProcessPoolExecutor:
        pool = process_pool(1, _begin, self.job)
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


_worker: ShardWorker


def _begin(job: ShardJob) -> None:
    global _worker
    _worker = job.worker()


def _work(shard: Shard) -> Done:
    return _worker.work(shard)


# --- Ray's actors, on one machine or many.

_PAUSE = 0.05  # seconds between two looks at what is done
_OBJECTS = 100 * 2**20  # bytes of Ray's store: counts alone go from worker to worker


class RayEngine:
    """Actors of a Ray cluster: one for each GPU, with a share of the cores to read; without GPUs one for each core.

    A Ray that runs in this process already is used as it is, and goes on afterwards.

    Args:
        job: what they work at. Its folders and its model have the same names on all machines.
        workers: actors; default: as many as there is room for.
        address: of a cluster, such as "auto"; default: a Ray of this machine for as long as it is needed.
        gpus: use GPUs, where there are any.

    Raises:
        InputError: Ray is not installed, there is no cluster at the address, or no room for so many.
    """

    def __init__(
        self, job: ShardJob, workers: int | None = None, address: str | None = None, gpus: bool = True
    ) -> None:
        self._ray = ray_library()
        self._ours = not self._ray.is_initialized()
        if self._ours:
            self._connect(address, workers)
        self._actors: list[Any] = []
        try:
            self.job, self.workers = self._room(job, workers, gpus)
        except BaseException:
            self.close()
            raise

    def _connect(self, address: str | None, workers: int | None) -> None:
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # what Ray warns of otherwise
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody is told of our user's work
        os.environ.setdefault("RAY_worker_niceness", "0")  # as other processes of gtx; Ray's 15 waits for everybody
        quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        own = {"num_cpus": workers or default_workers(), "object_store_memory": _OBJECTS, "include_dashboard": False}
        try:
            with _our_signals():
                self._ray.init(address or "local", **quiet, **({} if address else own))
        except Exception as reason:  # Ray raises any, a bare Exception where its own processes are slow to start
            why = next(iter(str(reason).strip().splitlines()), type(reason).__name__)
            raise InputError(
                f"there is no Ray at {address}: {why}" if address else f"Ray does not start: {why}"
            ) from None

    def _room(self, job: ShardJob, workers: int | None, gpus: bool) -> tuple[ShardJob, int]:
        """The job, with processes that read where an actor has a GPU, and how many actors there are."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        with_gpus = [node for node in nodes if gpus and node.get("GPU", 0) >= 1]
        if with_gpus:
            share = max(1, min(int(node.get("CPU", 1) // node["GPU"]) for node in with_gpus))
            most, needs = int(sum(node["GPU"] for node in with_gpus)), {"num_cpus": share, "num_gpus": 1}
            job = replace(job, readers=share - 1)
        else:
            most, needs = int(sum(node.get("CPU", 0) for node in nodes)), {"num_cpus": 1}
        if not 1 <= (workers or most) <= most:
            raise InputError(f"workers: expected 1 to {most}, for which Ray has room, got {workers or most}")
        self._kind = self._ray.remote(_Actor).options(**needs, max_restarts=0, max_task_retries=0)
        return job, workers or most

    def start(self) -> Any:
        self._actors.append(self._kind.remote(self.job))
        return self._actors[-1]

    def give(self, worker: Any, shard: Shard) -> Any:
        return worker.work.remote(shard)

    def first(self, given: Sequence[Any]) -> Any:
        while not (ready := self._ray.wait(list(given), num_returns=1, timeout=0)[0]):
            time.sleep(
                _PAUSE
            )  # a signal is heard here; while Ray waits it makes of any but Ctrl-C an exit with status 1
        return ready[0]

    def result(self, given: Any) -> Done:
        errors = self._ray.exceptions
        try:
            return self._ray.get(given)
        except errors.RayTaskError as reason:
            if isinstance(reason.cause, BrokenProcessPool):  # what read for it
                raise WorkerDied from None
            raise reason.cause from None
        except errors.RayActorError:
            raise WorkerDied from None

    def close(self) -> None:
        for actor in self._actors:
            with suppress(Exception):  # it has ended already
                self._ray.kill(actor)
        if self._ours:
            self._ray.shutdown()


class _Actor:
    def __init__(self, job: ShardJob) -> None:
        self._worker = job.worker()

    def work(self, shard: Shard) -> Done:
        return self._worker.work(shard)


@contextmanager
def _our_signals() -> Iterator[None]:
    """SIGTERM goes where it went before: Ray's own handler ends the process where it stands, and prints a stack."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def ray_library() -> Any:
    """Ray.

    Raises:
        InputError: it is not installed.
    """
    # of a worker that dies, which is looked after, Ray prints a paragraph
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "A worker died or was killed")
    try:
        import ray
    except ImportError:
        raise InputError("--engine ray needs Ray: in the folder of gtx, pip install '.[ray]'") from None
    return ray


# --- A library worked through: what is done stays done, the rest goes to workers.


@dataclass
class LibraryOutcome:
    """What became of a library.

    Attributes:
        ledger: counts of rows and errors, those of earlier runs included; the messages are in the parts.
        files: how many there are.
        done: the shards that are done.
        before: how many of them were done already.
        kept: how many rows, or molecules, are written.
        where: the folder of the parts, or the file of the best.
        problems: files or shards that could not be used, in words.
        left_out: files that are no tables.
    """

    where: Path
    files: int
    left_out: list[str]
    ledger: Ledger = field(default_factory=Ledger)
    done: list[Shard] = field(default_factory=list)
    before: int = 0
    kept: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def shards(self) -> int:
        """How many are done."""
        return len(self.done)

    def add(self, shard: Shard, done: Done) -> None:
        """Take in a shard."""
        if done.problem:
            self.problems.append(done.problem)
            return
        self.done.append(shard)
        self.ledger.rows += done.rows
        self.ledger.kinds += Counter(done.kinds)
        self.ledger.warned += done.warned
        self.kept += done.kept

    def told(self, written: str) -> Iterator[str]:
        """What became of the library, a line each.

        Args:
            written: what `kept` counts, such as "rows written".
        """
        yield self.ledger.summary()
        before = f", {self.before:,} of them done before" if self.before else ""
        yield f"files: {self.files:,}; shards: {self.shards:,}{before}; {written}: {self.kept:,}"
        if self.left_out:
            more = f" and {len(self.left_out) - 1:,} more" if self.left_out[1:] else ""
            yield f"left out, as no tables: {self.left_out[0]}{more}"
        yield f"written to {self.where}"
        for problem in self.problems:
            yield f"gtx: {problem}"


def pass_through(
    library: Library,
    size: int,
    before: Mapping[Shard, Done],
    opened: Callable[[Path], Table],
    engine: Callable[[bool], Engine],
    outcome: LibraryOutcome,
    check: Callable[[Table], object] = lambda table: None,
    label: str | None = None,
) -> None:
    """Have all shards worked at that are not done.

    Args:
        library: the tables.
        size: rows of a shard.
        before: the shards that are done already.
        opened: a table, of its path; called for files that are not done as a whole.
        engine: the workers, made where there is something to do; told whether that is more than one shard.
        outcome: takes in what comes.
        check: called with each table; what it raises is the user's mistake, and no fault of the file.
        label: of a progress bar; None shows none.
    """
    outcome.before = len(before)
    with ExitStack() as stack:
        bar = stack.enter_context(_bar(label))
        for shard, done in before.items():
            outcome.add(shard, done)
            bar(shard.rows)
        todo = _todo(library, size, before, opened, check, outcome.problems)
        first = list(islice(todo, 2))
        if not first:
            return
        working = engine(len(first) > 1)
        stack.callback(working.close)
        for shard, done in worked(working, chain(first, todo)):
            outcome.add(shard, done)
            bar(shard.rows)


def _todo(
    library: Library,
    size: int,
    before: Iterable[Shard],
    opened: Callable[[Path], Table],
    check: Callable[[Table], object],
    problems: list[str],
) -> Iterator[Shard]:
    """The shards that are not done, drawn as they are needed; a file that is done is not opened."""
    known = defaultdict(list)
    for shard in before:
        known[shard.file].append(shard)
    for file in library.files:
        if _whole(known[file]):
            continue
        try:
            table = opened(library.root / file)
        except InputError as reason:
            problems.append(f"{file}: {reason}")
            continue
        check(table)
        try:
            yield from (shard for shard in library.shards(file, table, size) if shard not in before)
        except InputError as reason:
            problems.append(f"{file}: {reason}")


def _whole(shards: Sequence[Shard]) -> bool:
    """Whether these shards of a file are all of it."""
    return sum(shard.rows for shard in shards) == max((s.first + s.rows for s in shards if s.last), default=-1)


@contextmanager
def _bar(label: str | None) -> Iterator[Callable[[int], None]]:
    """What is called with the number of rows whenever a shard is done."""
    if label is None:
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    told = TextColumn("{task.completed:,.0f} rows in {task.fields[shards]:,} shards")
    with Progress(TextColumn(label), BarColumn(), told, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task, shards = bar.add_task("", total=None, shards=0), iter(range(1, 2**63))
        yield lambda rows: bar.update(task, advance=rows, shards=next(shards))
