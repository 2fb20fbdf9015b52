"""Trains chemprop's D-MPNN by its own command, and times it; runs in chemprop's environment, without gtx.

    <python of experiments.rivals.chemprop_env> -m experiments.speed.chemprop_run DATA.csv OUT EPOCHS THREADS

DATA has the columns smiles, y and split. Everything else is chemprop's default. Prints figures as one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter

import lightning.pytorch as pl
import torch
from chemprop.cli.main import main as chemprop
from chemprop.models import MPNN

from experiments.speed.measure import burst, count_seconds, count_training


class Epochs(pl.Callback):
    """Seconds of every epoch, validation included, and of its parts.

    Args:
        spent: seconds of each part, since the start.
    """

    def __init__(self, spent: Counter[str]) -> None:
        self.spent, self.seconds, self.parts = spent, [], Counter()

    def on_train_epoch_start(self, *_: object) -> None:
        self.begun, self.before = time.perf_counter(), self.spent.copy()

    def on_train_epoch_end(self, *_: object) -> None:
        self.seconds.append(time.perf_counter() - self.begun)
        self.parts += self.spent - self.before


def main() -> None:
    """Train."""
    data, out, epochs, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    spent, trainer = Counter(), pl.Trainer.__init__
    watch = Epochs(spent)

    def watched(self: pl.Trainer, *arguments: object, callbacks: list | None = None, **named: object) -> None:
        trainer(self, *arguments, callbacks=[*(callbacks or []), watch], **named)

    pl.Trainer.__init__ = watched
    count_training(spent, MPNN, "training_step")
    count_seconds(spent, MPNN, "validation_step", "forward")
    words = "--smiles-columns smiles --target-columns y --splits-column split --task-type regression --accelerator cpu"
    sys.argv = ["chemprop", "train", "--data-path", data, "--output-dir", out, "--epochs", epochs, *words.split()]
    print(json.dumps({**burst(chemprop, 0.0, "cpu"), "epochs": watch.seconds, "parts": watch.parts}))


if __name__ == "__main__":
    main()
