"""Trains chemprop's D-MPNN by its own command, with a stopwatch on; runs in chemprop's environment, without gtx.

    <python of experiments.rivals.chemprop_env> -m experiments.speed.chemprop_run DATA.csv OUT EPOCHS THREADS

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

from experiments.speed.measure import Gauge, Stopwatch


class Epochs(pl.Callback):
    """What epochs take, validation included, and which parts of it.

    Args:
        watch: on forward, backward and optimiser.
    """

    def __init__(self, watch: Stopwatch) -> None:
        self.watch, self.seconds, self.parts = watch, [], {}

    def on_train_epoch_start(self, *_: object) -> None:
        self.begun, self.before = time.perf_counter(), dict(self.watch.seconds)

    def on_train_epoch_end(self, *_: object) -> None:
        self.seconds.append(time.perf_counter() - self.begun)
        for part, seconds in self.watch.seconds.items():
            self.parts[part] = self.parts.get(part, 0.0) + seconds - self.before.get(part, 0.0)


def main() -> None:
    """Train."""
    data, out, epochs, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    watch, trainer = Stopwatch(), pl.Trainer.__init__
    epochs_seen = Epochs(watch)

    def watched(self: pl.Trainer, *arguments: object, callbacks: list | None = None, **named: object) -> None:
        trainer(self, *arguments, callbacks=[*(callbacks or []), epochs_seen], **named)

    pl.Trainer.__init__ = watched
    watch.put_on_training()
    watch.put_on(MPNN, "training_step", "forward")
    watch.put_on(MPNN, "validation_step", "forward")
    gauge = Gauge("cpu")
    wall, cpu = time.perf_counter(), time.process_time()
    words = "--smiles-columns smiles --target-columns y --splits-column split --task-type regression --accelerator cpu"
    sys.argv = ["chemprop", "train", "--data-path", data, "--output-dir", out, "--epochs", epochs, *words.split()]
    chemprop()
    figures = {"wall": [time.perf_counter() - wall], "cpu": [time.process_time() - cpu], "peak": gauge.read()}
    print(json.dumps({**figures, "epochs": epochs_seen.seconds, "parts": epochs_seen.parts}))


if __name__ == "__main__":
    main()
