"""Training as one call: one network, or one for each fold, in a folder, by Lightning, resumed where it was stopped."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Callback, Trainer
from pytorch_lightning.callbacks import LambdaCallback, ModelCheckpoint
from pytorch_lightning.utilities.exceptions import MisconfigurationException
from pytorch_lightning.utilities.seed import isolate_rng
from torch import nn

from gtx.base.errors import InputError
from gtx.data import MoleculeStore, Split
from gtx.data.featurising import open_process_pool
from gtx.kernel import KernelRidge
from gtx.models.catalogue import CLOSED_FORM_MODELS
from gtx.nn import MoleculeModel
from gtx.settings.training import TrainSettings
from gtx.tasks import Task
from gtx.tasks.closed_form import fit_closed_form
from gtx.training.capture import CapturedModule, check_capture, obstacle_to_capture, on_side_stream
from gtx.training.data import MoleculeDataModule
from gtx.training.logging import (
    EpochProgress,
    History,
    TrainingBar,
    Watch,
    make_logger,
    read_log,
    training_progress,
)
from gtx.training.module import (
    TRANSFER_MATCHING,
    PretrainedWeightLoader,
    TrainedMember,
    TrainingModule,
    spread_seed,
)
from gtx.training.optimise import BestEpoch, WeightAverage, check_selection
from gtx.training.processes import (
    TerminationCallback,
    are_several,
    distributed_group,
    interruptible,
    is_main_process,
    lock_folder_for_all,
    machines,
    quiet,
    run_in_main_process,
    torch_threads,
)
from gtx.training.run import AtomicCheckpointIO, RunFolder, collect_run_config, readable, save_atomically

TRAINING_LOCK = threading.RLock()
"""Lock of the training in progress: torch has one random generator per process, so fits in threads take turns."""


@distributed_group()
def fit(
    model: nn.Module | Callable[[], nn.Module],
    task: Task,
    train: MoleculeStore,
    val: MoleculeStore,
    settings: TrainSettings,
    folder: str | Path,
    *,
    marks: dict[str, Any] | None = None,
    overwrite: bool = False,
    folds: Sequence[Split] = (),
    start: Sequence[TrainedMember] = (),
    transfer: PretrainedWeightLoader = TRANSFER_MATCHING,
    watch: Watch | None = None,
) -> list[TrainedMember]:
    """Train one network, or one for each fold, in a folder; a second call with the same arguments resumes the training.

    Finished networks are read from the folder, and an interrupted one continues from its last complete epoch. On one
    CPU thread, the weights are the same to the last bit as without an interruption.

    Args:
        model: module that maps a batch (see `gtx.data.MoleculeStore.batch`) to outputs `[B, C]`, or a function
            without arguments that makes such a module. A module is trained in place and has the weights of the best
            epoch afterwards. For several folds, pass a function.
        task: task of the model; a task that is not fitted yet is fitted to `train`.
        train: training molecules, with targets in their own units, NaN for blanks. Molecules without any target value
            are left out.
        val: validation molecules; may be empty. With `folds` it is not used.
        settings: settings of the training.
        folder: path of the run folder.
        marks: values that identify the run (data, split, model), for `config.yaml`.
        overwrite: whether an earlier run in the folder is replaced.
        folds: for each network, the rows of `train` that train and validate it, as `{"train": ..., "val": ...}`.
        start: trained networks from which training starts. Network k starts from `start[k % len(start)]`, with new
            weights if shapes differ.
        transfer: selection of the weights to copy from `start`; by default all weights whose shapes fit.
        watch: function that is called after every epoch and may end the training by an exception, see
            `gtx.training.logging`.

    Returns:
        The trained networks.

    Raises:
        InputError: another process trains in the folder, the folder contains a run with other settings or data, a
            target has no training value for one of the networks, there are no training molecules, the model, the
            precision or `keep_by` does not suit the task, or training diverged.
    """
    settings = settings.resolve(task.epochs, machines())
    problem = Problem(model, task, train, val, settings, folds, start, transfer, watch).check()
    run = RunFolder(folder)
    with lock_folder_for_all(run.path):
        name = getattr(model, "__name__", type(model).__name__)
        config = collect_run_config(problem.task, settings, {"model": name} | (marks or {}))
        run.open(config, overwrite)
        return train_networks(problem, run)


def train_networks(problem: Problem, run: RunFolder) -> list[TrainedMember]:
    """Train every network of a checked problem, in a folder that is open and locked, or resume there."""
    settings = problem.settings
    with TRAINING_LOCK, isolate_rng(), quiet(), interruptible(), torch_threads(settings.threads):
        if settings.progress and is_main_process() and (resumed := describe_resumed(problem, run)):
            print(f"resumed: {resumed}", file=sys.stderr)
        train_members_in_processes(problem, run)
        return [train_member(problem, k, run.member(k)) for k in range(settings.folds)]


@dataclass(frozen=True)
class Problem:
    """Inputs of the training of every network, as in `fit`."""

    model: nn.Module | Callable[[], nn.Module]
    task: Task
    train: Any
    val: Any
    settings: TrainSettings
    folds: Sequence[Split] = ()
    start: Sequence[TrainedMember] = ()
    transfer: PretrainedWeightLoader = TRANSFER_MATCHING
    watch: Watch | None = None

    def check(self) -> Problem:
        """Fit the task to the training molecules, and check that the settings suit it.

        Raises:
            InputError: they do not, or there are no training molecules.
        """
        task, settings = self.task, self.settings
        if settings.folds != max(1, len(self.folds)):
            came = f"got {len(self.folds)}"
            raise InputError(f"settings with {settings.folds} folds: expected the rows of each as folds, {came}")
        if isinstance(self.model, nn.Module) and settings.folds > 1:
            raise InputError(f"{settings.folds} folds need a function that makes a model, not one module")
        if task.writes and not ("mixed" in settings.precision or settings.precision.startswith("32")):
            raise InputError(f"task {task.name} trains in 32-true or in a mixed precision, got {settings.precision}")
        task, validated = task.fit(task.drop_blanks(self.train)), True
        for k in range(settings.folds):
            train, val = self.parts(k)
            validated &= len(val) > 0
            try:
                task.fit(train)
            except InputError as reason:
                remedy = "take fewer folds or another seed of the split, or leave the target out"
                raise InputError(f"{self.title(k)}, trained without fold {k + 1}: {reason}; {remedy}") from None
        check_selection(task, settings.keep_by, validated)
        return replace(self, task=task)

    def title(self, number: int) -> str:
        """Name network `number` for a person, such as "member 2/5"."""
        return f"member {number + 1}/{self.settings.folds}"

    def parts(self, number: int) -> tuple[Any, Any]:
        """Return the training and the validation molecules of network `number`."""
        parts = (self.train, self.val)
        if self.folds:
            parts = tuple(self.train.subset(self.folds[number][part]) for part in ("train", "val"))
        train, val = map(self.task.drop_blanks, parts)
        return train, val

    def make_model(self, number: int, train: Any) -> nn.Module:
        """Make the untrained model of network `number`, which has observed its training molecules."""
        try:
            model = self.model if isinstance(self.model, nn.Module) else self.model()
        except (TypeError, ValueError) as error:
            raise InputError(f"the model cannot be made: {error}") from error
        if isinstance(model, MoleculeModel):  # which codes there are, and the scale of descriptors
            model.observe(train)
        if self.start:
            self.transfer.apply(model, self.start[number % len(self.start)].model)  # new descriptors keep their scale
            if isinstance(model, MoleculeModel):
                model.observe(train, more=True)
        return model


def describe_resumed(problem: Problem, run: RunFolder) -> str:
    """Describe what a training goes on from: finished members, complete epochs of the others; empty at the start and
    at the end.
    """
    epochs, members, states = problem.settings.epochs, range(problem.settings.folds), []
    if all((run.member(k) / "trained.pt").exists() for k in members):
        return ""
    for k in members:
        last = run.member(k) / "last.ckpt"
        if (run.member(k) / "trained.pt").exists():
            states.append(f"{problem.title(k)} is trained")
        elif last.exists():
            with readable(last):
                done = torch.load(last, map_location="cpu", weights_only=True)["epoch"] + 1
            states.append(f"{problem.title(k)} goes on after epoch {done} of {epochs}")
    return ", ".join(states)


def train_member(problem: Problem, number: int, folder: Path) -> TrainedMember:
    """Train member `number`, resume it, or read it if it is finished.

    Its folder contains `log.csv`, `last.ckpt` of the last complete epoch during training, and `trained.pt` afterwards.
    """
    settings = problem.settings
    seed = spread_seed(settings.seed, number)
    torch.manual_seed(seed)
    train, val = problem.parts(number)
    model = problem.make_model(number, train)
    problem.task.objective.check(model)
    if isinstance(model, KernelRidge):  # takes a second or so, and is deterministic
        fit_closed_form(model, problem.task, train)
        return TrainedMember(model.eval(), problem.task, [], 0, math.inf)
    file = folder / "trained.pt"
    trained = run_in_main_process(lambda: _read(file))
    if trained is not None:
        with readable(file):
            model.load_state_dict(trained.pop("weights"))
            return TrainedMember(model.cpu().float().eval(), problem.task, **trained)
    data = MoleculeDataModule(problem.task, train, val, settings=settings, seed=seed)
    module = TrainingModule(model, problem.task, settings, seed)
    watch = None if problem.watch is None else partial(problem.watch, number)
    trained = train_module(module, data, folder, problem.title(number), number == 0, watch)
    if is_main_process():
        save_atomically(trained, file)
        (folder / "last.ckpt").unlink(missing_ok=True)
    model.load_state_dict(trained.pop("weights"))
    return TrainedMember(model.requires_grad_().cpu().float().eval(), problem.task, **trained)


def _read(file: Path) -> dict[str, Any] | None:
    """Read the result of a finished member; None if it is not finished."""
    if not file.exists():
        return None
    with readable(file):
        return torch.load(file, map_location="cpu", weights_only=True)


MOLECULES_WORTH_PROCESSES = 20_000
"""Molecules that a member reads in all epochs, from which on the start of processes, some five seconds, pays."""


def networks_at_a_time(settings: TrainSettings, rows: int) -> int:
    """Return the number of networks that are trained at the same time, each in a process, for a number of rows."""
    on_cpu = settings.accelerator == "cpu" or (settings.accelerator == "auto" and not torch.accelerator.is_available())
    in_epochs = settings.model not in CLOSED_FORM_MODELS
    worthwhile = in_epochs and rows * (settings.epochs or 0) >= MOLECULES_WORTH_PROCESSES
    if not on_cpu or not worthwhile or are_several(settings.devices) or settings.logger:
        return 1
    return min(settings.folds, settings.threads or torch.get_num_threads())


def train_members_in_processes(problem: Problem, run: RunFolder) -> None:
    """Train the unfinished networks of several folds at the same time, each in a process, if that is faster.

    The networks are small, and threads speed up one training far less than they speed up several. On one thread the
    weights are the same to the last bit as without processes. Nothing is done on a GPU, for few epochs of few
    molecules, or if torch has a single thread. Each process writes its result to the run folder for `train_member`.
    """
    settings, threads = problem.settings, torch.get_num_threads()
    left = [k for k in range(settings.folds) if not (run.member(k) / "trained.pt").exists()]
    count = min(len(left), networks_at_a_time(settings, len(problem.train)))
    if count < 2 or problem.watch:
        return
    alone = replace(problem, settings=replace(settings, threads=max(1, threads // count), progress=False))
    with training_progress(settings.progress) as bars, open_process_pool(count) as pool:
        progress = {k: EpochProgress(bars, problem.title(k), settings.epochs or 0, settings.progress) for k in left}
        waiting = {pool.submit(_train_alone, alone, k, run.member(k)) for k in left}
        while waiting:
            done, waiting = wait(waiting, timeout=0.5, return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            for k in left:
                ends = (run.member(k) / "trained.pt").exists()
                if rows := read_log(run.member(k)):
                    progress[k].show(rows, ends)


def _train_alone(problem: Problem, number: int, folder: Path) -> None:
    """Train a member in a process of its own, which leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with isolate_rng(), quiet(), torch_threads(problem.settings.threads):
        train_member(problem, number, folder)


def train_module(
    module: TrainingModule,
    data: MoleculeDataModule,
    folder: Path,
    title: str,
    verbose: bool = True,
    watch: Callable[[Sequence[dict[str, float]]], None] | None = None,
) -> dict[str, Any]:
    """Train a module to the end, from the start or from its last complete epoch.

    Args:
        module: the module, whose `model` is trained.
        data: training and validation examples; without validation the last epoch is kept.
        folder: folder for `log.csv` and `last.ckpt`.
        title: title of the progress bar.
        verbose: print what the machine cannot do, on standard error.
        watch: function of the rows of `log.csv`, as in `fit`.

    Returns:
        `weights` of the best epoch, `history` per epoch, `best_epoch` and `best_score`.
    """
    settings = module.settings
    last = folder / "last.ckpt"
    resumed = run_in_main_process(last.exists)
    validated = len(data.examples["val"]) > 0
    average = WeightAverage(settings.ema)
    history, best = History(folder / "log.csv"), BestEpoch(average, settings.patience if validated else 0)
    trial = BatchTrial(verbose and settings.progress)
    callbacks: list[Callback] = [
        TerminationCallback(),
        trial,
        average,
        history,
        best,
        ModelCheckpoint(folder, "last", save_on_train_epoch_end=True, enable_version_counter=False),
    ]
    if watch is not None:
        callbacks.append(LambdaCallback(on_train_epoch_end=lambda *_: watch(history.rows)))
    if settings.progress:
        callbacks.append(TrainingBar(title, history))
    logger = make_logger(settings.logger, settings.logger_arguments, folder) if settings.logger else None
    if logger is not None:
        logger.log_hyperparams(settings.decisive())
    trainer = _trainer(
        settings,
        callbacks=callbacks,
        logger=logger or False,
        limit_val_batches=None if validated else 0,
        default_root_dir=folder,
        enable_progress_bar=settings.progress,
    )
    module = _captured(module, data, trainer, verbose)
    data.before_batches = partial(trial.lower, trainer, module, data)
    trainer.fit(module, datamodule=data, ckpt_path=last if resumed else None, weights_only=True)
    return {
        "weights": {name: weight.cpu() for name, weight in best.weights.items()},
        "history": history.rows,
        "best_epoch": best.epoch + 1,
        "best_score": best.score,
    }


def _captured(module: TrainingModule, data: MoleculeDataModule, trainer: Trainer, verbose: bool) -> TrainingModule:
    """Return the module with a captured step, if the settings allow it and the check succeeds; else the module."""
    device, capture = trainer.strategy.root_device, module.settings.capture
    if capture is False or (capture is None and device.type != "cuda"):
        return module
    captured = CapturedModule(module.model, module.task, module.settings, module.seed)
    reason = obstacle_to_capture(module.settings, module.model, data.examples["train"], trainer.world_size)
    reason = reason or check_capture(captured, data, trainer.precision_plugin, device)
    if reason and verbose and trainer.is_global_zero:
        print(f"the training step is not captured: {reason}", file=sys.stderr)
    data.constant = not reason
    return module if reason else captured


# --- Batches that fit into the memory.

STATES = 3
"""Numbers beside a weight and its gradient: two moments of AdamW, and the average."""


class BatchTrial(Callback):
    """Trial of the batch with most pairs before training starts, which halves the budget of pairs until it fits.

    The budget (None before training starts) changes the result, so it is state of the checkpoint: a resumed run has the
    same batches.
    """

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose
        self.budget: int | None = None

    def lower(self, trainer: Trainer, module: TrainingModule, data: MoleculeDataModule) -> None:
        """Lower the budget of the data to what fits, at the first batches."""
        if self.budget is None:
            requested = data.budget
            with trainer.precision_plugin.forward_context():
                fits = torch.tensor(affordable_budget(module, data), device=module.device)
            self.budget = int(trainer.strategy.reduce(fits, reduce_op="min"))
            if self.verbose and self.budget < requested and trainer.is_global_zero:
                print(f"memory is short: batches of {self.budget:,} pairs instead", file=sys.stderr)
        data.budget = self.budget

    def state_dict(self) -> dict[str, Any]:
        return {"budget": self.budget}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.budget = state["budget"]


def affordable_budget(module: TrainingModule, data: MoleculeDataModule) -> int:
    """Halve the budget of the data until a step of the batch with most pairs fits into the memory, and return it.

    Raises:
        InputError: the largest molecule alone does not fit.
    """
    examples, last = data.examples["train"], math.inf
    while True:
        sampler = data.sampler("train", shuffle=True)
        rows = max(sampler.batches(), key=sampler.work)
        work = sampler.work(rows)
        if work >= last:
            raise InputError(
                f"the memory of {module.device} does not hold one training step of the largest molecule, of "
                f"{int(examples.sizes.max())} atoms: take a smaller model, or leave large molecules out by `max_atoms`"
            )
        with suppress(torch.OutOfMemoryError):  # after the block the error refers to no tensor any more
            try_step(module, partial(data.shaped.get("train", examples).batch, rows.to(module.device)))
            return data.budget
        torch.cuda.empty_cache()
        last, data.budget = work, max(1, min(data.budget, work) // 2)


def try_step(module: TrainingModule, batch: Callable[[], Any]) -> None:
    """Compute the loss of a batch and its gradient; the module and the random state are left unchanged.

    A captured step must make gradient nodes of its own, so none of these may stay.
    """
    model, device = module.model, module.device
    training, parameters = model.training, list(model.parameters())
    stream = on_side_stream(device) if module.in_whole_steps else nullcontext()
    try:
        with torch.random.fork_rng([device] if device.type == "cuda" else []), stream:
            model.train()
            states = torch.empty(STATES * sum(p.numel() for p in parameters), device=device)
            module.loss(batch()).backward()
            del states
    finally:
        torch.clear_autocast_cache()
        model.zero_grad(set_to_none=True)
        model.train(training)


def check_machine(settings: TrainSettings) -> None:
    """Raise an `InputError` if this machine cannot train with these settings, before anything is read."""
    if settings.accelerator == "gpu" and not torch.accelerator.is_available():
        raise InputError("accelerator: this machine has no GPU that torch can use; leave it out, or take cpu")
    alone = settings.devices in (1, "1") and settings.num_nodes in (None, 1) and "TORCHELASTIC_RUN_ID" not in os.environ
    with quiet():
        if alone:  # several processes are checked by Lightning when training begins
            _trainer(settings, logger=False, enable_progress_bar=False)


def _trainer(settings: TrainSettings, **arguments: Any) -> Trainer:
    try:
        trainer = Trainer(
            accelerator=settings.accelerator,
            devices=settings.devices,
            num_nodes=settings.num_nodes or 1,
            precision=settings.precision,  # type: ignore[arg-type]  # checked by Lightning
            max_epochs=settings.epochs,
            gradient_clip_val=settings.clip or None,
            plugins=[AtomicCheckpointIO()],
            num_sanity_val_steps=0,
            log_every_n_steps=1,
            reload_dataloaders_every_n_epochs=1,
            enable_model_summary=False,
            **arguments,
        )
        if launcher := getattr(trainer.strategy, "cluster_environment", None):
            launcher.validate_settings(num_devices=trainer.num_devices, num_nodes=trainer.num_nodes)
        return trainer
    except (MisconfigurationException, ValueError, TypeError) as error:
        raise InputError(f"Lightning cannot train so: {error}") from error
