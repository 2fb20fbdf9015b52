"""Logging: loggers by name, the progress line, and epochs that are watched."""

from __future__ import annotations

import inspect
import math
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.callbacks import ProgressBar
from pytorch_lightning.loggers import Logger
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gtx.errors import InputError, did_you_mean
from gtx.training.checkpoints import History
from gtx.training.optimise import KeepBest

# --- Lightning's loggers, by name.

LOGGERS = {"csv": "CSVLogger", "tensorboard": "TensorBoardLogger", "wandb": "WandbLogger", "mlflow": "MLFlowLogger"}
"""The class of each in `pytorch_lightning.loggers`; what installs it is called as it is."""


def make_logger(name: str, arguments: dict[str, Any], folder: Path) -> Logger:
    """Make a logger.

    Args:
        name: one of `LOGGERS`; or the path of a class of one's own, which must not come from a file: it is imported.
        arguments: of the class; a `save_dir` it takes is `folder` unless it is given.
        folder: of the run's member.

    Raises:
        InputError: there is no such logger, what it needs is not installed, or the arguments do not suit it.
    """
    module, _, own = name.rpartition(".")
    if name not in LOGGERS and not module:
        raise InputError(f"logger: expected one of {', '.join(LOGGERS)}, got {name!r}{did_you_mean(name, LOGGERS)}")
    try:
        made = getattr(import_module(module or "pytorch_lightning.loggers"), LOGGERS.get(name, own))
        if not (isinstance(made, type) and issubclass(made, Logger)):
            raise TypeError("expected a class of Lightning loggers")
        if "save_dir" in inspect.signature(made).parameters:
            arguments = {"save_dir": folder, **arguments}
        return made(**arguments)
    except ModuleNotFoundError as error:
        how = f" is not installed: in the folder of gtx, pip install '.[{name}]'" if name in LOGGERS else f": {error}"
        raise InputError(f"logger {name}{how}") from error
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"logger {name}: {error}") from error


# --- One bar for a whole training; where output goes to a file, a line now and then.

EVERY = 60.0
"""Seconds between two lines, where no bar can be drawn."""


class TrainingBar(ProgressBar):
    """Epochs done, the time left, the training loss, and a validation score: of this epoch, and of the one kept so far.

    The score is the first that the module logs, by its name in `metrics.json`:
    `val roc_auc 0.812 (0.825 in epoch 7, kept so far)`.

    One bar for all epochs, on standard error, redrawn four times a second: epochs of small molecules last a fraction
    of a second. Where standard error is no terminal, a plain line after the first epoch, after the last one, and a
    minute or more after the line before.

    Args:
        title: e.g. "member 2/5".
        history: of the epochs.
        best: says which of them is kept.
    """

    def __init__(self, title: str, history: History, best: KeepBest) -> None:
        super().__init__()
        self.title, self.history, self.best, self.enabled = title, history, best, True
        self.bar: Progress | None = None
        self.told = -math.inf

    def disable(self) -> None:
        self.enabled = False

    def enable(self) -> None:
        self.enabled = True

    def on_train_start(self, trainer: Trainer, *_: Any) -> None:
        columns = (
            TextColumn("{task.description} epoch"),
            MofNCompleteColumn(),
            BarColumn(20),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[scores]}"),
        )
        console = Console(stderr=True)
        self.drawn = console.is_terminal or console.is_jupyter
        self.bar = Progress(*columns, console=console, refresh_per_second=4, disable=not (self.enabled and self.drawn))
        done = {"completed": trainer.current_epoch, "total": trainer.max_epochs}
        self.task = self.bar.add_task(self.title, **done, scores="")
        self.bar.start()

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        done = trainer.current_epoch + (batch_idx + 1) / trainer.num_training_batches
        self.bar.update(self.task, completed=done)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        now, kept = self.history.rows[-1], self.history.rows[self.best.epoch]
        scores = f"loss {now['train_loss']:.4f}"
        if shown := next((name for name in now if name.startswith("val_")), None):
            scores += f", {shown.replace('_', ' ', 1)} {now[shown]:.4g}"
            scores += f" ({kept.get(shown, math.nan):.4g} in epoch {kept['epoch']}, kept so far)"
        self.bar.update(self.task, scores=scores)
        ends = now["epoch"] == trainer.max_epochs or trainer.should_stop
        if self.enabled and not self.drawn and (ends or time.monotonic() - self.told >= EVERY):
            self.told = time.monotonic()
            print(f"{self.title} epoch {now['epoch']}/{trainer.max_epochs}: {scores}", file=sys.stderr, flush=True)

    def teardown(self, *_: Any, **__: Any) -> None:
        if self.bar is not None:
            self.bar.stop()

    def on_exception(self, *_: Any) -> None:
        self.teardown()  # which Lightning leaves out, and the terminal's cursor would stay hidden


# --- Somebody who looks on while a model trains, and may end it.

Watch = Callable[[int, Sequence[dict[str, float]]], None]
"""Called after every epoch with the number of the member and the rows of its `log.csv`, those from before an
interruption too; what it raises ends the training."""


class Watched(Callback):
    """Shows a history to whoever watches.

    Args:
        watch: called with the rows of the history.
        history: comes before this callback.
    """

    def __init__(self, watch: Callable[[Sequence[dict[str, float]]], None], history: History) -> None:
        self.watch, self.history = watch, history

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        self.watch(self.history.rows)
