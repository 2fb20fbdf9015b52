"""Training, end to end: molecules per second of the default model, of GPS built from PyG, of chemprop.

    python -m experiments.speed.training

ESOL (the first random split of Maziarka et al. 2020) and ZINC-12k, the same rows, epochs and cores for all; chemprop
(D-MPNN) with the defaults of its command, gtx with those of `gtx train`, GPS as wide and deep as gtx's default model
and with batches as large (see `gps_by_pyg.py`; walks made once beforehand, attention without pair features). An epoch
includes validation. "Around" is all before the first epoch and after the last: reading, encoding, testing.
A stopwatch on forward, backward and optimiser says how much of an epoch is spent outside of the model. The sets are
downloaded if need be (to `$GTX_DATA`), and chemprop is installed (see `chemprop_env.py`).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.speed import chemprop_env, gps_by_pyg
from experiments.speed.cases import Work, options, race, serve
from experiments.speed.molecules import Rows, rows
from experiments.speed.results import ROOT, Table, megabytes, write
from experiments.speed.stopwatch import Stopwatch

MODULE = "experiments.speed.training"
CONTENDERS = GTX, GPS, CHEMPROP = "gtx, default model", "GPS of PyG's GPSConv", "chemprop, D-MPNN"


def make(name: str, epochs: int, most: int | None, threads: int, workers: int) -> Work:
    """A case, such as "esol; gtx, default model"."""
    set, contender = name.split("; ")
    data = rows(set, most)
    facts = {"molecules": data.part.count("train"), "rows": len(data.part)}
    if contender == GTX:
        return Work({"all": lambda: _gtx(data, epochs, threads)}, facts, seconds=0.0)
    if contender == GPS:
        return Work({"all": lambda: _gps(data, epochs, workers)}, facts, seconds=0.0)
    python = chemprop_env.python()
    facts["version"] = chemprop_env.version(python)
    return Work({"all": lambda: _chemprop(python, data, epochs, threads)}, facts, seconds=0.0)


def _gtx(data: Rows, epochs: int, threads: int) -> dict[str, Any]:
    from gtx.dataset import DataSettings
    from gtx.training import PropertyModule, TrainSettings
    from gtx.workflow import train

    watch = Stopwatch()
    watch.put_on_training()
    watch.put_on(PropertyModule, "forward", "forward")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "data.csv")
        data.write(file)
        settings = TrainSettings(epochs=epochs, threads=threads, progress=False, accelerator="cpu")
        table = DataSettings(str(file), ("y",), split_column="split", workers=threads if threads > 1 else 0)
        outcome = train(table, settings, Path(folder, "run"), baselines=False)
        (log,) = Path(folder, "run").rglob("log.csv")
        lines = [line.split(",") for line in log.read_text().splitlines()]
    seconds = [float(line[lines[0].index("seconds")]) for line in lines[1:]]
    return {"epochs": seconds, "parts": watch.seconds, "rmse": outcome.metrics["test"]["rmse"]}


def _gps(data: Rows, epochs: int, workers: int) -> dict[str, Any]:
    from gtx.data import featurise
    from gtx.molecules import Featuriser
    from gtx.nn import ClippedScaler
    from gtx.training import TrainSettings
    from gtx.workflow.specs import default_width

    watch = Stopwatch()
    watch.put_on_training()
    watch.put_on(gps_by_pyg.GPS, "forward", "forward")
    read = Featuriser()
    done = featurise(read, data.smiles, workers=0)
    part, y = np.array(data.part)[done.good], data.y[done.good]
    mean, deviation = y[part == "train"].mean(), y[part == "train"].std()
    store = done.store.with_targets(((y - mean) / deviation)[:, None])
    batch = store.batch(torch.arange(len(store)))
    scaler = ClippedScaler(read.num_descriptors)
    scaler.observe(store.descriptors[torch.from_numpy(part == "train")])
    batch.u = scaler(batch.u)
    molecules = gps_by_pyg.with_walks(batch.to_data_list())
    parts = {name: [molecules[i] for i in np.flatnonzero(part == name)] for name in ("train", "val", "test")}
    count = len(parts["train"])
    model = gps_by_pyg.GPS(read.atom_sizes, read.bond_sizes, read.num_descriptors, default_width(count))
    seconds = gps_by_pyg.train(model, parts, epochs, TrainSettings().molecules_per_batch(count), workers)
    shares = dict(watch.seconds)
    error = gps_by_pyg.predict(model, parts["test"]).numpy() * deviation + mean - y[part == "test"]
    return {"epochs": seconds, "parts": shares, "rmse": math.sqrt((error**2).mean())}


def _chemprop(python: Path, data: Rows, epochs: int, threads: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "data.csv"), Path(folder, "run")
        data.write(file)
        words = [str(file), str(out), str(epochs), str(threads)]
        command = [str(python), "-m", "experiments.speed.chemprop_run", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        if done.returncode:
            raise RuntimeError((done.stderr.strip().splitlines() or ["chemprop ended without a word"])[-1])
        figures = json.loads(done.stdout.strip().splitlines()[-1])
        (predictions,) = out.rglob("test_predictions.csv")
        predicted = np.genfromtxt(predictions, delimiter=",", skip_header=1, usecols=-1, comments=None)
    measured = data.y[np.array(data.part) == "test"]
    return figures | {"rmse": math.sqrt(((predicted - measured) ** 2).mean())}


def tables(records: Sequence[dict[str, Any]]) -> list[Table]:
    """One row per set and contender."""
    speeds, shares = [], []
    rates = {record["case"]: _rate(record) for record in records if "failed" not in record}
    for record in records:
        set, contender = record["case"].split("; ")
        if "failed" in record:
            speeds.append([set, contender, record["failed"], *[""] * 6])
            continue
        epochs, rate, gtx = record["epochs"], rates[record["case"]], rates.get(f"{set}; {GTX}")
        around = record["wall"] - sum(epochs)
        figures = [
            f"{rate:,.0f}",
            f"{gtx / rate:.2f}x" if gtx else "",
            f"{around:.1f} s",
            f"{record['wall']:.1f} s",
            f"{record['cpu']:.1f} s",
        ]
        speeds.append([set, contender, *figures, megabytes(record), f"{record['rmse']:.3f}"])
        parts = [record["parts"].get(part, 0.0) / sum(epochs) for part in ("forward", "backward", "optimiser")]
        shares.append([set, contender, *(f"{part:.0%}" for part in [*parts, 1 - sum(parts)])])
    columns = ["set", "model", "molecules per second", "gtx over it", "around", "in all", "processor", "peak memory"]
    columns.append("test RMSE")
    return [
        Table("Training", columns, speeds),
        Table("Where an epoch goes", ["set", "model", "forward", "backward", "optimiser", "not in the model"], shares),
    ]


def _rate(record: dict[str, Any]) -> float:
    """Training molecules per second: of the median epoch, the first left out."""
    return record["molecules"] / statistics.median(record["epochs"][1:] or record["epochs"])


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all, or be the process of one case."""

    def more(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--sets", nargs="+", default=["esol", "zinc12k"], help="of esol, zinc12k, xtb9")
        parser.add_argument("--contenders", nargs="+", default=CONTENDERS, choices=CONTENDERS, help="some of them")
        parser.add_argument("--epochs", type=int, help="default 50; quick 3 (chemprop warms up for 2)")
        parser.add_argument("--rows", type=int, help="training rows at most (quick: 200)")
        parser.add_argument("--workers", type=int, default=0, help="of PyG's DataLoader")
        parser.set_defaults(limit=4 * 3600.0)

    read = options(__doc__, arguments, more)
    epochs, most = read.epochs or (3 if read.quick else 50), read.rows or (200 if read.quick else None)
    if read.case:
        return serve(lambda name: make(name, epochs, most, read.threads, read.workers), read)
    words = ["--epochs", str(epochs), "--workers", str(read.workers), *(["--rows", str(most)] if most else [])]
    cases = [f"{set}; {contender}" for set in read.sets for contender in read.contenders]
    records = [record for case in cases for record in race(MODULE, [case], read, warm_up=False, words=words)]
    write("training", __doc__, read, records, tables(records), epochs=epochs, workers=read.workers)


if __name__ == "__main__":
    main()
