"""One row per epoch, kept with the checkpoint and written as CSV."""

from __future__ import annotations

import csv
import math
import time
from pathlib import Path
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer

from gtx.errors import InputError
from gtx.files import whole_file


class History(Callback):
    """Writes what became of each epoch to a CSV file, epoch by epoch.

    Columns: `epoch, seconds, cpu_seconds, batch_pairs` (the budget of a batch), `lr, train_loss` and what the module
    logged. The rows are state of the checkpoint: a resumed run's file is that of a run never interrupted.

    Args:
        file: the CSV file.
    """

    def __init__(self, file: Path) -> None:
        self.file, self.rows = file, []

    def on_train_epoch_start(self, *_: Any) -> None:
        self.began, self.losses = (time.perf_counter(), time.process_time()), []

    def on_train_batch_end(self, trainer: Trainer, module: LightningModule, outputs: dict, *_: Any) -> None:
        self.losses.append(outputs["loss"])

    def on_train_epoch_end(self, trainer: Trainer, module: LightningModule) -> None:
        loss = float(trainer.strategy.reduce(torch.stack(self.losses).mean(), reduce_op="mean"))
        if not math.isfinite(loss):
            raise InputError(
                f"training diverged: the loss is {loss} in epoch {trainer.current_epoch}; a lower lr may help"
            )
        logged = {"lr": float(trainer.optimizers[0].param_groups[0]["lr"]), "train_loss": loss}
        self.log_dict(logged, sync_dist=True)  # the same on every rank
        validated = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("val_")}
        wall, processor = self.began
        spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}
        batches = {"batch_pairs": trainer.datamodule.budget}
        self.rows.append({"epoch": trainer.current_epoch, **spent, **batches, **logged, **validated})
        if trainer.is_global_zero:
            self._write()

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = state["rows"]

    def _write(self) -> None:
        with whole_file(self.file, "w") as opened:
            writer = csv.DictWriter(opened, self.rows[-1], lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
