"""Checkpoints and history: what a training keeps to go on from."""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.plugins.io import TorchCheckpointIO

from gtx.errors import InputError, printable
from gtx.files import whole_file
from gtx.training.ranks import from_main

# --- One row per epoch, kept with the checkpoint and written as CSV.


class History(Callback):
    """Writes what became of each epoch to a CSV file, epoch by epoch.

    Columns: `epoch` (from 1), `seconds`, `cpu_seconds`, `batch_pairs` (the budget of a batch), `lr`, `train_loss` and
    what the module logged. The rows are state of the checkpoint: a resumed run's file is that of a run never
    interrupted.

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
                f"training diverged: the loss is {loss} in epoch {trainer.current_epoch + 1}; a lower lr may help"
            )
        logged = {"lr": float(trainer.optimizers[0].param_groups[0]["lr"]), "train_loss": loss}
        self.log_dict(logged, sync_dist=True)  # the same on every rank
        validated = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("val_")}
        wall, processor = self.began
        spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - processor}
        batches = {"batch_pairs": trainer.datamodule.budget}
        self.rows.append({"epoch": trainer.current_epoch + 1, **spent, **batches, **logged, **validated})
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


# --- Checkpoints are written whole: a process that is killed leaves no partial file.


def save_whole(contents: dict[str, Any], path: Path) -> None:
    """Write with `torch.save` a file that is whole or not there.

    Raises:
        OSError: it cannot be written.
    """
    with whole_file(path) as file:
        try:
            torch.save(contents, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # which torch puts into words of its own
                raise error.__context__ from None
            raise


# what `torch.load` raises, according to the bytes it meets
_DAMAGED = (OSError, EOFError, UnpicklingError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Report a failure within the block as a damaged file.

    Raises:
        InputError: it names the file and says how to go on without it.
    """
    try:
        yield
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.filename is not None:  # it cannot even be opened
            raise
        detail = printable(" ".join(str(error).split()), 200)
        raise InputError(
            f"{path} is damaged, or another gtx wrote it ({type(error).__name__}: {detail}); without it the same "
            "command trains this member from its start: remove it, or start the whole run anew with --overwrite"
        ) from error


class WholeCheckpointIO(TorchCheckpointIO):
    """Lightning's own writes by way of the system's temporary folder, which may be on another disk: not atomic. And it
    reads in every process; here the main one does, for all."""

    def load_checkpoint(self, path: str, *arguments: Any, **named: Any) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            with readable(Path(path)):
                return super(WholeCheckpointIO, self).load_checkpoint(path, *arguments, **named)

        return from_main(read)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str, storage_options: Any = None) -> None:
        save_whole(checkpoint, Path(path))
