"""One bar for a whole training."""

from __future__ import annotations

import math
from typing import Any

from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class TrainingBar(ProgressBar):
    """Epochs done, the time left, the training loss, and the latest and the best validation score.

    One bar for all epochs, on standard error, redrawn four times a second: epochs of small molecules last a fraction
    of a second.

    Args:
        title: e.g. "member 2/5".
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title, self.enabled, self.best = title, True, math.inf
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
        scores = f"loss {float(trainer.callback_metrics['train_loss']):.4f}"
        if "val_score" in trainer.callback_metrics:
            score = float(trainer.callback_metrics["val_score"])
            self.best = min(self.best, score)
            scores += f" val {score:.4f} best {self.best:.4f}"
        self.bar.update(self.task, scores=scores)

    def teardown(self, *_: Any, **__: Any) -> None:
        if self.bar is not None:
            self.bar.stop()

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.best = state["best"]
