"""The set of a recipe over a few molecules."""

from pathlib import Path

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
