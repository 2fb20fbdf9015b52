"""Logging: loggers by name, the progress bar, and a function that is called after each epoch."""

from __future__ import annotations

import inspect
import math
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import ProgressBar
from pytorch_lightning.loggers import Logger
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from gtx.base.errors import InputError, did_you_mean
from gtx.training.checkpoints import History
from gtx.training.optimise import best_epochs

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


class EpochLines:
    """Plain lines on standard error, one of the first and of the last epoch, and at most one a minute between."""

    def __init__(self, title: str, epochs: int) -> None:
        self.title = title
        self.epochs = epochs
        self.printed: int = 0
        self.last_line: float = -math.inf

    def show(self, rows: Sequence[dict[str, float]], ends: bool) -> None:
        """Print the line of the last of the rows of `log.csv` if it is due; `ends` if no epoch will follow."""
        due = ends or time.monotonic() - self.last_line >= SECONDS_BETWEEN_LINES
        if due and len(rows) > self.printed:
            self.printed, self.last_line = len(rows), time.monotonic()
            scores = epoch_scores(rows, self.epochs)
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
    """Progress bar: epochs, time left, and the text of `epoch_scores`.

    One bar for all epochs, on standard error, redrawn four times a second, since epochs of small molecules last a
    fraction of a second. If standard error is no terminal, `EpochLines`.
    """

    def __init__(self, title: str, history: History) -> None:
        super().__init__()
        self.title = title
        self.history = history
        self.enabled: bool = True
        self.bar: Progress = Progress(disable=True)

    def disable(self) -> None:
        self.enabled = False

    def enable(self) -> None:
        self.enabled = True

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        self.bar = training_progress(self.enabled)
        self.lines = EpochLines(self.title, trainer.max_epochs or 0) if self.enabled and self.bar.disable else None
        self.task: TaskID = self.bar.add_task(
            self.title, total=trainer.max_epochs, completed=trainer.current_epoch, scores=""
        )
        self.bar.start()

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        done = trainer.current_epoch + (batch_idx + 1) / trainer.num_training_batches
        self.bar.update(self.task, completed=done)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        rows, epochs = self.history.rows, trainer.max_epochs or 0
        self.bar.update(self.task, scores=epoch_scores(rows, epochs))
        if self.lines:
            self.lines.show(rows, rows[-1]["epoch"] == epochs or trainer.should_stop)

    def teardown(self, *_: Any, **__: Any) -> None:
        self.bar.stop()

    def on_exception(self, *_: Any) -> None:
        self.teardown()  # Lightning does not, and the terminal's cursor would stay hidden


# --- A function that observes the epochs and may end the training.

Watch = Callable[[int, Sequence[dict[str, float]]], None]
"""Function of the number of the member and the rows of its `log.csv`, called after every epoch; an exception that it
raises ends the training."""
