"""One model of an ensemble, trained in its own folder, from the start or from where it was interrupted."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Callback, Trainer
from pytorch_lightning.callbacks import ModelCheckpoint
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from torch import nn

from gtx.closed_form import fit_closed_form
from gtx.errors import InputError
from gtx.tasks import Task
from gtx.training.capture import CapturedModule, why_not
from gtx.training.checkpoints import History, WholeCheckpointIO, readable, save_whole
from gtx.training.data import MoleculeData, OnDisk
from gtx.training.forecast import ForecastFirst
from gtx.training.logging import TrainingBar, Watch, Watched, make_logger
from gtx.training.module import PropertyModule, spread_seed
from gtx.training.optimise import KeepBest, WeightAverage
from gtx.training.ranks import from_main, is_main_process
from gtx.training.run import Ending, quiet
from gtx.training.settings import TrainSettings
from gtx.training.start_check import check_capture
from gtx.training.weight_transfer import TRANSFER_MATCHING, Member, WeightTransfer


@dataclass(frozen=True)
class Problem:
    """Inputs for training every member of an ensemble.

    Attributes:
        model: a module, or a function that makes one.
        task: what is learned, fitted.
        train, val: molecules with targets in their own units; `val` may be empty.
        settings: how to train.
        start: members to go on from, when a trained model is tuned further.
        transfer: which of their weights are taken over.
        watch: looks on after every epoch.
    """

    model: nn.Module | Callable[[], nn.Module]
    task: Task
    train: Any
    val: Any
    settings: TrainSettings
    start: Sequence[Member] = ()
    transfer: WeightTransfer = TRANSFER_MATCHING
    watch: Watch | None = None

    def make(self, number: int) -> nn.Module:
        """The model of member `number`, untrained."""
        try:
            model = self.model if isinstance(self.model, nn.Module) else self.model()
        except (TypeError, ValueError) as error:
            raise InputError(f"the model cannot be made: {error}") from error
        self._show(model)  # gtx's own models know which codes they were trained with, and the scale of descriptors
        if self.start:
            self.transfer.take(model, self.start[number % len(self.start)].model)  # the scale of what is new stays
            self._show(model, more=True)
        return model

    def _show(self, model: nn.Module, more: bool = False) -> None:
        """Have a model observe the training molecules; of those on disk a sample, and then the codes of all."""
        if not hasattr(model, "observe"):
            return
        on_disk = isinstance(self.train, OnDisk)
        model.observe(self.train.sample if on_disk else self.train, **{"more": True} if more else {})
        for part in self.train.portions() if on_disk else ():
            model.observe(part, more=True)


def train_member(problem: Problem, number: int, folder: Path) -> Member:
    """Train member `number`, or go on with it, or read it if it is done.

    Args:
        problem: what it is trained on.
        number: with the settings' seed, decides its own.
        folder: holds `log.csv`, and `last.ckpt` of the last whole epoch while it trains, `trained.pt` afterwards.
    """
    settings = problem.settings
    seed = spread_seed(settings.seed, number)
    torch.manual_seed(seed)
    model = problem.make(number)
    problem.task.check(model, settings.ensemble)
    if hasattr(model, "solve"):  # in a second or so, and always the same: nothing to go on with
        fit_closed_form(model, problem.task, problem.train)
        return Member(model.eval(), problem.task, [], 0, math.inf)
    file = folder / "trained.pt"
    if (trained := from_main(lambda: _read(file))) is not None:
        with readable(file):
            model.load_state_dict(trained.pop("weights"))
            return Member(model.cpu().float().eval(), problem.task, **trained)
    if isinstance(problem.train, OnDisk):
        data = problem.train.data(problem.task, problem.val, settings, seed)
    else:
        data = MoleculeData(problem.task, problem.train, problem.val, settings=settings, seed=seed)
    try:
        module = PropertyModule(model, problem.task, settings, seed)
    except ValueError as reason:
        raise InputError(str(reason)) from None
    watch = None if problem.watch is None else partial(problem.watch, number)
    title = f"member {number + 1}/{settings.ensemble}"
    trained = train_module(module, data, folder, title, number == 0, watch)
    if is_main_process():
        save_whole(trained, file)
        (folder / "last.ckpt").unlink(missing_ok=True)
    model.load_state_dict(trained.pop("weights"))
    return Member(model.requires_grad_().cpu().float().eval(), problem.task, **trained)


def _read(file: Path) -> dict[str, Any] | None:
    """Read the result of a finished member; None if it is not finished."""
    if not file.exists():
        return None
    with readable(file):
        return torch.load(file, map_location="cpu", weights_only=True)


def train_module(
    module: PropertyModule,
    data: MoleculeData,
    folder: Path,
    title: str,
    say: bool = True,
    watch: Callable[[Sequence[dict[str, float]]], None] | None = None,
) -> dict[str, Any]:
    """Train a module to the end, from the start or from its last whole epoch.

    Args:
        module: its `model` is trained.
        data: training and validation examples; without validation the last epoch is kept.
        folder: holds `log.csv` and `last.ckpt`.
        title: of the progress bar.
        say: what an epoch will take.
        watch: called after every epoch with the rows of `log.csv`; what it raises ends the training.

    Returns:
        `weights` of the epoch kept, `history` per epoch, `best_epoch` and `best_score`.
    """
    settings = module.settings
    last = folder / "last.ckpt"
    begun = from_main(last.exists)
    validated = len(data.val) > 0
    average = WeightAverage(settings.ema)
    history, best = History(folder / "log.csv"), KeepBest(average, settings.patience if validated else 0)
    callbacks: list[Callback] = [Ending(), ForecastFirst(say and settings.progress), average, history, best]
    callbacks.append(ModelCheckpoint(folder, "last", save_on_train_epoch_end=True, enable_version_counter=False))
    if watch is not None:
        callbacks.append(Watched(watch, history))
    if settings.progress:
        callbacks.append(TrainingBar(title, history, best))
    logger = make_logger(settings.logger, settings.logger_arguments, folder) if settings.logger else False
    if logger:
        logger.log_hyperparams(settings.decisive())
    limit = None if validated else 0
    trainer = _trainer(settings, callbacks=callbacks, logger=logger, limit_val_batches=limit, default_root_dir=folder)
    module = _captured(module, data, trainer, say)
    trainer.fit(module, datamodule=data, ckpt_path=last if begun else None, weights_only=True)
    return {
        "weights": {name: weight.cpu() for name, weight in best.weights.items()},
        "history": history.rows,
        "best_epoch": best.epoch + 1,
        "best_score": best.score,
    }


def _captured(module: PropertyModule, data: MoleculeData, trainer: Trainer, say: bool) -> PropertyModule:
    """The module whose step is captured, where that is wanted and can be done; else the module as it is."""
    device, wanted = trainer.strategy.root_device, module.settings.capture
    if wanted is False or (wanted is None and device.type != "cuda"):
        return module
    captured = CapturedModule(module.model, module.task, module.settings, module.seed)
    reason = why_not(module.settings, module.model, data.train, trainer.world_size)
    reason = reason or check_capture(captured, data, trainer.precision_plugin, device)
    if reason and say and trainer.is_global_zero:
        print(f"the training step is not captured: {reason}", file=sys.stderr)
    data.constant = not reason
    return module if reason else captured


def check_machine(settings: TrainSettings) -> None:
    """Raise an `InputError` if this machine cannot train as it is asked to; nothing has been read yet."""
    if settings.accelerator == "gpu" and not torch.accelerator.is_available():
        raise InputError("accelerator: this machine has no GPU that torch can use; leave it out, or take cpu")
    alone = settings.devices in (1, "1") and settings.num_nodes in (None, 1) and "TORCHELASTIC_RUN_ID" not in os.environ
    with quiet():
        if alone:  # of several processes Lightning looks at all at once, when training begins
            _trainer(settings, logger=False)


def _trainer(settings: TrainSettings, **arguments: Any) -> Trainer:
    if settings.strategy.startswith(("fsdp", "deepspeed", "model_parallel", "xla")):
        raise InputError(f"strategy {settings.strategy} keeps weights where gtx cannot average them; take ddp")
    try:
        trainer = Trainer(
            accelerator=settings.accelerator,
            devices=settings.devices,
            num_nodes=settings.num_nodes or 1,
            strategy=settings.strategy,
            precision=settings.precision,
            max_epochs=settings.epochs,
            gradient_clip_val=settings.clip or None,
            plugins=[WholeCheckpointIO()],
            num_sanity_val_steps=0,
            log_every_n_steps=1,
            reload_dataloaders_every_n_epochs=1,
            enable_progress_bar=settings.progress,
            enable_model_summary=False,
            **arguments,
        )
        if launcher := getattr(trainer.strategy, "cluster_environment", None):
            launcher.validate_settings(num_devices=trainer.num_devices, num_nodes=trainer.num_nodes)
        return trainer
    except (MisconfigurationException, ValueError, TypeError) as error:
        raise InputError(f"Lightning cannot train so: {error}") from error
