"""Peak memory of training from a store on disk, whatever its number of molecules.

A store is made of another one by repeating its tensors on disk, with noise on descriptors and targets; no molecule
is read. Then a process of its own does all that `gtx train` does up to a number of steps, and says what it took:

    gtx prepare $GTX_DATA/zinc12k/zinc12k.csv --out zinc/
    OMP_NUM_THREADS=1 python -m experiments.large_store zinc/ --molecules 100000 1000000
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import torch

TARGET = "y"


def repeat(source: Path, folder: Path, molecules: int) -> int:
    """Make a store of at least so many molecules; how many they are."""
    from gtx.data import MoleculeStore
    from gtx.data.preparing import MOLECULES, prepared_shards

    shutil.copytree(source, folder, ignore=lambda *_: {MOLECULES}, ignore_dangling_symlinks=True)
    for path in folder.glob("*.parquet"):
        path.unlink()
    shards, noise, made = list(prepared_shards(source)), np.random.default_rng(0), 0
    opened = [(MoleculeStore.open(shard.tensors), pd.read_parquet(shard.rows)) for shard in shards]
    for turn in range(10**9):
        for shard, (store, rows) in zip(shards, opened, strict=True):
            if made >= molecules:
                return made
            name = shard.shard._replace(file=f"{turn:06d}-{shard.shard.file}")
            shaken = store.descriptors * (1 + 0.01 * torch.randn(store.descriptors.shape))
            tensors = {field: getattr(store, field) for field in store._tensors()} | {"descriptors": shaken}
            words = {"shard": name, "done": shard.done, "column": shard.column, "smiles": shard.smiles}
            words |= {"error": shard.error}
            smiles = [f"{text} {turn}" for text in rows[shard.smiles]]  # or all turns would be in one part
            target = rows[TARGET].astype(float) + noise.normal(0, 0.1, len(rows))
            rows.assign(**{shard.smiles: smiles, TARGET: target}).to_parquet(folder / name.part)
            path = (folder / MOLECULES / name.part).with_suffix(".safetensors")
            MoleculeStore(**tensors, atom_columns=store.atom_columns).save(
                path, {key: json.dumps(word) for key, word in words.items()}
            )
            made += len(store)


def trained(folder: Path, steps: int) -> None:
    """Train for so many steps, and print what it took."""
    import pytorch_lightning as lightning

    from gtx.dataset import DataSettings
    from gtx.dataset.stored import as_prepared, load_stored
    from gtx.models import build_model
    from gtx.training import TrainSettings
    from gtx.training.module import PropertyModule
    from gtx.training.trainer import Problem
    from gtx.training.windows import DataOnDisk
    from gtx.workflow.specs import model_spec

    torch.set_num_threads(1)
    begun = time.perf_counter()
    settings = TrainSettings(model_arguments={"channels": 24, "layers": 2}, mix="no", training_rows=False, epochs=1)
    with TemporaryDirectory(prefix="gtx-") as cache:
        data = as_prepared(DataSettings(str(folder), (TARGET,)))
        dataset = load_stored(data, Path(cache))
        task = dataset.fitted()
        spec = model_spec(settings, data.featuriser, task, len(dataset.train))
        val = dataset.store.subset(dataset.split["val"])
        model = Problem(partial(build_model, spec), task, dataset.train, val, settings).make(0)
        ready = time.perf_counter()
        loader = DataOnDisk(task, dataset.train, val, settings)
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        trainer = lightning.Trainer(
            accelerator="cpu", max_steps=steps, limit_val_batches=0, enable_model_summary=False, **quiet
        )
        trainer.fit(PropertyModule(model, task, settings), datamodule=loader)
        done = time.perf_counter()
    peak = int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
    print(
        f"| {sum(dataset.counts.values()):,} | {len(dataset.train):,} | {len(val):,} | {peak:,.0f} MB | "
        f"{ready - begun:.0f} s | {done - ready:.0f} s |"
    )


def main() -> None:
    """Make stores and train from them, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("store", type=Path, help="that gtx prepare made")
    parser.add_argument("--molecules", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--here", action="store_true", help="train from the store itself, in this process")
    given = parser.parse_args()
    if given.here:
        trained(given.store, given.steps)
        return
    for molecules in given.molecules:
        with TemporaryDirectory(prefix="gtx-", dir=given.store.parent) as folder:
            repeat(given.store, Path(folder) / "store", molecules)
            again = [sys.executable, "-m", "experiments.large_store", str(Path(folder) / "store")]
            subprocess.run([*again, "--here", "--steps", str(given.steps)], check=True)


if __name__ == "__main__":
    main()
