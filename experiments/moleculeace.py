"""MoleculeACE (van Tilborg et al. 2022): activity of ligands, with activity cliffs, in its own split.

    python -m experiments.moleculeace --sets CHEMBL2034_Ki --models gtx-default gtx-mix --jobs 2
    python -m experiments.moleculeace --page             # writes results/moleculeace.md, with the published scores

A tenth of the training rows, drawn at random and the same for every model, are validation rows. `--table` only prints
the results.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from experiments import tables
from experiments.models import MODELS
from experiments.recipe import main
from experiments.runs import PublicSet, read_set
from experiments.summary import markdown, replace_tables
from experiments.tables import RESULTS, ROOT
from gtx.base.files import atomic_file
from gtx.data.public_datasets import PUBLIC_DATASETS as NAMED
from gtx.data.public_datasets import load_public_dataset
from gtx.training_data import DataSettings

HELD_OUT = 0.1
PAGE = RESULTS / "moleculeace.md"


class ActivitySet(PublicSet):
    """A set whose split names training and test rows alone."""

    def data(self, split: int) -> DataSettings:
        data = super().data(split)
        return replace(data, data=str(with_validation(Path(data.data), ROOT / "runs" / self.folder)))


def with_validation(file: Path, folder: Path) -> Path:
    """Write the table with a tenth of its training rows as validation rows, drawn with the seed 0."""
    table = pd.read_csv(file, dtype=str)
    train = np.flatnonzero(table["split"] == "train")
    chosen = np.random.default_rng(0).permutation(train)[: round(HELD_OUT * len(train))]
    table.loc[chosen, "split"] = "val"
    with atomic_file(folder / file.name, "w") as made:
        table.to_csv(made, index=False)
    return folder / file.name


SETS = {
    name.removeprefix("moleculeace/"): ActivitySet(name, "rmse", ("split",), name.replace("/", "-"))
    for name in NAMED
    if name.startswith("moleculeace/")
}


def scores() -> pd.DataFrame:
    """Score all runs, and read the published scores: model, set, RMSE of all test rows and of those on cliffs."""
    lines = []
    for name, public_set in SETS.items():
        for run in tables.runs(RESULTS, folder=public_set.folder):
            table, predicted = read_set(public_set.name), tables.predictions(RESULTS, run)
            squared = np.square(predicted.values[:, 0] - table["y"].to_numpy()[predicted.rows])
            cliff = table["cliff"].to_numpy()[predicted.rows] == 1
            lines.append((MODELS[run["model"]].title, name, squared.mean() ** 0.5, squared[cliff].mean() ** 0.5))
    file = load_public_dataset(next(iter(SETS.values())).name, download=False).path.with_name("published.csv")
    for row in pd.read_csv(file).itertuples() if file.exists() else ():
        lines.append((f"{row.algorithm} on {row.descriptor}, published", row.dataset, row.rmse, row.cliff_rmse))
    return pd.DataFrame(lines, columns=["model", "set", "all", "cliffs"])


def page(found: pd.DataFrame) -> str:
    """Write a table for each selection of sets that gtx was run on, with all models that have scores of them."""
    names = found.groupby("model", sort=False)["set"].agg(frozenset)
    lines = []
    for sets in sorted({names[model] for model in names.index if not model.endswith("published")}, key=len)[::-1]:
        lines += [f"## {len(sets)} sets: {', '.join(sorted(sets))}", ""]
        some = found[found["set"].isin(sets) & found["model"].isin(names.index[[each >= sets for each in names]])]
        by_set = some.groupby(["model", "set"], sort=False)[["all", "cliffs"]].agg(["mean", "size"])
        means = by_set.xs("mean", axis=1, level=1).groupby("model", sort=False).mean().sort_values("all", kind="stable")
        seeds = by_set["all", "size"].groupby("model").min()
        cells = [[model, f"{seeds[model]}", f"{a:.3f}", f"{b:.3f}"] for model, a, b in means.itertuples()]
        lines += [*markdown("model | seeds | RMSE | on cliffs", "lrrr", cells), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    if "--page" in sys.argv:
        replace_tables(PAGE, page(scores()))
        print(PAGE)
        sys.exit(0)
    sys.exit(main(__doc__, "experiments.moleculeace", SETS))
