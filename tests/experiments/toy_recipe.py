"""A recipe over a few molecules, as those in `experiments` are written; `$TOY_SET` names its CSV."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from experiments.recipe import main
from experiments.runs import PublicSet
from gtx.data import public_datasets
from tests.tables import molecules

TARGET = "solvation_water"
SETS = {"toy": PublicSet("toy", "rmse", ("split",), "toy")}


def write(path: Path, count: int = 60) -> Path:
    """Every third molecule is for validation or for the test."""
    table = molecules(count)[["smiles", TARGET]]
    table["split"] = [("train", "train", "train", "train", "val", "test")[i % 6] for i in range(count)]
    table.to_csv(path, index=False)
    return path


def known(path: str | Path) -> public_datasets.PublicDataset:
    """The set, for those who look it up by name."""
    return public_datasets.PublicDataset("toy", "", Path(path), (TARGET,), split_columns=("split",))


if __name__ == "__main__":
    public_datasets.PUBLIC_DATASETS["toy"] = known(os.environ["TOY_SET"])
    sys.exit(main("", "tests.experiments.toy_recipe", SETS))
