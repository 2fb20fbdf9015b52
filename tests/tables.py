"""Small tables of real molecules, out of the bundled set."""

import csv
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from rdkit import Chem

from gtx.training_data import Dataset, DataSettings, load_training_table

GOLDEN = Path(__file__).parent / "prediction" / "golden"
"""The folder of small model files whose predictions are stored."""
XTB9 = Path(__file__).parents[1] / "gtx" / "data" / "sets" / "xtb9.parquet"

TINY = {
    "epochs": 3,
    "model_arguments": {"channels": 16, "layers": 1, "heads": 2, "pair_channels": 8},
    "progress": False,
    "threads": 1,
}
"""Settings under which training is a matter of seconds."""

TINY_ESTIMATOR = {"model_arguments": TINY["model_arguments"], "settings": {"threads": 1, "accelerator": "cpu"}}
"""The same of an estimator."""

ALONE = {"baselines": False, "report": False}
"""Of `gtx.workflow.train_model`: nothing beside the training."""

TINY_WORDS = ["--epochs=3", "--model-arguments", "channels=16", "layers=1", "heads=2", "pair_channels=8"]
TINY_WORDS += ["--no-progress", "--threads=1"]
"""The same on a command line."""

TINY_TRAIN = [*TINY_WORDS, "--no-baselines", "--no-report"]
"""The same of `gtx train`."""


@cache
def bundled() -> pd.DataFrame:
    """All bundled molecules with their targets."""
    return pd.read_parquet(XTB9)


def molecules(count: int = 120) -> pd.DataFrame:
    """Some of the bundled molecules with their targets."""
    return bundled().iloc[:: 11_000 // count][:count].reset_index(drop=True)


def write(path: Path, rows: list[list[Any]], header: list[str]) -> Path:
    """A CSV."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_molecules(path: Path, count: int, *columns: str) -> Path:
    """A CSV of some of the bundled molecules with some of their targets."""
    molecules(count)[["smiles", *columns]].to_csv(path, index=False)
    return path


def load(path: Path, rows: list[list[Any]], header: list[str], **settings: Any) -> Dataset:
    """A CSV, read as training reads it."""
    return load_training_table(DataSettings(str(write(path, rows, header)), workers=0, **settings))


def write_shown(page: str, folder: Path) -> None:
    """The files that a page shows, each a block of YAML whose first line is a comment with its name."""
    for name, text in re.findall(r"```yaml\n# (\S+)\n(.*?)```", page, re.DOTALL):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def unwrapped(page: str) -> str:
    r"""The text of a page with every command in one line, where `\\` at the end of a line continues it."""
    return re.sub(r" \\\n +", " ", page)


def read(path: Path) -> list[dict[str, str]]:
    """A CSV, cells as they are."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def blanks(values: Iterable[Any]) -> list[Any]:
    """The values, every seventh of them blank."""
    return ["" if i % 7 == 3 else value for i, value in enumerate(values)]


def of_atoms(smiles: Iterable[str], value: Callable[[Chem.Atom], Any]) -> list[str]:
    """A list for each molecule of what its atoms have."""
    return [json.dumps([value(atom) for atom in Chem.MolFromSmiles(text).GetAtoms()]) for text in smiles]


def of_bonds(smiles: Iterable[str], value: Callable[[Chem.Bond], Any]) -> list[str]:
    """A list for each molecule of what its bonds have."""
    return [json.dumps([value(bond) for bond in Chem.MolFromSmiles(text).GetBonds()]) for text in smiles]
