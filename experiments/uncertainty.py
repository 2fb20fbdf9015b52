"""The methods of `--uncertainty` on a real set, each trained on the same rows: errors, intervals, likelihood, ranking.

    python -m experiments.uncertainty                                  # FreeSolv, one seed, some 15 minutes of one core
    python -m experiments.uncertainty --set scaffold/esol --methods variance ensemble --seeds 0 1 2

The rows are divided at random, each seed in a way of its own. Scores are those of the test rows (`metrics.json` of
`gtx train`), means over the seeds. `ensemble` has five members. Each row is printed as soon as it is known.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from gtx.data.public_datasets import load_public_dataset
from gtx.dataset import DataSettings
from gtx.tasks import Regression
from gtx.tasks.uncertainty import UNCERTAINTY_METHODS
from gtx.training import TrainSettings
from gtx.workflow import train_model

SCORES = ("coverage", "width", "nll", "ence", "miscalibration_area", "spearman", "auroc")


def main() -> None:
    """Train, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", default="scaffold/freesolv", help="a set of `gtx data` with one target")
    parser.add_argument(
        "--methods", nargs="+", choices=["none", *UNCERTAINTY_METHODS], default=["none", *UNCERTAINTY_METHODS]
    )
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--epochs", type=int, help="default: that of `gtx train`")
    given = parser.parse_args()
    print(f"| `--uncertainty` | RMSE | {' | '.join(SCORES)} |\n|---|{'--:|' * (1 + len(SCORES))}", flush=True)
    for method in given.methods:
        seeds = pd.DataFrame([scores(given.set, method, seed, given.epochs) for seed in given.seeds])
        cells = ["" if value != value else f"{value:.3f}" for value in seeds.mean()]  # NaN: no such score
        print(f"| `{method}` | {' | '.join(cells)} |", flush=True)


def scores(name: str, method: str, seed: int, epochs: int | None) -> dict[str, float]:
    """Train once, and return the RMSE and `SCORES` of the test rows; NaN for a score that the method does not have."""
    found = load_public_dataset(name, download=False)
    (target,) = found.targets
    task = Regression([target], uncertainty=method)
    data = DataSettings(str(found.path), task=task, smiles_column=found.smiles_column, seed=seed, workers=0)
    more = {} if epochs is None else {"epochs": epochs}
    settings = TrainSettings(
        ensemble=5 if method == "ensemble" else 1, seed=seed, threads=1, accelerator="cpu", progress=False, **more
    )
    with TemporaryDirectory() as folder:
        metrics = train_model(data, settings, Path(folder, "run"), baselines=False, report=False).metrics
        table = pd.read_csv(Path(folder, "run", "predictions.csv"))
    table = table[table.iloc[:, -3] == "test"]  # the set may have a column `split` of its own
    low, high = table[f"{target}_low"], table[f"{target}_high"]
    of_intervals = {"coverage": table[target].between(low, high).mean(), "width": (high - low).mean()}
    found = metrics["test"] | metrics["test"].get("uncertainty", {}) | of_intervals
    return {name: found.get(name, float("nan")) for name in ("rmse", *SCORES)}


if __name__ == "__main__":
    main()
