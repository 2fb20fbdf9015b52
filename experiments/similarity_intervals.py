"""Whether intervals that widen with the distance to the training molecules hold their share everywhere.

gtx train mat/esol --split random --split-sizes 0.7 0.15 0.15 --model tanimoto --out runs/esol
python -m experiments.similarity_intervals runs/esol

The held-out rows of finished runs, validation and test together, are halved at random 100 times. On one half intervals
are fitted, of one width and by `gtx.tasks.uncertainty.methods`; the other half says how many values they hold.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import gtx
from gtx.data import featurise
from gtx.tasks.calibration import conformal_half_width
from gtx.tasks.uncertainty.evaluation import evaluate_spread
from gtx.tasks.uncertainty.methods import distance_slopes

HALVES = 100
SCORES = [f"{score}{third}" for score in ("coverage", "width") for third in ("", "_far", "_middle", "_near")]


def held_out(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """Compute errors `[n, 1]` of the first target of a run, and distances `[n]`, of its validation and test rows."""
    model, table = gtx.load(run / "model.gtx", device="cpu"), pd.read_csv(run / "predictions.csv")
    split = next(name for name in reversed(table.columns) if name.startswith("split"))
    rows = table[table[split].isin(["val", "test"]) & table["error"].isna()]
    target = model.header.targets[0]
    store = featurise(model.header.featuriser, rows[model.header.smiles_column].tolist(), workers=0).store
    error = (rows[target] - rows[f"{target}_pred"]).to_numpy()
    return error[:, None], 1 - model.comparison.of(store, 1)[1][:, 0]


def halved(error: np.ndarray, distance: np.ndarray) -> pd.DataFrame:
    """Average the scores of both kinds of intervals, in rows."""
    random, found = np.random.default_rng(0), {"one width": [], "by similarity": []}
    for _ in range(HALVES):
        order = random.permutation(len(error))
        fit, new = order[: len(order) // 2], order[len(order) // 2 :]
        slope = distance_slopes(error[fit], distance[fit])
        for kind, b in (("one width", 0 * slope), ("by similarity", slope)):
            reach = np.exp(b * distance[:, None])
            half = conformal_half_width(error[fit], 0 * error[fit], reach=(reach[fit], reach[fit])) * reach[new]
            none = np.zeros_like(half)
            found[kind].append(evaluate_spread(["y"], error[new], none, None, -half, half, distance[new]))
    return pd.DataFrame({kind: pd.DataFrame(scores)[SCORES].mean() for kind, scores in found.items()}).T


def main() -> None:
    """Print a table for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folders of gtx train")
    for run in parser.parse_args().runs:
        error, distance = held_out(run)
        near = ", ".join(f"{1 - far:.2f}" for far in np.quantile(distance, [2 / 3, 1 / 3]))
        print(f"\n{run}: {len(error)} held-out rows; thirds of similarity at {near}")
        print(halved(error, distance).round(3).to_string())


if __name__ == "__main__":
    main()
