"""Logging: one row per epoch, loggers by name, the progress bar, and a function that is called after each epoch."""

from __future__ import annotations

import csv
import inspect
import math
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.callbacks import ProgressBar
from pytorch_lightning.loggers import Logger
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from torch import Tensor

from gtx.base.errors import InputError, did_you_mean
from gtx.base.files import atomic_file
from gtx.training.data import data_module
from gtx.training.optimise import best_epochs

# --- One row per epoch, part of the checkpoint and written as CSV.


class History(Callback):
    """Record of the epochs of a training, written to a CSV file after each epoch.

    Columns: `epoch` (from 1), `seconds`, `cpu_seconds`, `batch_pairs` (the budget of a batch), `lr`, `train_loss` and
    the scores that the module logged. The checkpoint contains the rows, so the file of a resumed run equals the file of
    an uninterrupted run.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.rows: list[dict[str, float]] = []

    def on_train_epoch_start(self, *_: Any) -> None:
        self.start: tuple[float, float] = time.perf_counter(), time.process_time()
        self.losses: list[Tensor] = []

    def on_train_batch_end(self, trainer: Trainer, module: LightningModule, outputs: Any, *_: Any) -> None:
        self.losses.append(outputs["loss"])

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        loss = float(trainer.strategy.reduce(torch.stack(self.losses).mean(), reduce_op="mean"))
        if not math.isfinite(loss):
            raise diverged(f"the loss is {loss} in epoch {trainer.current_epoch + 1}")
        logged = {"lr": float(trainer.optimizers[0].param_groups[0]["lr"]), "train_loss": loss}
        module.log_dict(logged, sync_dist=True)  # the same on every rank
        validated = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("val_")}
        wall, cpu = self.start
        spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        batches = {"batch_pairs": data_module(trainer).budget}
        self.rows.append({"epoch": trainer.current_epoch + 1, **spent, **batches, **logged, **validated})
        if trainer.is_global_zero:
            with atomic_file(self.file, "w") as opened:
                writer = csv.DictWriter(opened, self.rows[-1], lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = state["rows"]


def diverged(what: str) -> InputError:
    """Make the error of a training whose loss or weights are not finite."""
    return InputError(f"training diverged: {what}; a lower lr may help")


def read_log(folder: Path) -> list[dict[str, float]]:
    """Read the rows of `log.csv`, one per complete epoch, in the folder of a member; none if there is no such file."""
    log = folder / "log.csv"
    if not log.exists():
        return []
    with log.open(encoding="utf-8", newline="") as opened:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(opened)]


# --- Lightning's loggers, by name.

LOGGERS = {"csv": "CSVLogger", "tensorboard": "TensorBoardLogger", "wandb": "WandbLogger", "mlflow": "MLFlowLogger"}
"""Class of each logger in `pytorch_lightning.loggers`; the extra of gtx that installs it has the same name."""


def make_logger(name: str, arguments: dict[str, Any], folder: Path) -> Logger:
    """Make one of `LOGGERS`, or of the class with a dotted path; `save_dir`, if the class has it, defaults to `folder`.

    The class is imported, so its name must not come from an untrusted file.
    """
    module, _, class_name = name.rpartition(".")
    if name not in LOGGERS and not module:
        raise InputError(f"logger: expected one of {', '.join(LOGGERS)}, got {name!r}{did_you_mean(name, LOGGERS)}")
    try:
        logger = getattr(import_module(module or "pytorch_lightning.loggers"), LOGGERS.get(name, class_name))
        if not (isinstance(logger, type) and issubclass(logger, Logger)):
            raise TypeError("expected a class of Lightning loggers")
        if "save_dir" in inspect.signature(logger).parameters:
            arguments = {"save_dir": folder, **arguments}
        return logger(**arguments)
    except ModuleNotFoundError as error:
        how = f" is not installed: in the folder of gtx, pip install '.[{name}]'" if name in LOGGERS else f": {error}"
        raise InputError(f"logger {name}{how}") from error
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"logger {name}: {error}") from error


# --- One bar for a whole training; if the output goes to a file, a line per minute.

SECONDS_BETWEEN_LINES = 60.0
"""Least time between two lines where no bar can be drawn."""


def training_progress(enabled: bool) -> Progress:
    """Make a progress bar of epochs; it is drawn if it is enabled and standard error is a terminal or a notebook."""
    columns = (
        TextColumn("{task.description} epoch"),
        MofNCompleteColumn(),
        BarColumn(20),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[scores]}"),
    )
    console = Console(stderr=True)
    drawn = console.is_terminal or console.is_jupyter
    return Progress(*columns, console=console, refresh_per_second=4, disable=not (enabled and drawn))


class EpochProgress:
    """Progress of one network, drawn as a bar.

    Where no bar can be drawn it is lines on standard error, one of the first and of the last epoch, and at most one a
    minute between.

    Args:
        bars: bars of all networks.
        title: title of the network.
        epochs: number of epochs.
        enabled: whether progress is shown at all.
        done: number of complete epochs.
    """

    def __init__(self, bars: Progress, title: str, epochs: int, enabled: bool, done: int = 0) -> None:
        self.bars = bars
        self.title = title
        self.epochs = epochs
        self.lines: bool = enabled and bars.disable
        self.printed: int = 0
        self.last_line: float = -math.inf
        self.task: TaskID = bars.add_task(title, total=epochs, completed=done, scores="")

    def advance(self, done: float) -> None:
        """Draw how many epochs are done."""
        self.bars.update(self.task, completed=done)

    def show(self, rows: Sequence[dict[str, float]], ends: bool) -> None:
        """Show the last of the rows of `log.csv`, as a line if one is due; `ends` if no epoch will follow."""
        scores = epoch_scores(rows, self.epochs)
        self.bars.update(self.task, completed=len(rows), scores=scores)
        due = ends or time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES
        if self.lines and due and len(rows) > self.printed:
            self.printed, self.last_line = len(rows), time.monotonic()
            print(f"{self.title} epoch {len(rows)}/{self.epochs}: {scores}", file=sys.stderr, flush=True)


def epoch_scores(rows: Sequence[dict[str, float]], epochs: int) -> str:
    """Describe the last epoch: training loss, and the validation score of this epoch and of the best so far.

    The score is the first that the module logs, by its name in `metrics.json`:
    `loss 0.4312, val roc_auc 0.812 (0.825 in epoch 7, kept so far)`.
    """
    now, best = rows[-1], rows[best_epochs([row.get("val_score", math.inf) for row in rows], epochs)[-1]]
    scores = f"loss {now['train_loss']:.4f}"
    if shown := next((name for name in now if name.startswith("val_")), None):
        scores += f", {shown.replace('_', ' ', 1)} {now[shown]:.4g}"
        scores += f" ({best.get(shown, math.nan):.4g} in epoch {best['epoch']:.0f}, kept so far)"
    return scores


class TrainingBar(ProgressBar):
    """Progress bar of Lightning for all epochs of a network, on standard error, with the text of `epoch_scores`.

    It is redrawn four times a second, since epochs of small molecules last a fraction of a second.
    """

    def __init__(self, title: str, history: History) -> None:
        super().__init__()
        self.title = title
        self.history = history
        self.enabled: bool = True
        self.bars: Progress = Progress(disable=True)

    def disable(self) -> None:
        self.enabled = False

    def enable(self) -> None:
        self.enabled = True

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        self.bars = training_progress(self.enabled)
        epochs = trainer.max_epochs or 0
        self.progress = EpochProgress(self.bars, self.title, epochs, self.enabled, trainer.current_epoch)
        self.bars.start()

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        self.progress.advance(trainer.current_epoch + (batch_idx + 1) / trainer.num_training_batches)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        rows = self.history.rows
        self.progress.show(rows, rows[-1]["epoch"] == trainer.max_epochs or trainer.should_stop)

    def teardown(self, *_: Any, **__: Any) -> None:
        self.bars.stop()

    def on_exception(self, *_: Any) -> None:
        self.teardown()  # Lightning does not, and the terminal's cursor would stay hidden


# --- A function that observes the epochs and may end the training.

Watch = Callable[[int, Sequence[dict[str, float]]], None]
"""Function of the number of the member and the rows of its `log.csv`, called after every epoch; an exception that it
raises ends the training."""
