"""Real molecules to measure on."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from gtx.data import MoleculeStore, featurise
from gtx.data.named_sets import load_set
from gtx.data.tables import open_table
from gtx.molecules import Featuriser

SETS = {"zinc12k": ("zinc12k", "split"), "esol": ("mat/esol", "split_random_0"), "xtb9": ("xtb9", "split_random")}


class Rows(NamedTuple):
    """Rows of a set.

    Attributes:
        smiles: of each molecule.
        y: float64 `[n]`, its first target.
        part: "train", "val" or "test".
    """

    smiles: list[str]
    y: np.ndarray
    part: list[str]

    def write(self, file: Path) -> None:
        """As a CSV file with the columns smiles, y and split."""
        with file.open("w", newline="") as opened:
            writer = csv.writer(opened)
            writer.writerow(["smiles", "y", "split"])
            writer.writerows(zip(self.smiles, self.y.tolist(), self.part, strict=True))


def rows(name: str, most: int | None = None) -> Rows:
    """A set of `SETS`, downloaded if need be (to `$GTX_DATA`), or its first rows.

    Args:
        name: of the set.
        most: training rows kept; of other rows a fifth as many.
    """
    official, split = SETS[name]
    entry = load_set(official)
    table = open_table(entry.path, entry.smiles_column)
    target, part = table.index(entry.targets[0]), table.index(split)
    found = [(row.text, float(row.cells[target]), row.cells[part]) for row in table.rows]
    if most is not None:
        left = {"train": most, "val": most // 5, "test": most // 5}
        kept = []
        for row in found:
            if left[row[2]] > 0:
                left[row[2]] -= 1
                kept.append(row)
        found = kept
    smiles, y, parts = zip(*found, strict=True)
    return Rows(list(smiles), np.array(y), list(parts))


def store(name: str, most: int) -> MoleculeStore:
    """The first molecules of a set, featurised by default, with their target."""
    found = rows(name, most)
    done = featurise(Featuriser(), found.smiles, workers=0)
    return done.store.with_targets(found.y[done.good, None]).subset(torch.arange(min(most, len(done.good))))
