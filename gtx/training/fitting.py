"""Training, as one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytorch_lightning.utilities.seed import isolate_rng
from torch import nn

from gtx.data import MoleculeStore
from gtx.errors import InputError
from gtx.tasks import Task
from gtx.training.data import OnDisk
from gtx.training.logging import Watch
from gtx.training.optimise import check_selection
from gtx.training.ranks import distributed_group, exclusive
from gtx.training.run import RunFolder, interruptible, quiet, run_config, threads
from gtx.training.settings import TrainSettings
from gtx.training.trainer import Problem, train_member
from gtx.training.weight_transfer import TRANSFER_MATCHING, Member, WeightTransfer

ALONE = threading.RLock()
"""Held by the fit that trains: torch draws for a whole process from one generator, so fits in threads take turns."""


@distributed_group()
@exclusive("folder")
def fit(
    model: nn.Module | Callable[[], nn.Module],
    task: Task,
    train: MoleculeStore | OnDisk,
    val: MoleculeStore,
    settings: TrainSettings,
    folder: str | Path,
    *,
    marks: dict[str, Any] | None = None,
    overwrite: bool = False,
    start: Sequence[Member] = (),
    transfer: WeightTransfer = TRANSFER_MATCHING,
    watch: Watch | None = None,
) -> list[Member]:
    """Train an ensemble in a folder; called again with the same arguments it goes on where it was stopped.

    Members that are done are read, one that was killed goes on from its last whole epoch, and on one CPU thread the
    weights end up the same to the last bit.

    Args:
        model: maps a batch (see `gtx.data.MoleculeStore.batch`) to outputs `[B, task.out_channels]`. A module is
            trained as it is given, and afterwards holds the weights of its best epoch; a function of no arguments makes
            each member of an ensemble.
        task: what is learned; where it has not learned its scales yet, it learns them of `train`.
        train: training molecules, with targets in their own units, NaN for blanks; those without any value are left
            out. Those `OnDisk` are read as they are needed.
        val: validation molecules; may be empty.
        settings: how to train.
        folder: of the run.
        marks: plain values that tell this run from any other (data, split, model), for `config.yaml`.
        overwrite: train anew whatever the folder holds.
        start: trained members to go on from; member k starts from `start[k % len(start)]`, and with fresh weights
            where shapes differ.
        transfer: which of their weights are taken over; default: those that fit.
        watch: looks on after every epoch, and may end the training by an exception, see `gtx.training.logging`.

    Returns:
        The trained members.

    Raises:
        InputError: another process trains in the folder, it holds a run of other settings or data, a target has no
            training value, there are no training molecules, the model, the precision or `keep_by` does not suit the
            task, or training diverged.
    """
    settings = settings.settled(task.epochs)
    if isinstance(model, nn.Module) and settings.ensemble > 1:
        raise InputError(f"an ensemble of {settings.ensemble} needs a function that makes a model, not one module")
    if task.writes and not ("mixed" in settings.precision or settings.precision.startswith("32")):
        raise InputError(f"task {task.name} trains in 32-true or in a mixed precision, got {settings.precision}")
    val = task.labelled(val)
    if isinstance(train, OnDisk):
        task = task.fitted_in_parts(train.sample, train.portions())
    else:
        train = task.labelled(train)
        if len(train) == 0:
            raise InputError("there are no training molecules with a target value")
        task = task.fitted(train)
    check_selection(task, settings.keep_by, len(val) > 0)
    run = RunFolder(folder)
    run.open(run_config(task, settings, {"model": _name(model)} | (marks or {})), overwrite)
    problem = Problem(model, task, train, val, settings, start, transfer, watch)
    with ALONE, isolate_rng(), quiet(), interruptible(), threads(settings.threads):
        return [train_member(problem, k, run.member(k)) for k in range(settings.ensemble)]


def _name(model: nn.Module | Callable[[], nn.Module]) -> str:
    return type(model).__name__ if isinstance(model, nn.Module) else getattr(model, "__name__", repr(model))
