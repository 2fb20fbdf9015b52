"""Training, end to end: molecules per second of the default model, of GPS built from PyG, of chemprop."""

from __future__ import annotations

import json
import statistics
import tempfile
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.rivals import chemprop, pyg
from experiments.runs import PublicSet, Run
from experiments.speed.measure import Case, sampled
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model
from gtx.workflow.specs import default_width

SETS = {"esol": (None, 50), "zinc12k": (4000, 3)}
"""Training rows at most, and epochs."""
TIMED = """
import json, pathlib, re, sys, time
import lightning.pytorch as pl, torch
from chemprop.cli.main import main as chemprop
class Epochs(pl.Callback):
    seconds = []
    def on_train_epoch_start(self, *_): self.begun = time.perf_counter()
    def on_train_epoch_end(self, *_): self.seconds.append(time.perf_counter() - self.begun)
data, out, epochs, threads = sys.argv[1:]
torch.set_num_threads(int(threads))
fit = pl.Trainer.fit
def watched(self, *arguments, **named):
    self.callbacks.append(Epochs())
    fit(self, *arguments, **named)
pl.Trainer.fit = watched
words = "--smiles-columns smiles --target-columns y --splits-column split --task-type regression --accelerator cpu"
sys.argv = ["chemprop", "train", "--data-path", data, "--output-dir", out, "--epochs", epochs, *words.split()]
def resident(name):
    return 1024 * int(re.search(name + r":\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1])
pathlib.Path("/proc/self/clear_refs").write_text("5")
held = resident("VmRSS")
chemprop()
print(json.dumps([Epochs.seconds, resident("VmHWM") - held]))
"""
"""chemprop's own command, every epoch timed with its validation, and its memory above that of the imports; runs in
chemprop's environment."""


Measured = tuple[list[float], float, dict[str, Any]]
"""Seconds of the epochs, RMSE of the test rows, and the peak memory of another process."""


def cases(options: Namespace) -> list[Case]:
    """Training, end to end: molecules per second of the default model, of GPS built from PyG, of chemprop.

    ESOL (the first random split of Maziarka et al. 2020; 50 epochs) and ZINC-12k (4,000 rows; 3 epochs), the same rows,
    epochs and cores for all; chemprop and gtx with the defaults of their commands, GPS as wide and deep as gtx and with
    batches as large. The time is that of the median epoch without the first, validation included.
    """
    made = []
    for name, (rows, epochs) in SETS.items():
        data = sampled(name, 200 if options.quick else rows)
        count = int((data["split"] == "train").sum())
        how = data, 3 if options.quick else epochs, options.threads
        made += [Case(name, who, partial(_prepare, who, *how), count, once=True, own=True) for who in CONTENDERS]
    return made


def _prepare(who: str, data: pd.DataFrame, epochs: int, threads: int) -> Callable[[], dict[str, Any]]:
    if who == CHEMPROP:
        chemprop.environment()  # installed if need be

    def step() -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            data.to_csv(file := Path(folder, "data.csv"), index=False)
            seconds, rmse, own = CONTENDERS[who](file, epochs, threads)
        return {"seconds": statistics.median(seconds[1:] or seconds), "test RMSE": f"{rmse:.3f}"} | own

    return step


def _gtx(file: Path, epochs: int, threads: int) -> Measured:
    settings = TrainSettings(epochs=epochs, threads=threads, progress=False, accelerator="cpu")
    out = file.with_name("run")
    outcome = train_model(_rows(file, workers=threads if threads > 1 else 0), settings, out, baselines=False)
    (log,) = out.rglob("log.csv")
    return pd.read_csv(log)["seconds"].tolist(), outcome.metrics["test"]["rmse"], {}


def _gps(file: Path, epochs: int, threads: int) -> Measured:
    run = Run(PublicSet("", "rmse", ("split",), ""), "gps", runs=file.parent)
    run.data = _rows(file)
    count, test = len(run.dataset.split["train"]), run.dataset.split["test"]
    how = pyg.Configuration(4, 0.1, True, default_width(count), 8, TrainSettings().molecules_per_batch(count))
    trained = pyg.train_and_predict(run, how, epochs)
    return trained.seconds, _rmse(trained.prediction[test], run.dataset.y[test]), {}


def _chemprop(file: Path, epochs: int, threads: int) -> Measured:
    out = file.with_name("run")
    printed = chemprop.output_of([chemprop.environment(), "-c", TIMED, file, out, epochs, threads])
    (predictions,), data = out.rglob("test_predictions.csv"), pd.read_csv(file).query("split == 'test'")
    error = _rmse(pd.read_csv(predictions).iloc[:, -1].to_numpy(), data["y"].to_numpy())
    seconds, peak = json.loads(printed.strip().splitlines()[-1])
    return seconds, error, {"peak": peak}


def _rows(file: Path, workers: int = 0) -> DataSettings:
    return DataSettings(str(file), ("y",), split_column="split", workers=workers)


def _rmse(predicted: np.ndarray, measured: np.ndarray) -> float:
    return float(np.sqrt(np.square(predicted - measured).mean()))


CHEMPROP = "chemprop, D-MPNN"
CONTENDERS = {"gtx, default model": _gtx, "GPS of PyG's GPSConv": _gps, CHEMPROP: _chemprop}
