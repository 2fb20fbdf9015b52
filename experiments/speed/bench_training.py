"""Training, end to end: molecules per second of the default model, of GPS built from PyG, of chemprop.

ESOL (the first random split of Maziarka et al. 2020; 50 epochs) and ZINC-12k (4,000 rows; 3 epochs), the same rows,
epochs and cores for all; chemprop (D-MPNN) with the defaults of its command, gtx with those of `gtx train`, GPS as wide
and deep as gtx's default model and with batches as large (`experiments.rivals.networks`; walks made once beforehand,
attention without pair features). An epoch includes validation. "Around" is all before the first epoch and after the
last: reading, encoding, testing. The seconds of forward, backward and optimiser show how much of an epoch is spent
outside of the model. chemprop is installed if need be (see `experiments.rivals.chemprop_env`).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.archive import ROOT
from experiments.public_sets import LoadedRun, PublicSet, Run
from experiments.rivals import chemprop_env, networks, pyg
from experiments.speed.harness import Record, Work
from experiments.speed.measure import count_training
from experiments.speed.pages import megabytes, rival_tables
from experiments.speed.samples import sampled
from gtx.dataset import DataSettings
from gtx.dataset import load as load_dataset
from gtx.training import PropertyModule, TrainSettings
from gtx.workflow import train
from gtx.workflow.specs import default_width

CONTENDERS = GTX, GPS, CHEMPROP = "gtx, default model", "GPS of PyG's GPSConv", "chemprop, D-MPNN"
SETS = {"esol": (None, 50), "zinc12k": (4000, 3)}
"""Training rows at most, and epochs."""
PARTS = ("forward", "backward", "optimiser")


def groups(options: Namespace) -> list[list[str]]:
    """One after the other."""
    return [[f"{set}; {contender}"] for set in SETS for contender in CONTENDERS]


def make(name: str, options: Namespace) -> Work:
    """A case, such as "esol; gtx, default model"."""
    set, contender = name.split("; ")
    rows, epochs = (200, 3) if options.quick else SETS[set]
    data = sampled(set, rows)
    facts = {"molecules": int((data["split"] == "train").sum()), "rows": len(data)}
    if contender == CHEMPROP:
        facts["version"] = chemprop_env.version(chemprop_env.python())

    def step() -> Record:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "data.csv")
            data.to_csv(file, index=False)
            return {GTX: _gtx, GPS: _gps, CHEMPROP: _chemprop}[contender](file, epochs, options.threads)

    return Work({"all": step}, facts, seconds=0.0, once=True)


def _rows(file: Path, workers: int = 0) -> DataSettings:
    return DataSettings(str(file), ("y",), split_column="split", workers=workers)


def _gtx(file: Path, epochs: int, threads: int) -> Record:
    spent, out = Counter(), file.with_name("run")
    count_training(spent, PropertyModule)
    settings = TrainSettings(epochs=epochs, threads=threads, progress=False, accelerator="cpu")
    outcome = train(_rows(file, threads if threads > 1 else 0), settings, out, baselines=False)
    (log,) = out.rglob("log.csv")
    seconds = pd.read_csv(log)["seconds"].tolist()
    return {"epochs": seconds, "parts": spent, "rmse": outcome.metrics["test"]["rmse"]}


def _gps(file: Path, epochs: int, threads: int) -> Record:
    spent, parts, data, train_network = Counter(), {}, _rows(file), pyg.train_network
    count_training(spent, networks.Network)
    dataset = load_dataset(data)
    count = len(dataset.split["train"])
    how = networks.Configuration(4, 0.1, True, default_width(count), 8, TrainSettings().molecules_per_batch(count))
    loaded = LoadedRun(Run(PublicSet("", "rmse", ("split",), ""), "gps", 0, 0), data, dataset, file.parent)

    def trained(*given: Any) -> networks.Trained:
        found = train_network(*given)
        parts.update(spent)  # what is predicted afterwards is no part of an epoch
        return found

    pyg.train_network = trained
    found = pyg.fitted(loaded, how, epochs)
    error = (found.prediction - dataset.y)[dataset.split["test"]]
    return {"epochs": found.seconds, "parts": parts, "rmse": float(np.sqrt((error**2).mean()))}


def _chemprop(file: Path, epochs: int, threads: int) -> Record:
    out = file.with_name("run")
    command = [chemprop_env.python(), "-m", "experiments.speed.chemprop_run", file, out, epochs, threads]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["chemprop ended without a word"])[-1])
    (predictions,), data = out.rglob("test_predictions.csv"), pd.read_csv(file).query("split == 'test'")
    error = pd.read_csv(predictions).iloc[:, -1].to_numpy() - data["y"].to_numpy()
    return json.loads(done.stdout.strip().splitlines()[-1]) | {"rmse": float(np.sqrt((error**2).mean()))}


def tables(records: Sequence[Record]) -> list[str]:
    """Rates and totals; the parts of an epoch."""
    ended = [record for record in records if "failed" not in record]
    rates = {record["case"]: _rate(record) for record in ended}

    def gtx_over(record: Record) -> str:
        gtx = rates.get(f"{record['case'].split('; ')[0]}; {GTX}")
        return f"{gtx / _rate(record):.2f}x" if gtx else ""

    speeds = {
        "molecules per second": lambda record: f"{_rate(record):,.0f}",
        "gtx over it": gtx_over,
        "around": lambda record: f"{record['wall'] - sum(record['epochs']):.1f} s",
        "in all": lambda record: f"{record['wall']:.1f} s",
        "processor": lambda record: f"{record['cpu']:.1f} s",
        "peak memory": megabytes,
        "test RMSE": lambda record: f"{record['rmse']:.3f}",
    }
    shares = {part: partial(_share, part) for part in (*PARTS, "not in the model")}
    return [
        *rival_tables(records, "Training", ["set", "model"], speeds, "; "),
        *rival_tables(ended, "Where an epoch goes", ["set", "model"], shares, "; "),
    ]


def _share(part: str, record: Record) -> str:
    shares = {name: record["parts"].get(name, 0.0) / sum(record["epochs"]) for name in PARTS}
    return f"{shares.get(part, 1 - sum(shares.values())):.0%}"


def _rate(record: Record) -> float:
    """Training molecules per second: of the median epoch, the first left out."""
    return record["molecules"] / statistics.median(record["epochs"][1:] or record["epochs"])
