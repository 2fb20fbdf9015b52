"""Memory of training: what a molecule takes in the store, and what the processes of a distributed training hold.

python -m experiments.memory molecules corpus.csv
OMP_NUM_THREADS=1 python -m experiments.memory ranks corpus.csv --target y --ranks 1 2 4
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import psutil

from gtx.data import featurise, open_table
from gtx.molecules import Featuriser

ATOMS = (10, 15, 20, 25, 30, 35, 40, 50, 1_000)
GIGABYTE = 10**9


def molecules(table: Path, workers: int | None) -> None:
    """Print the bytes of a molecule in the store by its number of atoms."""
    texts = [row.text for row in open_table(table).rows]
    store = featurise(Featuriser(), texts, workers=workers, smiles=False).store
    sizes = store.sizes.numpy()
    print(f"{len(store):,} molecules, {sizes.mean():.1f} atoms and {store.nbytes / len(store):,.0f} bytes on average")
    print("| atoms | molecules | bytes a molecule |\n|--:|--:|--:|")
    low = 1
    for high in ATOMS:
        index = np.flatnonzero((sizes >= low) & (sizes <= high))
        if len(index):
            print(f"| {low} to {high} | {len(index):,} | {store.subset(index).nbytes / len(index):,.0f} |")
        low = high + 1
    print(f"16 GB hold {16 * GIGABYTE * len(store) / store.nbytes / 1e6:.1f} million such molecules")


def ranks(table: Path, target: str, counts: Sequence[int]) -> None:
    """Print the memory of trainings of several processes on the CPU."""
    print("| processes | memory of all, at most | of the last process, while it trains |\n|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        for count in counts:
            most, other = _measure(table, target, count, Path(folder) / f"run-{count}")
            print(f"| {count} | {most / 1e6:,.0f} MB | {other / 1e6:,.0f} MB |", flush=True)


def _measure(table: Path, target: str, count: int, out: Path) -> tuple[int, int]:
    """Return the most memory of all processes, and of the last one in its epochs: each page by those who share it."""
    words = f"train {table} --target-columns {target} --out {out} --epochs 2 --blend no --no-baselines --no-report"
    words += " --no-training-rows --accelerator cpu --threads 1 --model-arguments channels=16 layers=1 heads=2"
    words += f" --devices {count} --batch-molecules 512"
    start = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(count), "--master-port", "29511"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    training = subprocess.Popen([*start, "-m", "gtx", *words.split()], **quiet)
    most = last = 0
    while training.poll() is None:
        time.sleep(1)
        try:
            found = [p for p in psutil.Process(training.pid).children() if "RANK" in p.environ()]
            pss = {int(p.environ()["RANK"]): p.memory_full_info().pss for p in found}
        except (psutil.Error, OSError):
            continue
        most = max(most, sum(pss.values()))
        if (out / "members" / "0" / "last.ckpt").exists() and len(pss) == count:
            last = max(last, pss[count - 1])
    if training.returncode:
        raise SystemExit(f"the training ended with status {training.returncode}")
    return most, last


def main() -> None:
    """Run a measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["molecules", "ranks"])
    parser.add_argument("table", type=Path)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--target", default="y")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if options.what == "molecules":
        molecules(options.table, options.workers)
    else:
        ranks(options.table, options.target, options.ranks)


if __name__ == "__main__":
    main()
