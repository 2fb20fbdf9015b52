"""One bar for a whole training."""

from __future__ import annotations

import math
from typing import Any

from pytorch_lightning import LightningModule, Trainer
from pytorch_lightning.callbacks import ProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


class TrainingBar(ProgressBar):
    """Epochs done, the time left, the training loss, and a validation score: of this epoch, and of the best one.

    The score is the first that the module logs, by its name in `metrics.json`: `val roc_auc 0.812, best 0.825`. The
    best epoch is that with the lowest `val_score`, the one that `KeepBest` keeps.

    One bar for all epochs, on standard error, redrawn four times a second: epochs of small molecules last a fraction
    of a second.

    Args:
        title: e.g. "member 2/5".
    """

    def __init__(self, title: str) -> None:
        super().__init__()
        self.title, self.enabled, self.lowest, self.best = title, True, math.inf, math.nan
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
        logged = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("val_")}
        if logged:
            shown = next(iter(logged))
            if logged["val_score"] <= self.lowest:
                self.lowest, self.best = logged["val_score"], logged[shown]
            scores += f", {shown.replace('_', ' ', 1)} {logged[shown]:.4g}, best {self.best:.4g}"
        self.bar.update(self.task, scores=scores)

    def teardown(self, *_: Any, **__: Any) -> None:
        if self.bar is not None:
            self.bar.stop()

    def on_exception(self, *_: Any) -> None:
        self.teardown()  # which Lightning leaves out, and the terminal's cursor would stay hidden

    def state_dict(self) -> dict[str, Any]:
        return {"lowest": self.lowest, "shown": self.best}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        # a checkpoint of before held the lowest score alone, as "best"
        self.lowest, self.best = state.get("lowest", math.inf), state.get("shown", math.nan)
