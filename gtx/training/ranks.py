"""Several processes that train one model: which of them writes and speaks, and how they end together."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import ParamSpec, TypeVar

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
from torch.distributed.rendezvous import rendezvous

from gtx.errors import InputError, printable
from gtx.folders import locked

P, T = ParamSpec("P"), TypeVar("T")

PATIENCE = timedelta(days=7)
"""Longest wait of a process for the main one, which may read a large table or write a long report."""
_waiting: list[dist.ProcessGroup] = []  # the group whose barriers have that patience, within `distributed_group`


def is_main_process() -> bool:
    """Tell whether this process writes files and messages for the run; among several that train together, one does.

    A rank counts only where a launcher that Lightning heeds has set it: in an interactive SLURM session, say,
    `SLURM_PROCID` means nothing.

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


@contextmanager
def distributed_group() -> Iterator[None]:
    """Processes that torchrun has started are a group within, and end together.

    The main process is the last to leave. If one fails, all end, and one of them says why: the first that failed. The
    others exit with status 1, and torchrun ends or starts them all again. Without torchrun Lightning makes the group
    when it trains; a process that it started, and whose main process is gone, exits with status 1 too.

    Raises:
        InputError: another process was lost, or torchrun could not start processes again.
    """
    if not TorchElasticEnvironment.detect() or dist.is_initialized() or os.environ["WORLD_SIZE"] == "1":
        try:
            yield
        except Exception as error:
            if not _lost(error):
                raise
            if not is_main_process():  # the main one says why it has left
                raise SystemExit(1) from None
            raise _loss(error) from error
        return
    _check_restarts()
    store, rank, size = next(rendezvous("env://"))
    kinds = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    dist.init_process_group(kinds, store=dist.PrefixStore("gtx", store), rank=rank, world_size=size)
    _waiting.append(dist.new_group(backend="gloo", timeout=PATIENCE))
    try:
        yield
        _wait()
    except BaseException as error:
        silent = _another_spoke(store, isinstance(error, Exception))
        _leave()  # so that the others fail too
        _see_off(store, rank, size)
        if silent:
            raise SystemExit(1) from None
        if _lost(error):
            error = _loss(error)
        if isinstance(error, InputError):
            error.speaks_for_all = True
        raise error from None
    _leave()


def exclusive(folder: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator for a function that trains: it is called under the lock of the folder that its argument names. Where
    several processes train together the main one holds it for all.

    Args:
        folder: name of the argument.
    """

    def decorate(train: Callable[P, T]) -> Callable[P, T]:
        parameters = signature(train)

        @wraps(train)
        def call(*arguments: P.args, **named: P.kwargs) -> T:
            path = Path(parameters.bind(*arguments, **named).arguments[folder])
            with locked(path) if is_main_process() else nullcontext():
                return train(*arguments, **named)

        return call

    return decorate


@contextmanager
def main_first() -> Iterator[None]:
    """The main process runs what is within before all others do, within `distributed_group`."""
    if not is_main_process():
        _wait()
    yield
    if is_main_process():
        _wait()


def from_main(find: Callable[[], T]) -> T:
    """Return the result of `find` in the main process, broadcast to all processes of an existing group.

    So only the main process reads the folder of the run, and all go the same way.
    """
    if not dist.is_initialized():
        return find()
    found = [find() if is_main_process() else None]
    dist.broadcast_object_list(found)
    return found[0]


def _launcher() -> ClusterEnvironment:
    launchers = (TorchElasticEnvironment, SLURMEnvironment, LSFEnvironment, MPIEnvironment)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is an `srun` which was not used
        try:
            return next((kind for kind in launchers if kind.detect()), LightningEnvironment)()
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


def _wait() -> None:
    """For all others, where they are a group already."""
    for group in _waiting:
        dist.barrier(group)


def _leave() -> None:
    _waiting.clear()
    dist.destroy_process_group()


def _lost(error: BaseException) -> bool:
    """Tell whether this process failed because another one is gone."""
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and "gloo" in str(error).lower())


def _loss(error: BaseException) -> InputError:
    return InputError(
        "another of the processes that train together has ended or cannot be reached "
        f"({printable(str(error).splitlines()[0], 160)}); the same command goes on from the last whole epoch"
    )


def _another_spoke(store: dist.Store, speak: bool) -> bool:
    """Tell whether another process has reported why all end; if not, and `speak`, this one will."""
    try:
        return store.add("spoken", int(speak)) > int(speak)
    except dist.DistError:  # the main process, which kept the store, has ended before
        return True


def _see_off(store: dist.Store, rank: int, size: int) -> None:
    """The main process keeps the store: it stays until all others have looked there who spoke, or 1 s."""
    with suppress(dist.DistError):
        store.add("ended", 1)
        deadline = time.monotonic() + 1
        while rank == 0 and store.add("ended", 0) < size and time.monotonic() < deadline:
            time.sleep(0.05)
