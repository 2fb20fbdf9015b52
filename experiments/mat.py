"""The six splits of the Molecule Attention Transformer paper (Maziarka et al. 2020, arXiv:2002.08264), with defaults.

    python experiments/mat.py --sets freesolv esol --jobs 2

trains one model per set and split with the defaults of `gtx train`, one thread each, and writes the scores of a run to
`experiments/results/mat-<set>/standard-<split>.json`. Runs lie under `runs/mat/` and resume; a finished one is read.
`--table` prints the scores that are there. Errors are in standard deviations of the target, as in the paper.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
SPLITS = range(6)


def run(name: str, split: int) -> None:
    """Train on one split, in this process, and write its result."""
    from gtx.data.named_sets import load_set
    from gtx.prediction import library_versions
    from gtx.training import TrainSettings
    from gtx.workflow import DataSettings, train

    path = load_set(f"mat/{name}").path
    data = DataSettings(str(path), ("y",), split_column=f"split_random_{split}")
    begun = time.perf_counter()
    outcome = train(data, TrainSettings(threads=1), f"runs/mat/{name}-{split}", baselines=False)
    if outcome.was_finished:
        return  # its result was written when it ended
    result = {
        "set": f"mat/{name}",
        "split": f"split_random_{split}",
        "model": "standard",
        "seed": 0,
        **{part: outcome.metrics[part] for part in ("train", "val", "test")},
        "seconds": round(time.perf_counter() - begun, 1),
        "machine": f"{platform.machine()}, 1 thread",
        "versions": library_versions(),
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "command": f"python experiments/mat.py --sets {name} --splits {split}",
    }
    file = HERE / "results" / f"mat-{name}" / f"standard-{split}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=2) + "\n")


def table(names: list[str]) -> None:
    """Print what has been measured."""
    for name in names:
        files = sorted((HERE / "results" / f"mat-{name}").glob("standard-*.json"))
        results = [json.loads(file.read_text()) for file in files]
        if not results:
            continue
        test = [result["test"]["rmse"] for result in results]
        val = [result["val"]["rmse"] for result in results]
        longest = max(result["seconds"] for result in results)
        print(f"mat/{name}: {len(test)} splits, test RMSE {statistics.mean(test):.4f} ± {statistics.pstdev(test):.4f}")
        print(f"  test by split {' '.join(f'{rmse:.3f}' for rmse in test)}")
        print(f"  val  by split {' '.join(f'{rmse:.3f}' for rmse in val)}, mean {statistics.mean(val):.4f}")
        print(f"  longest run {longest:.0f} s")


def main() -> None:
    """Run what is asked for, several at a time, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["freesolv", "esol"], choices=["freesolv", "esol"])
    parser.add_argument("--splits", nargs="+", type=int, default=list(SPLITS))
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    parser.add_argument("--table", action="store_true", help="print the results there are, and train nothing")
    arguments = parser.parse_args()
    asked = [(name, split) for split in arguments.splits for name in arguments.sets]
    if len(asked) == 1 and not arguments.table:
        run(*asked[0])
    elif not arguments.table:

        def start(one: tuple[str, int]) -> None:
            command = [sys.executable, __file__, "--sets", one[0], "--splits", str(one[1])]
            subprocess.run(command, check=True)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(start, asked))
    table(arguments.sets)


if __name__ == "__main__":
    main()
