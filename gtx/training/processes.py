"""Processes that train: which of several writes files and messages, how they end together, signals and threads."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from subprocess import Popen
from typing import Any, ClassVar, TypeVar

import torch
import torch.distributed as dist
from lightning_fabric.plugins.environments import (
    ClusterEnvironment,
    LightningEnvironment,
    LSFEnvironment,
    MPIEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.utilities.exceptions import SIGTERMException
from torch.distributed.rendezvous import rendezvous

from gtx.base.errors import InputError, Terminated, first_line, raise_on_sigterm, raise_terminated
from gtx.base.files import lock_folder
from gtx.data import MoleculeStore

T = TypeVar("T")

PATIENCE = timedelta(days=7)
"""Longest wait of a process for the main one, which may read a large table or write a long report."""
_barrier_groups: list[dist.ProcessGroup] = []  # the group whose barriers have that patience, in `distributed_group`


def is_main_process() -> bool:
    """Return True in the main process (rank 0), which alone writes files and messages.

    A rank counts only if a launcher that Lightning supports has set it: `SLURM_PROCID` of an interactive SLURM session,
    for instance, is ignored. Lightning's own `rank_zero_only` is right only when a trainer exists: before, it takes
    the main process of a second machine (`NODE_RANK=1`) and rank 1 of Open MPI for the main one.

    Raises:
        InputError: Lightning does not work with the launcher's settings.
    """
    launcher = _launcher()
    if isinstance(launcher, LightningEnvironment):
        return launcher.node_rank() == launcher.local_rank() == 0
    return launcher.global_rank() == 0


def machines() -> int:
    """Return the number of machines on which torchrun has started this training; 1 without torchrun."""
    return int(os.environ.get("GROUP_WORLD_SIZE", "1")) if TorchElasticEnvironment.detect() else 1


def are_several(devices: int | str) -> bool:
    """Return True if several processes train together: those of torchrun, or one of Lightning's for each device."""
    return devices not in (1, "1") or dist.is_initialized()


@contextmanager
def distributed_group() -> Iterator[None]:
    """Open a process group of all processes that torchrun has started; if one fails, all end.

    The main process ends last. If one process fails, all processes end, and the process that failed first prints the
    reason. The other processes exit with status 1, and torchrun ends or restarts all processes. Without torchrun,
    Lightning makes the group when training starts; a process that Lightning started exits with status 1 if the main
    process has ended.

    Raises:
        InputError: another process was lost, or torchrun could not start processes again.
    """
    if not TorchElasticEnvironment.detect() or dist.is_initialized() or os.environ["WORLD_SIZE"] == "1":
        try:
            yield
        except Exception as error:
            if not _is_connection_error(error):
                raise
            if not is_main_process():  # the main one reports the reason
                raise SystemExit(1) from None
            raise _connection_error(error) from error
        return
    _check_restarts()
    store, rank, size = next(rendezvous("env://"))
    backends = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    dist.init_process_group(backends, store=dist.PrefixStore("gtx", store), rank=rank, world_size=size)
    _barrier_groups.append(dist.new_group(backend="gloo", timeout=PATIENCE))
    try:
        yield
        _barrier()
    except BaseException as error:
        silent = _reported_by_another(store, isinstance(error, Exception))
        _leave()  # so that the others fail too
        _wait_for_others(store, rank, size)
        if silent:
            raise SystemExit(1) from None
        if _is_connection_error(error):
            error = _connection_error(error)
        if isinstance(error, InputError):
            error.reports_for_all = True
        raise error from None
    _leave()


@contextmanager
def lock_folder_for_all(folder: Path) -> Iterator[None]:
    """Lock a folder by the main process for all that train together, see `gtx.base.files.lock_folder`."""
    with lock_folder(folder) if is_main_process() else nullcontext():
        yield


@contextmanager
def main_process_first() -> Iterator[None]:
    """Run a block of code in the main process first and in the other processes afterwards."""
    if not is_main_process():
        _barrier()
    yield
    if is_main_process():
        _barrier()


def share_store(store: MoleculeStore, folder: Path) -> MoleculeStore:
    """Return the store as a memory map, of which the processes that train together on a machine hold one copy.

    A process that cannot reach the file of the main one keeps its own copy.

    Args:
        store: the same molecules in every process.
        folder: folder for the file, which is named by the checksum of the store.
    """
    file = folder / f"train-{store.checksum():08x}.safetensors"
    with main_process_first():
        if is_main_process() and not file.exists():
            store.save(file)
    return MoleculeStore.open(file) if file.exists() else store


def run_in_main_process(function: Callable[[], T]) -> T:
    """Call a function in the main process, and send its result to all processes of the group.

    So only the main process reads the folder of the run, and all agree.
    """
    if not dist.is_initialized():
        return function()
    results: list[Any] = [function() if is_main_process() else None]
    dist.broadcast_object_list(results)
    return results[0]


def _launcher() -> ClusterEnvironment:
    launchers: tuple[type[ClusterEnvironment], ...] = (
        TorchElasticEnvironment,
        SLURMEnvironment,
        LSFEnvironment,
        MPIEnvironment,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about an `srun` that was not used
        try:
            return next((launcher for launcher in launchers if launcher.detect()), LightningEnvironment)()
        except (RuntimeError, ValueError) as error:
            raise InputError(f"Lightning cannot train so: {error}") from error


def _check_restarts() -> None:
    # seen with torch 2.13: the store of torchrun's agents lives on, with the addresses of processes that are gone
    restarts, shared = (os.environ.get(f"TORCHELASTIC_{name}") for name in ("MAX_RESTARTS", "USE_AGENT_STORE"))
    if shared == "True" and restarts not in (None, "0"):
        raise InputError(
            f"torchrun --max-restarts {restarts} needs TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in its environment; "
            "without it, processes that are started again look for the others where these were before"
        )


def _barrier() -> None:
    """Wait for all other processes of the group, if there is one."""
    for group in _barrier_groups:
        dist.barrier(group)


def _leave() -> None:
    _barrier_groups.clear()
    dist.destroy_process_group()


def _is_connection_error(error: BaseException) -> bool:
    """Return True if this process failed because another one is gone."""
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error).lower())


def _connection_error(error: BaseException) -> InputError:
    return InputError(
        "another of the processes that train together has ended or cannot be reached "
        f"({first_line(error, 160)}); the same command goes on from the last whole epoch"
    )


def _reported_by_another(store: dist.Store, report: bool) -> bool:
    """Return True if another process has reported the failure; if not, and `report`, this one will."""
    try:
        return store.add("reports", int(report)) > int(report)
    except dist.DistError:  # the main process, which serves the store, has ended before
        return True


def _wait_for_others(store: dist.Store, rank: int, size: int) -> None:
    """Keep the main process, which serves the store, until all others have read the reports, at most 1 s."""
    with suppress(dist.DistError):
        store.add("ended", 1)
        deadline = time.monotonic() + 1
        while rank == 0 and store.add("ended", 0) < size and time.monotonic() < deadline:
            time.sleep(0.05)


# --- SIGTERM while Lightning trains, in one process or in several.


class TerminationCallback(Callback):
    """Handler by which SIGTERM raises `Terminated` at once and ends the processes that Lightning started.

    Lightning's own handler waits for the end of the batch, and in several processes for a broadcast, which never comes
    if another process waits for a gradient.
    """

    started: ClassVar[list[Popen[Any]]] = []  # by the first training of this process, for later ones

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        self.handler: Any = signal.getsignal(signal.SIGTERM)
        self.started.extend(getattr(trainer.strategy.launcher, "procs", ()))

    def on_train_start(self, *_: Any) -> None:
        # Lightning has installed its own handler
        if self.handler is raise_terminated and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, raise_terminated)

    def on_exception(self, *_: Any) -> None:
        # only when this process ends, or Lightning's observer of the others would kill it
        for process in self.started:
            atexit.register(process.kill)
        self.started.clear()


# --- Notices, threads and signals of the process while a model trains; each is restored afterwards.


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress notices of Lightning (devices, tips, "`Trainer.fit` stopped"), which a user of gtx does not need."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    try:
        with warnings.catch_warnings():
            for text in ("available but not used", "exists and is not empty", "LeafSpec"):
                warnings.filterwarnings("ignore", f".*{text}.*")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch use `count` threads in the block; None keeps their number."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on Ctrl-C and `Terminated` on SIGTERM.

    On Ctrl-C Lightning would exit and leave its own handler installed; on SIGTERM it would exit with status 0, as after
    a complete training.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        with raise_on_sigterm():
            yield
    except SIGTERMException:
        raise Terminated from None
    except SystemExit as exit_:
        if not isinstance(exit_.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)
        raise KeyboardInterrupt from None
