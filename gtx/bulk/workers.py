"""Workers that process shards (this process, several processes, or actors of Ray) and the loop that feeds them."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, Self

from joblib.externals.loky import ProcessPoolExecutor

from gtx.bulk.tables import MAX_DEATHS, Journal, Library, Reader, Shard, ShardFailed, ShardResult, UnreadableFile
from gtx.data.columns import Table
from gtx.data.featurising import default_worker_count, make_process_pool, stop_workers
from gtx.data.row_log import RowLog
from gtx.errors import InputError

# --- The job, and a worker that does it for one shard after the other.


@dataclass(frozen=True, kw_only=True)
class ShardJob(ABC):
    """Description of the work, the same for all shards; pickled and sent to every worker.

    Attributes:
        root: the folder of the tables.
        parts: the folder for the output of the shards.
        on_error: "fail" stops at the first row that cannot be used; "report" records the error and continues.
    """

    root: Path
    parts: Path
    on_error: Literal["report", "fail"] = "report"

    @abstractmethod
    def worker(self) -> ShardWorker:
        """Make a worker in the current process."""

    def with_readers(self, readers: int | None) -> Self:
        """Return the job with so many processes that read for a worker, for a job that can use them."""
        return self

    def journal(self, shard: Shard) -> Path:
        """Return the file in which a worker records its progress."""
        part = self.parts / shard.part
        return part.with_name(f".{part.name}.journal")


class ShardWorker(ABC):
    """Worker that writes the output of one shard after the other, completely or not at all.

    Args:
        job: the work.
        opened: opens a table, given its path and the number of rows to skip.
    """

    def __init__(self, job: ShardJob, opened: Callable[[Path, int], Table]) -> None:
        self.job = job
        self._reader = Reader(job.root, opened)

    @abstractmethod
    def write(self, shard: Shard, table: Table, journal: Journal, row_log: RowLog) -> ShardResult:
        """Write the output of a shard, completely or not at all, and return its `shard_result`."""

    def work(self, shard: Shard) -> ShardResult:
        """Process a shard; if it cannot be read, or several workers died of it, the result has a `problem`.

        Raises:
            InputError: the output cannot be written; or, with "fail", a row cannot be used.
        """
        try:
            journal = Journal(self.job.journal(shard))
            done = self.write(shard, self._reader.table(shard), journal, RowLog(self.job.on_error))
        except (UnreadableFile, ShardFailed) as reason:
            return ShardResult(0, {}, 0, 0, f"{shard.file}: {reason}")
        except InputError as reason:
            raise InputError(f"{shard.file}: {reason}") from None
        journal.close()
        return done


def shard_result(shard: Shard, row_log: RowLog, kept: int) -> ShardResult:
    """Return the counts of a shard.

    Raises:
        UnreadableFile: the file has changed and has another number of rows.
    """
    if row_log.rows != shard.rows:
        raise UnreadableFile(
            f"has changed: {shard.rows} rows were expected from {shard.first + 1} on, {row_log.rows} came"
        )
    return ShardResult(row_log.rows, dict(row_log.error_counts), row_log.warned, kept)


# --- Engines: this process, or processes of this machine.


class WorkerDied(Exception):
    """Error: the process of a worker ended while it processed a shard."""


class Engine(ABC):
    """A pool of workers.

    `run_shards` starts workers, hands each a shard at a time, and collects the results by handles.

    Attributes:
        job: the work.
        workers: maximum number of workers.
    """

    job: ShardJob
    workers: int

    @abstractmethod
    def start(self) -> Any:
        """Start a worker."""

    @abstractmethod
    def submit(self, worker: Any, shard: Shard) -> Any:
        """Hand a shard to an idle worker; return a hashable handle of its result."""

    @abstractmethod
    def wait_any(self, handles: Sequence[Any]) -> Any:
        """Wait until one of these results is available, and return its handle."""

    @abstractmethod
    def result(self, handle: Any) -> ShardResult:
        """Return a result.

        Raises:
            WorkerDied: the worker ended before it had one.
        """

    @abstractmethod
    def close(self) -> None:
        """End all workers at once."""


def run_shards(engine: Engine, shards: Iterable[Shard]) -> Iterator[tuple[Shard, ShardResult]]:
    """Process shards, and yield each with its result; a shard whose worker died goes to another one.

    A worker has one shard at a time, and shards are drawn as needed, so that none queue up.

    Raises:
        InputError: workers end before they read a row.
    """
    remaining, retries = iter(shards), deque[Shard]()
    busy: dict[Any, tuple[Any, Shard]] = {}
    idle: list[Any] = []
    early_deaths: Counter[Shard] = Counter()
    while True:
        while len(busy) < engine.workers and (shard := retries.popleft() if retries else next(remaining, None)):
            worker = idle.pop() if idle else engine.start()
            busy[engine.submit(worker, shard)] = worker, shard
        if not busy:
            return
        handle = engine.wait_any(list(busy))
        worker, shard = busy.pop(handle)
        try:
            result = engine.result(handle)
        except WorkerDied:
            if not engine.job.journal(shard).exists():
                early_deaths[shard] += 1
            if early_deaths[shard] == MAX_DEATHS:
                raise InputError("workers end before they read a row; is there enough memory for so many?") from None
            retries.append(shard)
            continue
        idle.append(worker)
        yield shard, result


class InProcess(Engine):
    """Engine of this process alone, with the processes that read for it.

    Args:
        job: the work.
        make_worker: makes the worker.
    """

    workers = 1

    def __init__(self, job: ShardJob, make_worker: Callable[[], ShardWorker]) -> None:
        self.job = job
        self._make_worker = make_worker

    def start(self) -> ShardWorker:
        return self._make_worker()

    def submit(self, worker: ShardWorker, shard: Shard) -> Future[ShardResult]:
        future: Future[ShardResult] = Future()
        future.set_result(worker.work(shard))
        return future

    def wait_any(self, handles: Sequence[Any]) -> Any:
        return handles[0]

    def result(self, handle: Future[ShardResult]) -> ShardResult:
        return handle.result()

    def close(self) -> None:
        """Do nothing: the worker is this process."""


class Processes(Engine):
    """Engine of several processes of this machine, each with a worker; one that dies leaves the others running."""

    def __init__(self, job: ShardJob, workers: int) -> None:
        self.job = job
        self.workers = workers
        self._pools: list[ProcessPoolExecutor] = []

    def start(self) -> ProcessPoolExecutor:
        pool = make_process_pool(1, _begin, self.job)
        self._pools.append(pool)
        return pool

    def submit(self, worker: ProcessPoolExecutor, shard: Shard) -> Future[ShardResult]:
        return worker.submit(_work, shard)

    def wait_any(self, handles: Sequence[Any]) -> Any:
        return next(iter(wait(handles, return_when=FIRST_COMPLETED).done))

    def result(self, handle: Future[ShardResult]) -> ShardResult:
        try:
            return handle.result()
        except BrokenProcessPool:
            raise WorkerDied from None

    def close(self) -> None:
        for pool in self._pools:
            stop_workers(pool)


_worker: ShardWorker


def _begin(job: ShardJob) -> None:
    global _worker
    _worker = job.worker()


def _work(shard: Shard) -> ShardResult:
    return _worker.work(shard)


# --- An engine of Ray's actors, on one machine or many.

_POLL = 0.05  # seconds between two checks for results
_OBJECTS = 100 * 2**20  # bytes of Ray's object store: workers exchange counts only


class RayEngine(Engine):
    """Engine of actors in a Ray cluster: one per GPU, with a share of the cores; without GPUs one per core.

    If Ray already runs in this process, it is used as it is and left running.

    Args:
        job: the work; its folders and its model must have the same paths on all machines.
        workers: number of actors; default: as many as the cluster has room for.
        address: address of a Ray cluster, such as "auto"; by default, Ray is started on the local machine and stopped
            at the end.
        gpus: use GPUs if there are any.

    Raises:
        InputError: Ray is not installed, there is no cluster at the address, or it has no room for so many actors.
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
        own = {
            "num_cpus": workers or default_worker_count(),
            "object_store_memory": _OBJECTS,
            "include_dashboard": False,
        }
        try:
            with _keep_signal_handlers():
                self._ray.init(address or "local", **quiet, **({} if address else own))
        except Exception as reason:  # Ray raises any, a bare Exception where its own processes are slow to start
            why = next(iter(str(reason).strip().splitlines()), type(reason).__name__)
            raise InputError(
                f"there is no Ray at {address}: {why}" if address else f"Ray does not start: {why}"
            ) from None

    def _room(self, job: ShardJob, workers: int | None, gpus: bool) -> tuple[ShardJob, int]:
        """Return the job, with reading processes if an actor has a GPU, and the number of actors."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        with_gpus = [node for node in nodes if gpus and node.get("GPU", 0) >= 1]
        if with_gpus:
            share = max(1, min(int(node.get("CPU", 1) // node["GPU"]) for node in with_gpus))
            room, needs = int(sum(node["GPU"] for node in with_gpus)), {"num_cpus": share, "num_gpus": 1}
            job = job.with_readers(share - 1)
        else:
            room, needs = int(sum(node.get("CPU", 0) for node in nodes)), {"num_cpus": 1}
        if not 1 <= (workers or room) <= room:
            raise InputError(f"workers: expected 1 to {room}, for which Ray has room, got {workers or room}")
        self._actor_class = self._ray.remote(_Actor).options(**needs, max_restarts=0, max_task_retries=0)
        return job, workers or room

    def start(self) -> Any:
        self._actors.append(self._actor_class.remote(self.job))
        return self._actors[-1]

    def submit(self, worker: Any, shard: Shard) -> Any:
        return worker.work.remote(shard)

    def wait_any(self, handles: Sequence[Any]) -> Any:
        # ray.wait without a timeout turns every signal but Ctrl-C into an exit with status 1
        while not (ready := self._ray.wait(list(handles), num_returns=1, timeout=0)[0]):
            time.sleep(_POLL)
        return ready[0]

    def result(self, handle: Any) -> ShardResult:
        errors = self._ray.exceptions
        try:
            return self._ray.get(handle)
        except errors.RayTaskError as reason:
            if isinstance(reason.cause, BrokenProcessPool):  # a process that read for it died
                raise WorkerDied from None
            raise reason.cause from None
        except errors.RayActorError:
            raise WorkerDied from None

    def close(self) -> None:
        for actor in self._actors:
            with suppress(Exception):  # it may have ended already
                self._ray.kill(actor)
        if self._ours:
            self._ray.shutdown()


class _Actor:
    def __init__(self, job: ShardJob) -> None:
        self._worker = job.worker()

    def work(self, shard: Shard) -> ShardResult:
        return self._worker.work(shard)


@contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Keep our handler of SIGTERM: Ray's own ends the process at once and prints a stack."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def ray_library() -> Any:
    """Import Ray.

    Raises:
        InputError: it is not installed.
    """
    # Ray would print a paragraph about each worker that dies; `run_shards` handles these
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", "A worker died or was killed")
    try:
        import ray
    except ImportError:
        raise InputError("--engine ray needs Ray: in the folder of gtx, pip install '.[ray]'") from None
    return ray


# --- A whole library: finished shards are kept, the others go to workers.


@dataclass
class LibraryOutcome:
    """Result of processing a library.

    Attributes:
        row_log: counts of rows and errors, including those of earlier runs; the messages are in the output.
        files: number of tables.
        done: the finished shards.
        before: number of shards that earlier runs finished.
        kept: number of rows, or molecules, that were written.
        path: path of the output folder, or of the file of the best rows.
        problems: messages about files or shards that could not be used.
        left_out: names of files that are not tables.
    """

    path: Path
    files: int
    left_out: list[str]
    row_log: RowLog = field(default_factory=RowLog)
    done: list[Shard] = field(default_factory=list)
    before: int = 0
    kept: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def shards(self) -> int:
        """Number of finished shards."""
        return len(self.done)

    def add(self, shard: Shard, result: ShardResult) -> None:
        """Add the counts of a shard."""
        if result.problem:
            self.problems.append(result.problem)
            return
        self.done.append(shard)
        self.row_log.rows += result.rows
        self.row_log.error_counts += Counter(result.error_counts)
        self.row_log.warned += result.warned
        self.kept += result.kept

    def summary_lines(self, written: str) -> Iterator[str]:
        """Yield the lines of a summary; `written` names what `kept` counts, such as "rows written"."""
        yield self.row_log.summary()
        before = f", {self.before:,} of them from earlier runs" if self.before else ""
        yield f"files: {self.files:,}; shards: {self.shards:,}{before}; {written}: {self.kept:,}"
        if self.left_out:
            more = f" and {len(self.left_out) - 1:,} more" if self.left_out[1:] else ""
            yield f"left out, as no tables: {self.left_out[0]}{more}"
        yield f"written to {self.path}"
        for problem in self.problems:
            yield f"gtx: {problem}"


def process_library(
    library: Library,
    size: int,
    before: Mapping[Shard, ShardResult],
    opened: Callable[[Path], Table],
    engine: Callable[[bool], Engine],
    outcome: LibraryOutcome,
    check: Callable[[Table], object] = lambda table: None,
    label: str | None = None,
) -> None:
    """Process all shards that are not finished.

    Args:
        library: the tables.
        size: rows of a shard.
        before: finished shards, with their results.
        opened: opens a table, given its path; called for files that are not finished.
        engine: makes the workers if there is a shard to process; its argument is True if there are several.
        outcome: the counts are added to it.
        check: called with each table; its errors end the run, as those of the user's options.
        label: of a progress bar; None shows none.
    """
    outcome.before = len(before)
    with ExitStack() as stack:
        bar = stack.enter_context(_bar(label))
        for shard, result in before.items():
            outcome.add(shard, result)
            bar(shard.rows)
        shards = _open_shards(library, size, before, opened, check, outcome.problems)
        first = list(islice(shards, 2))
        if not first:
            return
        workers = engine(len(first) > 1)
        stack.callback(workers.close)
        for shard, result in run_shards(workers, chain(first, shards)):
            outcome.add(shard, result)
            bar(shard.rows)


def _open_shards(
    library: Library,
    size: int,
    before: Iterable[Shard],
    opened: Callable[[Path], Table],
    check: Callable[[Table], object],
    problems: list[str],
) -> Iterator[Shard]:
    """Yield the shards that are not finished; a finished file is not opened."""
    finished = defaultdict(list)
    for shard in before:
        finished[shard.file].append(shard)
    for file in library.files:
        if _is_complete(finished[file]):
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


def _is_complete(shards: Sequence[Shard]) -> bool:
    """Return whether these shards of a file are all of it."""
    return sum(shard.rows for shard in shards) == max((s.first + s.rows for s in shards if s.last), default=-1)


@contextmanager
def _bar(label: str | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar; call the yielded function with the rows of each finished shard."""
    if label is None:
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.completed:,.0f} rows in {task.fields[shards]:,} shards")
    with Progress(TextColumn(label), BarColumn(), text, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task, shards = bar.add_task("", total=None, shards=0), iter(range(1, 2**63))
        yield lambda rows: bar.update(task, advance=rows, shards=next(shards))
