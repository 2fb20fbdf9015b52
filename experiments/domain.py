"""Errors by band of similarity to the training rows (`gtx predict --domain`): validation rows against test rows.

    python -m experiments.domain                         # six sets, three seeds, kernel alone: ten minutes
    python -m experiments.domain --model gt --sets scaffold/esol --seeds 0

The rows are divided at random, each seed in a way of its own. Errors and rows are means over the seeds: RMSE, or the
share of wrong classes. The last column is the share of test rows inside their 90 % interval. Bands with fewer than
10 rows have no error.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import gtx
from gtx.data.public_datasets import load_public_dataset
from gtx.dataset import DataSettings
from gtx.prediction.neighbours import BANDS, measure_bands
from gtx.training import TrainSettings
from gtx.workflow import train_model

SETS = (
    "scaffold/esol",
    "scaffold/freesolv",
    "scaffold/bace",
    "scaffold/bbbp",
    "moleculeace/CHEMBL204_Ki",
    "moleculeace/CHEMBL2034_Ki",
)


def main() -> None:
    """Train, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS, help="sets of one target")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--model", default="kernel", help="a model of `gtx train`")
    given = parser.parse_args()
    print("| set | band | val rows | val error | test rows | test error | coverage |", flush=True)
    print("|---|---|--:|--:|--:|--:|--:|", flush=True)
    for name in given.sets:
        found = pd.concat([by_band(name, seed, given.model) for seed in given.seeds])
        for band, row in found.groupby(level=0, sort=False).mean().iterrows():
            cells = [
                "" if np.isnan(value) else f"{value:.{digits}f}"
                for value, digits in zip(row, (0, 2, 0, 2, 2), strict=True)
            ]
            print(f"| {name} | {band} | {' | '.join(cells)} |", flush=True)


def by_band(name: str, seed: int, model: str) -> pd.DataFrame:
    """Rows and errors of validation and test rows, and the coverage of intervals, of one training; a row per band."""
    found = load_public_dataset(name, download=False)
    (target,) = found.targets
    data = DataSettings(str(found.path), [target], smiles_column=found.smiles_column, seed=seed, workers=0)
    settings = TrainSettings(model=model, seed=seed, threads=1, accelerator="cpu", progress=False)
    with TemporaryDirectory() as folder:
        train_model(data, settings, Path(folder, "run"), baselines=False, report=False)
        predictor = gtx.load(Path(folder, "run", "model.gtx"), "cpu")
        table = pd.read_csv(Path(folder, "run", "predictions.csv"))
    table = table[(table.iloc[:, -3] == "test") & table["error"].isna()]  # the set may have a column `split` of its own
    domain, task = predictor.domain, predictor.task
    near = predictor.neighbours(table[found.smiles_column], 1)
    band = domain.assign(near["similarity"].to_numpy())
    y, prediction = (table[[column]].to_numpy(float) for column in (target, f"{target}_pred"))
    rows, errors = measure_bands(task, band, y, prediction)
    held = np.full(len(table), np.nan)
    if f"{target}_low" in table:
        held = table[target].between(table[f"{target}_low"], table[f"{target}_high"]).to_numpy(float)
    return pd.DataFrame(
        {
            name: [domain.rows[name][0], domain.errors[name][0], rows[name][0], errors[name][0], held[band == k].mean()]
            for k, name in enumerate(BANDS)
        },
        index=["val rows", "val error", "test rows", "test error", "coverage"],
        dtype=float,
    ).T


if __name__ == "__main__":
    main()
