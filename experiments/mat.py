"""The six splits of the Molecule Attention Transformer paper (Maziarka et al. 2020, arXiv:2002.08264), with defaults.

    python experiments/mat.py --sets freesolv esol --jobs 2

trains one model per set and split with the defaults of `gtx train`, one thread each, scores the baselines on the same
rows, and writes the scores to `experiments/results/mat-<set>/<model>-<split>.json`. Runs lie under `runs/mat/` and
resume; a finished one is kept. `--table` prints the scores that are there. Errors are in standard deviations of the
target, as in the paper.
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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gtx.workflow import DataSettings

HERE = Path(__file__).parent
SPLITS = range(6)


def run(name: str, split: int) -> None:
    """Train on one split, in this process, and write its result."""
    from gtx.prediction import library_versions
    from gtx.training import TrainSettings
    from gtx.workflow import train

    data, settings = _data(name, split), TrainSettings(threads=1)
    begun = time.perf_counter()
    outcome = train(data, settings, f"runs/mat/{name}-{split}", baselines=False)
    if not outcome.was_finished:  # else its result was written when it ended
        more = {
            "seconds": round(time.perf_counter() - begun, 1),
            "machine": f"{platform.machine()}, 1 thread",
            "versions": library_versions(),
            "sha256": hashlib.sha256(Path(data.data).read_bytes()).hexdigest(),
            "command": f"python experiments/mat.py --sets {name} --splits {split}",
        }
        _write(name, split, "standard", outcome.metrics, {"seed": settings.seed, **more})


def run_baselines(name: str, split: int) -> None:
    """Score the baselines on one split, and write their results."""
    from gtx.report import baselines
    from gtx.workflow.dataset import load

    dataset = load(_data(name, split), cache="runs/mat/cache")
    scores = baselines(dataset.smiles, dataset.y, dataset.split, dataset.task, ["y"])
    for model, metrics in scores.items():
        _write(name, split, model, metrics, {"seed": 0, "settings": metrics["settings"]})


def _data(name: str, split: int) -> DataSettings:
    from gtx.data.named_sets import load_set
    from gtx.workflow import DataSettings

    return DataSettings(str(load_set(f"mat/{name}").path), ("y",), split_column=f"split_random_{split}")


def _write(name: str, split: int, model: str, metrics: dict[str, Any], more: dict[str, Any]) -> None:
    result = {"set": f"mat/{name}", "split": f"split_random_{split}", "model": model}
    result |= {part: metrics[part] for part in ("train", "val", "test")} | more
    file = HERE / "results" / f"mat-{name}" / f"{model}-{split}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(result, indent=2) + "\n")


def table(names: list[str]) -> None:
    """Print what has been measured: mean and standard deviation over splits."""
    for name in names:
        folder = HERE / "results" / f"mat-{name}"
        for model in sorted({file.stem.rsplit("-", 1)[0] for file in folder.glob("*.json")}):
            results = [json.loads(file.read_text()) for file in sorted(folder.glob(f"{model}-*.json"))]
            test, val = ([result[part]["rmse"] for result in results] for part in ("test", "val"))
            print(
                f"mat/{name:9} {model:14} {len(test)} splits  test RMSE {statistics.mean(test):.4f} "
                f"± {statistics.pstdev(test):.4f}  val {statistics.mean(val):.4f}  "
                f"by split {' '.join(f'{rmse:.3f}' for rmse in test)}"
            )


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
        run_baselines(*asked[0])
    elif not arguments.table:

        def start(one: tuple[str, int]) -> None:
            command = [sys.executable, __file__, "--sets", one[0], "--splits", str(one[1])]
            subprocess.run(command, check=True)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            list(pool.map(start, asked))
    table(arguments.sets)


if __name__ == "__main__":
    main()
