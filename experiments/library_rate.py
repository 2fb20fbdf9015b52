"""A library through `gtx predict`: as one table, as a folder, and as a folder with Ray; rows a second and memory.

    python -m experiments.library_rate --rows 100000 --turns 2
    python -m experiments.library_rate --rows 1000000 --ways folder ray

The molecules are those of ZINC-12k, repeated, as CSV files of 100,000 rows, or as one for the single table. The model
is the default of `gtx train` for a large table, untrained. Two processes, or two actors, predict on a processor. The
time is that of the whole command, start and end included. Memory is that of all processes of the command together,
shared pages counted once (proportional set size), read every second: its peak in the first and in the second half of
the time. Prints a row of `results/scale.md` for each turn.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from experiments.speed.samples import default_model, sampled
from gtx.prediction import ModelHeader, save_model

FILE_ROWS = 100_000
WAYS = {
    "table": "predict {folder}/model.gtx {folder}/one.csv --workers 2 --device cpu --out {folder}/out/one.parquet",
    "folder": "predict {folder}/model.gtx {folder}/library --workers 2 --device cpu --out {folder}/out",
    "ray": "predict {folder}/model.gtx {folder}/library --engine ray --workers 2 --device cpu --out {folder}/out",
}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--shard-rows", type=int, help="that of `gtx predict`, for folders")
    given = parser.parse_args()
    with TemporaryDirectory() as folder:
        prepare(Path(folder), given.rows)
        for _ in range(given.turns):
            for way in given.ways:
                words = WAYS[way].format(folder=folder).split()
                if given.shard_rows and way != "table":
                    words += ["--shard-rows", str(given.shard_rows)]
                shutil.rmtree(out := Path(folder, "out"), ignore_errors=True)
                out.mkdir()
                seconds, memory = run(words)
                half = len(memory) // 2
                first, second = (max(part, default=0) / 2**20 for part in (memory[:half], memory[half:]))
                print(
                    f"| {way} | {given.rows:,} | {seconds:.0f} s | {given.rows / seconds:,.0f} "
                    f"| {first:,.0f} MB | {second:,.0f} MB | load {os.getloadavg()[0]:.1f} |",
                    flush=True,
                )


def prepare(folder: Path, rows: int) -> None:
    """Write the model, the single table and the folder of tables."""
    task, featuriser, spec, model = default_model()
    save_model(folder / "model.gtx", [model.eval()], ModelHeader(task, featuriser, spec))
    texts = cycle(dict.fromkeys(sampled("zinc12k")["smiles"]))
    (folder / "library").mkdir()
    with open(folder / "one.csv", "w") as one:
        one.write("smiles\n")
        for start in range(0, rows, FILE_ROWS):
            lines = "".join(f"{text}\n" for text in islice(texts, min(FILE_ROWS, rows - start)))
            (folder / "library" / f"{start // FILE_ROWS:04d}.csv").write_text("smiles\n" + lines)
            one.write(lines)


def run(words: list[str]) -> tuple[float, list[int]]:
    """Seconds of a command of gtx, and the bytes that its processes held each second."""
    memory, begun = [], time.perf_counter()
    with subprocess.Popen([sys.executable, "-m", "gtx", *words], stdout=subprocess.DEVNULL) as process:
        own = psutil.Process(process.pid)
        while process.poll() is None:
            memory.append(held(own))
            time.sleep(1)
    if process.returncode:
        raise SystemExit(f"gtx {' '.join(words)} ended with status {process.returncode}")
    return time.perf_counter() - begun, memory


def held(process: psutil.Process) -> int:
    """Bytes of a process and of all that it started."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_full_info().pss
        except psutil.Error:  # it has just ended
            continue
    return total


if __name__ == "__main__":
    main()
