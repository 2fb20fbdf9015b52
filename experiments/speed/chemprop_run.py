"""Trains chemprop's D-MPNN by its own command, and times it; runs in chemprop's environment, without gtx.

    <python of experiments.rivals.chemprop> -m experiments.speed.chemprop_run DATA.csv OUT EPOCHS THREADS

DATA has the columns smiles, y and split. Everything else is chemprop's default. Prints figures as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time

import lightning.pytorch as pl
import torch
from chemprop.cli.main import main as chemprop

from experiments.speed.measure import burst

SECONDS: list[float] = []


class Epochs(pl.Callback):
    """Times every epoch, validation included."""

    def on_train_epoch_start(self, *_: object) -> None:
        self.begun = time.perf_counter()

    def on_train_epoch_end(self, *_: object) -> None:
        SECONDS.append(time.perf_counter() - self.begun)


if __name__ == "__main__":
    data, out, epochs, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    fit = pl.Trainer.fit

    def watched(self: pl.Trainer, *arguments: object, **named: object) -> None:
        self.callbacks.append(Epochs())
        fit(self, *arguments, **named)

    pl.Trainer.fit = watched
    words = "--smiles-columns smiles --target-columns y --splits-column split --task-type regression --accelerator cpu"
    sys.argv = ["chemprop", "train", "--data-path", data, "--output-dir", out, "--epochs", epochs, *words.split()]
    print(json.dumps({**burst(chemprop, 0.0, "cpu"), "epochs": SECONDS}))
