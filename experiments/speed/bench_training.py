"""Training, end to end: molecules per second of the default model, of GPS built from PyG, of chemprop.

ESOL (the first random split of Maziarka et al. 2020; 50 epochs) and ZINC-12k (4,000 rows; 3 epochs), the same rows,
epochs and cores for all; chemprop (D-MPNN) with the defaults of its command, gtx with those of `gtx train`, GPS as wide
and deep as gtx's default model and with batches as large (`experiments.rivals.pyg`; walks made once beforehand,
attention without pair features). An epoch includes validation. "Around" is reading, encoding and testing. chemprop is
installed if need be (see `experiments.rivals.chemprop`).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from experiments.archive import ROOT
from experiments.public_sets import LoadedRun, PublicSet, Run
from experiments.rivals import chemprop, pyg
from experiments.speed.harness import Record, Work
from experiments.speed.pages import megabytes, rival_tables
from experiments.speed.samples import sampled
from gtx.dataset import DataSettings
from gtx.dataset import load as load_dataset
from gtx.training import TrainSettings
from gtx.workflow import train
from gtx.workflow.specs import default_width

SETS = {"esol": (None, 50), "zinc12k": (4000, 3)}
"""Training rows at most, and epochs."""


def groups(options: Namespace) -> list[list[str]]:
    return [[f"{set}; {contender}"] for set in SETS for contender in CONTENDERS]


def make(name: str, options: Namespace) -> Work:
    """A case, such as "esol; gtx, default model"."""
    set, contender = name.split("; ")
    rows, epochs = (200, 3) if options.quick else SETS[set]
    data = sampled(set, rows)
    facts = {"molecules": int((data["split"] == "train").sum()), "rows": len(data)}
    if contender == CHEMPROP:
        facts["version"] = chemprop.version(chemprop.environment())

    def step() -> Record:
        with tempfile.TemporaryDirectory() as folder:
            data.to_csv(file := Path(folder, "data.csv"), index=False)
            return CONTENDERS[contender](file, epochs, options.threads)

    return Work({"all": step}, facts, seconds=0.0, once=True)


def _gtx(file: Path, epochs: int, threads: int) -> Record:
    settings = TrainSettings(epochs=epochs, threads=threads, progress=False, accelerator="cpu")
    data, out = _rows(file, workers=threads if threads > 1 else 0), file.with_name("run")
    outcome = train(data, settings, out, baselines=False)
    (log,) = out.rglob("log.csv")
    return {"epochs": pd.read_csv(log)["seconds"].tolist(), "rmse": outcome.metrics["test"]["rmse"]}


def _gps(file: Path, epochs: int, threads: int) -> Record:
    data = _rows(file)
    dataset = load_dataset(data)
    count, test = len(dataset.split["train"]), dataset.split["test"]
    how = pyg.Configuration(4, 0.1, True, default_width(count), 8, TrainSettings().molecules_per_batch(count))
    loaded = LoadedRun(Run(PublicSet("", "rmse", ("split",), ""), "gps", 0, 0), data, dataset, file.parent)
    found = pyg.fitted(loaded, how, epochs)
    return {"epochs": found.seconds, "rmse": _rmse(found.prediction[test], dataset.y[test])}


def _chemprop(file: Path, epochs: int, threads: int) -> Record:
    out = file.with_name("run")
    command = [chemprop.environment(), "-m", "experiments.speed.chemprop_run", file, out, epochs, threads]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["chemprop ended without a word"])[-1])
    (predictions,), data = out.rglob("test_predictions.csv"), pd.read_csv(file).query("split == 'test'")
    error = _rmse(pd.read_csv(predictions).iloc[:, -1].to_numpy(), data["y"].to_numpy())
    return json.loads(done.stdout.strip().splitlines()[-1]) | {"rmse": error}


def _rows(file: Path, workers: int = 0) -> DataSettings:
    return DataSettings(str(file), ("y",), split_column="split", workers=workers)


def _rmse(predicted: np.ndarray, measured: np.ndarray) -> float:
    return float(np.sqrt(np.square(predicted - measured).mean()))


GTX = "gtx, default model"
CONTENDERS = {GTX: _gtx, "GPS of PyG's GPSConv": _gps, (CHEMPROP := "chemprop, D-MPNN"): _chemprop}


def tables(records: Sequence[Record]) -> list[str]:
    """Rates and totals."""
    rates = {record["case"]: _rate(record) for record in records if "failed" not in record}

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
    return rival_tables(records, "Training", ["set", "model"], speeds, "; ")


def _rate(record: Record) -> float:
    """Training molecules per second: of the median epoch, the first left out."""
    return record["molecules"] / statistics.median(record["epochs"][1:] or record["epochs"])
