"""One bar for a whole training."""

from __future__ import annotations

import math
from typing import Any

from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gtx.training.averaging import KeepBest
from gtx.training.history import History


class TrainingBar(ProgressBar):
    """Epochs done, the time left, the training loss, and a validation score: of this epoch, and of the best one.

    The score is the first that the module logs, by its name in `metrics.json`: `val roc_auc 0.812, best 0.825`.

    One bar for all epochs, on standard error, redrawn four times a second: epochs of small molecules last a fraction
    of a second.

    Args:
        title: e.g. "member 2/5".
        history: of the epochs.
        best: says which of them is the best.
    """

    def __init__(self, title: str, history: History, best: KeepBest) -> None:
        super().__init__()
        self.title, self.history, self.best, self.enabled = title, history, best, True
        self.bar: Progress | None = None

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
        self.bar = Progress(*columns, console=console, refresh_per_second=4, disable=not self.enabled)
        done = {"completed": trainer.current_epoch, "total": trainer.max_epochs}
        self.task = self.bar.add_task(self.title, **done, scores="")
        self.bar.start()

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        done = trainer.current_epoch + (batch_idx + 1) / trainer.num_training_batches
        self.bar.update(self.task, completed=done)

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        now, best = self.history.rows[-1], self.history.rows[self.best.epoch]
        scores = f"loss {now['train_loss']:.4f}"
        if shown := next((name for name in now if name.startswith("val_")), None):
            scores += f", {shown.replace('_', ' ', 1)} {now[shown]:.4g}, best {best.get(shown, math.nan):.4g}"
        self.bar.update(self.task, scores=scores)

    def teardown(self, *_: Any, **__: Any) -> None:
        if self.bar is not None:
            self.bar.stop()

    def on_exception(self, *_: Any) -> None:
        self.teardown()  # which Lightning leaves out, and the terminal's cursor would stay hidden
