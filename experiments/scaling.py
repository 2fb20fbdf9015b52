"""One process beside two that train together, at equal molecules a step: scores and molecules a second.

    python -m experiments.scaling --data esol --seeds 3 --epochs 15 --more --split scaffold

Two processes are two machines for torchrun, which meet over gloo on this one. Each process has one thread. A step
has as many molecules for one as for two. Scores are those of the network alone on the test rows of one split.
Rates are of the training of the second half of the epochs (`log.csv`): by the clock, which other users of the machine
disturb, and by the processor time of all processes, in which waiting costs nothing. Prints rows of `results/scale.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory

import pandas as pd

TRAIN = "{data} --split-seed 0 --seed {seed} --epochs {epochs} --batch-molecules {batch} --out {out}"
PLAIN = "--accelerator cpu --threads 1 --mix no --no-baselines --no-report --no-progress --no-training-rows"


def main() -> None:
    """Measure, turn by turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="esol")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--molecules", type=int, default=32, help="of a step")
    parser.add_argument("--more", nargs=argparse.REMAINDER, default=[], help="further words of gtx train")
    given = parser.parse_args()
    scores, rates = {1: [], 2: []}, {1: [], 2: []}
    with TemporaryDirectory() as folder:
        for seed in range(given.seeds):
            for processes in (1, 2):
                out = Path(folder, f"{seed}-{processes}")
                words = {"data": given.data, "seed": seed, "epochs": given.epochs, "out": out}
                line = f"{TRAIN.format(batch=given.molecules // processes, **words)} {PLAIN}"
                run(["-m", "gtx", "train", *line.split(), *given.more], processes)
                rmse, wall, processor = outcome(out, processes)
                scores[processes].append(rmse)
                rates[processes].append((wall, processor))
                said = f"| {seed} | {processes} | {rmse:.3f} | {wall:,.0f} | {processor:,.0f} "
                print(f"{said}| {os.getloadavg()[0]:.1f} |", flush=True)
    pairs = [two - one for one, two in zip(scores[1], scores[2], strict=True)]
    print(f"test rmse, two processes minus one: {mean(pairs):+.3f}; sd over seeds of one: {stdev(scores[1]):.3f}")
    for name, at in (("by the clock", 0), ("by processor time", 1)):
        ratios = [two[at] / one[at] for one, two in zip(rates[1], rates[2], strict=True)]
        spread = f"median {median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}"
        print(f"rate of two processes over one, {name}: {spread}")


def run(words: list[str], processes: int) -> None:
    """A command of Python in one process, or in two under torchrun."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [sys.executable]
    if processes > 1:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            meet = f"--rdzv-backend c10d --rdzv-endpoint 127.0.0.1:{free.getsockname()[1]}"
        command += f"-m torch.distributed.run --nnodes {processes} --nproc-per-node 1 {meet}".split()
    quiet = {"stdout": subprocess.DEVNULL, "env": environment}
    started = [subprocess.Popen([*command, *words], **quiet) for _ in range(processes)]
    if any([process.wait() for process in started]):
        raise SystemExit(f"{' '.join(map(str, words))} failed")


def outcome(out: Path, processes: int) -> tuple[float, float, float]:
    """Test RMSE, and molecules a second by the clock and by the processor time of all processes."""
    log = pd.read_csv(out / "members" / "0" / "log.csv")
    log = log[len(log) // 2 :]
    rows = (pd.read_csv(out / "split.csv")["split"] == "train").sum() * len(log)
    rmse = json.loads((out / "metrics.json").read_text())["test"]["rmse"]
    return rmse, rows / log["seconds"].sum(), rows / (processes * log["cpu_seconds"].sum())


if __name__ == "__main__":
    main()
