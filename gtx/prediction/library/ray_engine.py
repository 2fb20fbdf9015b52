"""Ray's actors as workers, on one machine or many."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from gtx.data import default_workers
from gtx.data.library.engines import WorkerDied
from gtx.data.library.shards import Done, Shard
from gtx.errors import InputError
from gtx.prediction.library.work import Job, ShardWorker

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

    def __init__(self, job: Job, workers: int | None = None, address: str | None = None, gpus: bool = True) -> None:
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

    def _room(self, job: Job, workers: int | None, gpus: bool) -> tuple[Job, int]:
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
        self._kind = self._ray.remote(ShardWorker).options(**needs, max_restarts=0, max_task_retries=0)
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
