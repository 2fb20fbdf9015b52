"""Checkpoints and history: the files from which a training resumes."""

from __future__ import annotations

import csv
import math
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from pytorch_lightning import Callback, LightningModule, Trainer
from pytorch_lightning.plugins.io import TorchCheckpointIO
from torch import Tensor

from gtx.base.errors import InputError
from gtx.base.files import whole_file
from gtx.training.data import data_module
from gtx.training.ranks import run_in_main_process

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
            raise InputError(
                f"training diverged: the loss is {loss} in epoch {trainer.current_epoch + 1}; a lower lr may help"
            )
        logged = {"lr": float(trainer.optimizers[0].param_groups[0]["lr"]), "train_loss": loss}
        module.log_dict(logged, sync_dist=True)  # the same on every rank
        validated = {k: float(v) for k, v in trainer.callback_metrics.items() if k.startswith("val_")}
        wall, cpu = self.start
        spent = {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}
        batches = {"batch_pairs": data_module(trainer).budget}
        self.rows.append({"epoch": trainer.current_epoch + 1, **spent, **batches, **logged, **validated})
        if trainer.is_global_zero:
            with whole_file(self.file, "w") as opened:
                writer = csv.DictWriter(opened, self.rows[-1], lineterminator="\n")
                writer.writeheader()
                writer.writerows(self.rows)

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows = state["rows"]


def read_log(folder: Path) -> list[dict[str, float]]:
    """Read the rows of `log.csv`, one per complete epoch, in the folder of a member; none if there is no such file."""
    log = folder / "log.csv"
    if not log.exists():
        return []
    with log.open(encoding="utf-8", newline="") as opened:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(opened)]


# --- Checkpoints are written whole: a process that is killed leaves no partial file.


def save_whole(contents: dict[str, Any], path: Path) -> None:
    """Write a file with `torch.save`, complete or not at all."""
    with whole_file(path) as file:
        try:
            torch.save(contents, file)
        except RuntimeError as error:
            if isinstance(error.__context__, OSError):  # hidden by torch behind its own message
                raise error.__context__ from None
            raise


# errors of `torch.load`, depending on the damage
_DAMAGED = (OSError, EOFError, UnpicklingError, RuntimeError, ValueError, LookupError, TypeError, AttributeError)


_TRAIN_ANEW = (
    "Remove the file, and the same command trains this member from its start; or start the whole run anew with "
    "--overwrite"
)


@contextmanager
def readable(path: Path, remedy: str = _TRAIN_ANEW) -> Iterator[None]:
    """Report a failure within the block as a damaged file, with a remedy, and not with torch's advice to run the code
    in it.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Detected pickle protocol")  # damage, which torch wants to hear about
            yield
    except _DAMAGED as error:
        if isinstance(error, OSError) and error.filename is not None:  # it cannot even be opened
            raise
        raise InputError(
            f"{path} is damaged, or another program wrote it: expected the saved state of a training, which can be "
            f"read whole. {remedy}"
        ) from (None if isinstance(error, UnpicklingError) else error)


class WholeCheckpointIO(TorchCheckpointIO):
    """Checkpoint files that are written atomically, and that the main process reads for all processes.

    Lightning's own plugin writes through the system's temporary folder, which may be on another disk, and reads in
    every process.
    """

    def load_checkpoint(self, path: str | Path, *arguments: Any, **named: Any) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            with readable(Path(path)):
                return super(WholeCheckpointIO, self).load_checkpoint(path, *arguments, **named)

        return run_in_main_process(read)

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        save_whole(checkpoint, Path(path))
