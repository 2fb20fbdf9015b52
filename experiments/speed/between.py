"""Two commits of gtx in turns on one machine: molecules per second of `gtx predict` and of `gtx train`.

    python -m experiments.speed.between 422053d HEAD --turns 3

A machine's rate changes from hour to hour, so figures of two days cannot be compared. Here each commit is checked out
beside the other, and both run the same commands one after the other, in this Python environment. A command runs for
a small and for a large task, and only the difference counts, so that start, reading of the table, baselines and scores
are left out: 4,000 and 24,000 rows of ZINC-12k to predict, 5 and 25 epochs of ESOL to train. The model is that of the
first commit. Prints the median of the turns, and the turns.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments.archive import ROOT
from experiments.speed.samples import sampled

ROWS, EPOCHS = (4_000, 24_000), (5, 25)
TRAIN = (
    "train {folder}/esol.csv --target-columns y --split-column split --overwrite --epochs {epochs} --out {folder}/run"
)
PREDICT = "predict {folder}/model.gtx {folder}/{rows}.smi --device cpu --workers {workers} --out {folder}/predicted.csv"


def seconds(commit: Path, command: str) -> float:
    """How long a command of gtx takes at a commit."""
    environment = os.environ | {"PYTHONPATH": str(commit)}
    begun = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "gtx", *command.split()], cwd=commit, env=environment, check=True, capture_output=True
    )
    return time.perf_counter() - begun


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--cases", default="", help="cases whose name holds this regular expression")
    options = parser.parse_args(words)
    with TemporaryDirectory() as folder:
        commits = {name: Path(folder, name) for name in (options.before, options.after)}
        try:
            for name, place in commits.items():
                subprocess.run(["git", "worktree", "add", "-q", "--detach", place, name], cwd=ROOT, check=True)
            compare(commits, folder, options.turns, options.cases)
        finally:
            for place in commits.values():
                subprocess.run(["git", "worktree", "remove", "--force", place], cwd=ROOT)


def compare(commits: dict[str, Path], folder: str, turns: int, cases: str) -> None:
    """Run every measurement in turns, and print a line for each as soon as it is there."""
    texts = list(dict.fromkeys(sampled("zinc12k")["smiles"]))
    for rows in ROWS:
        Path(folder, f"{rows}.smi").write_text("\n".join(["smiles", *islice(cycle(texts), rows)]) + "\n")
    (esol := sampled("esol")).to_csv(Path(folder, "esol.csv"), index=False)
    before, *_ = commits.values()
    seconds(before, TRAIN.format(folder=folder, epochs=2))
    Path(folder, "run", "model.gtx").rename(Path(folder, "model.gtx"))
    trained = int((esol["split"] == "train").sum())
    measured = {
        f"predict, {words}": (PREDICT.format(folder=folder, workers=workers, rows="{rows}"), "rows", ROWS, 1)
        for words, workers in (("one process", 0), ("two worker processes", 2))
    } | {"train, ESOL": (TRAIN.format(folder=folder, epochs="{epochs}"), "epochs", EPOCHS, trained)}
    for what, (command, name, (small, large), molecules) in measured.items():
        if not re.search(cases, what):
            continue
        rates = {commit: [] for commit in commits}
        for _ in range(turns):
            for commit, place in commits.items():
                took = [seconds(place, command.format(**{name: size})) for size in (small, large)]
                rates[commit].append((large - small) * molecules / (took[1] - took[0]))
        for commit, found in rates.items():
            print(
                f"{what} | {commit} | {statistics.median(found):.0f} | {' '.join(f'{r:.0f}' for r in found)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
