"""Trains chemprop's D-MPNN by its own command, with a stopwatch on; runs in chemprop's environment, without gtx.

    <python of chemprop_env> -m experiments.speed.chemprop_run DATA.csv OUT EPOCHS THREADS

DATA has the columns smiles, y and split. Everything else is chemprop's default. Prints figures as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time

import lightning.pytorch as pl
import torch
from chemprop.cli.main import main as chemprop
from chemprop.models import MPNN

from experiments.speed.measure import Gauge
from experiments.speed.stopwatch import Stopwatch


class Epochs(pl.Callback):
    """Notes when epochs begin and end; validation lies within."""

    seconds: list[float] = []  # noqa: RUF012 (chemprop makes one trainer)

    def on_train_epoch_start(self, *_: object) -> None:
        self.begun = time.perf_counter()

    def on_train_epoch_end(self, *_: object) -> None:
        self.seconds.append(time.perf_counter() - self.begun)


def main() -> None:
    """Train."""
    data, out, epochs, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    trainer = pl.Trainer.__init__

    def watched(self: pl.Trainer, *arguments: object, callbacks: list | None = None, **named: object) -> None:
        trainer(self, *arguments, callbacks=[*(callbacks or []), Epochs()], **named)

    pl.Trainer.__init__ = watched
    watch = Stopwatch()
    watch.put_on_training()
    watch.put_on(MPNN, "training_step", "forward")
    watch.put_on(MPNN, "validation_step", "forward")
    gauge = Gauge("cpu")
    wall, cpu = time.perf_counter(), time.process_time()
    sys.argv = [
        "chemprop",
        "train",
        "--data-path",
        data,
        "--output-dir",
        out,
        "--epochs",
        epochs,
        "--accelerator",
        "cpu",
    ]
    sys.argv += ["--smiles-columns", "smiles", "--target-columns", "y", "--splits-column", "split"]
    sys.argv += ["--task-type", "regression"]
    chemprop()
    figures = {"wall": [time.perf_counter() - wall], "cpu": [time.process_time() - cpu], "peak": gauge.read()}
    print(json.dumps({**figures, "epochs": Epochs.seconds, "parts": watch.seconds}))


if __name__ == "__main__":
    main()
