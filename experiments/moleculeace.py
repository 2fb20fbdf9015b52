"""MoleculeACE (van Tilborg et al. 2022): activity of ligands, with activity cliffs, in its own split.

    python -m experiments.moleculeace --sets CHEMBL2034_Ki --models gtx-default gtx-mix --jobs 2
    python -m experiments.moleculeace --page             # writes results/moleculeace.md, with the published scores

A tenth of the training rows, drawn at random and the same for every model, are validation rows. `--table` only prints
the results.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from experiments import tables
from experiments.models import MODELS
from experiments.recipe import main
from experiments.runs import PublicSet, read_set
from experiments.summary import markdown
from experiments.tables import RESULTS, ROOT
from gtx.base.files import whole_file
from gtx.data.public_datasets import PUBLIC_DATASETS as NAMED
from gtx.data.public_datasets import load_public_dataset
from gtx.training_data import DataSettings

HELD_OUT = 0.1
PAGE = RESULTS / "moleculeace.md"
HEAD = """# MoleculeACE

Test RMSE in pKi or pEC50, mean over sets; of several seeds their mean. Published models learned from all
training rows. A tenth of these validates here; the kernel beside gtx's network learns from it when its share is
settled, the network never does.
"""
Scores = dict[str, dict[str, list[tuple[float, float]]]]
"""RMSE of all test rows and of those on cliffs, by model and set, one pair a seed."""


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
    with whole_file(folder / file.name, "w") as made:
        table.to_csv(made, index=False)
    return folder / file.name


SETS = {
    name.removeprefix("moleculeace/"): ActivitySet(name, "rmse", ("split",), name.replace("/", "-"))
    for name in NAMED
    if name.startswith("moleculeace/")
}


def scores() -> Scores:
    """Score all runs, and read the published scores."""
    found: Scores = defaultdict(lambda: defaultdict(list))
    for name, public_set in SETS.items():
        for run in tables.runs(RESULTS, folder=public_set.folder):
            table = read_set(public_set.name)
            predicted = tables.predictions(RESULTS, run)
            error = predicted.values[:, 0] - table["y"].to_numpy()[predicted.rows]
            cliff = table["cliff"].to_numpy()[predicted.rows] == 1
            pair = tuple(float(np.sqrt(np.mean(np.square(each)))) for each in (error, error[cliff]))
            found[MODELS[run["model"]].title][name].append(pair)
    file = load_public_dataset(next(iter(SETS.values())).name, download=False).path.with_name("published.csv")
    for _, row in pd.read_csv(file).iterrows() if file.exists() else ():
        model = f"{row['algorithm']} on {row['descriptor']}, published"
        found[model][row["dataset"]].append((row["rmse"], row["cliff_rmse"]))
    return found


def page(found: Scores) -> str:
    """Write a table for each selection of sets that gtx was run on, with all models that have scores of them."""
    selections = {frozenset(sets) for model, sets in found.items() if not model.endswith("published")}
    lines = [HEAD]
    for sets in sorted(selections, key=len, reverse=True):
        lines += [f"## {len(sets)} sets: {', '.join(sorted(sets))}", ""]
        rows = []
        for model, by_set in found.items():
            if sets <= set(by_set):
                mean = np.mean([np.mean(by_set[name], axis=0) for name in sets], axis=0)
                rows.append((model, min(len(by_set[name]) for name in sets), *mean.tolist()))
        cells = [
            [model, f"{seeds}", f"{a:.3f}", f"{b:.3f}"] for model, seeds, a, b in sorted(rows, key=lambda row: row[2])
        ]
        lines += [*markdown("model | seeds | RMSE | on cliffs", "lrrr", cells), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    if "--page" in sys.argv:
        PAGE.write_text(page(scores()))
        print(PAGE)
        sys.exit(0)
    sys.exit(main(__doc__, "experiments.moleculeace", SETS))
