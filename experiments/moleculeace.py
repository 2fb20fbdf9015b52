"""MoleculeACE (van Tilborg et al. 2022): activity of ligands, with activity cliffs, in its own split.

    python -m experiments.moleculeace --sets CHEMBL2034_Ki --models gtx gtx-foundation --jobs 2
    python -m experiments.moleculeace --page             # writes results/moleculeace.md, with the published scores

A tenth of the training rows, drawn at random and the same for every model, are validation rows. `--table` only prints
the results.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from experiments import archive
from experiments.archive import RESULTS, ROOT
from experiments.models import MODELS
from experiments.public_sets import PublicSet
from experiments.recipe import main
from gtx.data.named_sets import SETS as NAMED
from gtx.data.named_sets import load_set
from gtx.dataset import DataSettings
from gtx.files import whole_file

HELD_OUT = 0.1
PUBLISHED = "published.csv"
PAGE = RESULTS / "moleculeace.md"
HEAD = """Test RMSE in pKi or pEC50, mean over sets; of several seeds their mean. Published models learned from all
training rows. A tenth of these validates here; the kernel beside gtx's network learns from it when its share is
settled, the network never does."""


class ActivitySet(PublicSet):
    """A set whose split names training and test rows alone."""

    def data(self, split: int) -> DataSettings:
        data = super().data(split)
        return replace(data, data=str(with_validation(Path(data.data), ROOT / "runs" / self.folder)))


def with_validation(file: Path, folder: Path) -> Path:
    """The table with a tenth of its training rows as validation rows, drawn with the seed 0."""
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


def scores() -> Mapping[str, Mapping[str, list[tuple[float, float]]]]:
    """RMSE of all test rows and of those on cliffs: by model and set, one pair a seed; the published ones too."""
    found: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for name, public_set in SETS.items():
        for run in archive.runs(RESULTS, folder=public_set.folder):
            table = pd.read_csv(load_set(public_set.name, download=False).path)
            own = archive.predictions(RESULTS, run)
            error = own.values[:, 0] - table["y"].to_numpy()[own.rows]
            cliff = table["cliff"].to_numpy()[own.rows] == 1
            found[MODELS[run["model"]].title][name].append((_rms(error), _rms(error[cliff])))
    published = next(iter(load_set(each.name, download=False).path for each in SETS.values())).with_name(PUBLISHED)
    for _, row in pd.read_csv(published).iterrows() if published.exists() else ():
        model = f"{row['algorithm']} on {row['descriptor']}, published"
        found[model][row["dataset"]].append((row["rmse"], row["cliff_rmse"]))
    return found


def page() -> str:
    """A table: every model, the sets it was measured on, its mean scores, and those of the others on the same sets."""
    found = scores()
    own = {model: sets for model, sets in found.items() if not model.endswith("published")}
    lines = ["# MoleculeACE", "", HEAD, ""]
    for sets in sorted({frozenset(each) for each in own.values()}, key=len, reverse=True):
        rows = [
            (model, min(len(each[name]) for name in sets), *_mean(each, sets))
            for model, each in found.items()
            if sets <= set(each)
        ]
        lines += [
            f"## {len(sets)} sets: {', '.join(sorted(sets))}",
            "",
            "| model | seeds | RMSE | on cliffs |",
            "| --- | --: | --: | --: |",
        ]
        rows = sorted(rows, key=lambda row: row[2])
        lines += [f"| {model} | {seeds} | {rmse:.3f} | {cliff:.3f} |" for model, seeds, rmse, cliff in rows]
        lines += [""]
    return "\n".join(lines)


def _mean(of: Mapping[str, list[tuple[float, float]]], sets: frozenset[str]) -> tuple[float, float]:
    return tuple(np.mean([np.mean(of[name], axis=0) for name in sets], axis=0).tolist())


def _rms(error: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(error))))


if __name__ == "__main__":
    if "--page" in sys.argv:
        PAGE.write_text(page())
        print(PAGE)
        sys.exit(0)
    sys.exit(main(__doc__, "experiments.moleculeace", SETS))
