"""Uncertainty on real sets: methods of `--uncertainty`, intervals by similarity, errors by band of similarity.

    python -m experiments.uncertainty methods                        # FreeSolv, one seed, some 15 minutes of one core
    python -m experiments.uncertainty methods --sets scaffold/esol --methods variance ensemble --seeds 0 1 2
    python -m experiments.uncertainty bands                          # six sets, three seeds, kernel alone: ten minutes
    python -m experiments.uncertainty intervals run/ other-run/      # finished runs of `gtx train`

The rows are divided at random, each seed in a way of its own; scores are means over the seeds. `methods` has the scores
of the test rows (`metrics.json` of `gtx train`); `ensemble` has five members. `bands` compares validation rows with
test rows by the bands of `gtx predict --domain`: RMSE, or the share of wrong classes, and the share of test rows inside
their 90 % interval; bands with fewer than 10 rows have no error. `intervals` halves the held-out rows of a run,
validation and test together, at random 100 times: on one half intervals are fitted, of one width and by
`gtx.tasks.uncertainty`; the other half shows how many values they hold. Each row is printed as soon as it is
known.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

import gtx
from experiments.summary import markdown
from gtx.data import featurise
from gtx.data.public_datasets import load_public_dataset
from gtx.prediction import Predictor
from gtx.prediction.neighbours import BANDS, measure_bands
from gtx.tasks import Regression
from gtx.tasks.calibration import conformal_half_width
from gtx.tasks.uncertainty import UNCERTAINTY_METHODS, distance_slopes, evaluate_spread
from gtx.training import TrainSettings
from gtx.training_data import DataSettings
from gtx.workflow import train_model

SCORES = ("coverage", "width", "nll", "ence", "miscalibration_area", "spearman", "auroc")
SETS_OF_BANDS = (
    *(f"scaffold/{name}" for name in ("esol", "freesolv", "bace", "bbbp")),
    *(f"moleculeace/CHEMBL{name}" for name in ("204_Ki", "2034_Ki")),
)
COLUMNS_OF_BANDS = ("val rows", "val error", "test rows", "test error", "coverage")
HALVES = 100
SCORES_OF_INTERVALS = [
    f"{score}{third}" for score in ("coverage", "width") for third in ("", "_far", "_middle", "_near")
]


def trained(name: str, seed: int, data: dict[str, Any], **settings: Any) -> tuple[dict, pd.DataFrame, Predictor]:
    """Train on a named set by `gtx train`; its metrics, its predictions of the test rows, and the model."""
    found = load_public_dataset(name, download=False)
    rows = DataSettings(str(found.path), smiles_column=found.smiles_column, seed=seed, workers=0, **data)
    chosen = TrainSettings(seed=seed, threads=1, accelerator="cpu", progress=False, **settings)
    with TemporaryDirectory() as folder:
        run = Path(folder, "run")
        metrics = train_model(rows, chosen, run, baselines=False, report=False).metrics
        table, model = pd.read_csv(run / "predictions.csv"), gtx.load(run / "model.gtx", "cpu")
    # the set may have a column `split` of its own
    return metrics, table[(table.iloc[:, -3] == "test") & table["error"].isna()], model


def scores_of_method(name: str, method: str, seed: int, **settings: Any) -> dict[str, float]:
    """Train once, and return the RMSE and `SCORES` of the test rows; NaN for a score that the method does not have."""
    (target,) = load_public_dataset(name, download=False).targets
    task, members = Regression([target], uncertainty=method), 5 if method == "ensemble" else 1
    metrics, table, _ = trained(name, seed, {"task": task}, ensemble=members, **settings)
    low, high = table[f"{target}_low"], table[f"{target}_high"]
    of_intervals = {"coverage": table[target].between(low, high).mean(), "width": (high - low).mean()}
    found = metrics["test"] | metrics["test"].get("uncertainty", {}) | of_intervals
    return {score: found.get(score, float("nan")) for score in ("rmse", *SCORES)}


def by_band(name: str, seed: int, model: str) -> pd.DataFrame:
    """Rows and errors of validation and test rows, and the coverage of intervals, of one training; a row per band."""
    entry = load_public_dataset(name, download=False)
    (target,) = entry.targets
    _, table, predictor = trained(name, seed, {"target_columns": [target]}, model=model)
    domain = predictor.domain
    band = domain.assign(predictor.neighbours(table[entry.smiles_column], 1)["similarity"].to_numpy())
    y, prediction = (table[[column]].to_numpy(float) for column in (target, f"{target}_pred"))
    rows, errors = measure_bands(predictor.task, band, y, prediction)
    held = np.full(len(table), np.nan)
    if f"{target}_low" in table:
        held = table[target].between(table[f"{target}_low"], table[f"{target}_high"]).to_numpy(float)
    found = {
        name: [domain.rows[name][0], domain.errors[name][0], rows[name][0], errors[name][0], held[band == k].mean()]
        for k, name in enumerate(BANDS)
    }
    return pd.DataFrame(found, index=COLUMNS_OF_BANDS, dtype=float).T


def held_out(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """Compute errors `[n, 1]` of the first target of a run, and distances `[n]`, of its validation and test rows."""
    model, table = gtx.load(run / "model.gtx", device="cpu"), pd.read_csv(run / "predictions.csv")
    split = next(name for name in reversed(table.columns) if name.startswith("split"))
    rows = table[table[split].isin(["val", "test"]) & table["error"].isna()]
    target = model.header.targets[0]
    store = featurise(model.header.featuriser, rows[model.header.smiles_column].tolist(), workers=0).store
    error = (rows[target] - rows[f"{target}_pred"]).to_numpy()
    return error[:, None], 1 - model.comparison.nearest(store, 1)[1][:, 0]


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
    return pd.DataFrame({kind: pd.DataFrame(each)[SCORES_OF_INTERVALS].mean() for kind, each in found.items()}).T


def show(label: str, values: pd.Series, digits: tuple[int, ...]) -> None:
    """Print a row of a table in Markdown; NaN is an empty cell."""
    cells = ["" if np.isnan(value) else f"{value:.{d}f}" for value, d in zip(values, digits, strict=True)]
    print(f"| {' | '.join([label, *cells])} |", flush=True)


def main() -> None:
    """Train, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["methods", "bands", "intervals"])
    parser.add_argument("finished", nargs="*", type=Path, metavar="RUN", help="folders of gtx train, for `intervals`")
    parser.add_argument("--sets", nargs="+", help="sets of `gtx data` with one target")
    parser.add_argument(
        "--methods", nargs="+", choices=["none", *UNCERTAINTY_METHODS], default=["none", *UNCERTAINTY_METHODS]
    )
    parser.add_argument("--model", default="kernel", help="a model of `gtx train`, for `bands`")
    parser.add_argument("--seeds", nargs="+", type=int, help="default: 0, and for `bands` 0, 1 and 2")
    parser.add_argument("--epochs", type=int, help="default: that of `gtx train`")
    given = parser.parse_args()
    if given.what == "methods":
        print(*markdown(f"`--uncertainty` | RMSE | {' | '.join(SCORES)}", "l" + "r" * 8, []), sep="\n", flush=True)
        settings = {} if given.epochs is None else {"epochs": given.epochs}
        for name in given.sets or ["scaffold/freesolv"]:
            for method in given.methods:
                found = pd.DataFrame([scores_of_method(name, method, s, **settings) for s in given.seeds or [0]])
                show(f"`{method}`", found.mean(), (3,) * 8)
    elif given.what == "bands":
        print(*markdown(f"set | band | {' | '.join(COLUMNS_OF_BANDS)}", "llrrrrr", []), sep="\n", flush=True)
        for name in given.sets or SETS_OF_BANDS:
            found = pd.concat([by_band(name, seed, given.model) for seed in given.seeds or range(3)])
            for band, row in found.groupby(level=0, sort=False).mean().iterrows():
                show(f"{name} | {band}", row, (0, 2, 0, 2, 2))
    for run in given.finished:
        error, distance = held_out(run)
        near = ", ".join(f"{1 - far:.2f}" for far in np.quantile(distance, [2 / 3, 1 / 3]))
        print(f"\n{run}: {len(error)} held-out rows; thirds of similarity at {near}")
        print(halved(error, distance).round(3).to_string())


if __name__ == "__main__":
    main()
