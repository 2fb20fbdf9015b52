"""The molecules to pretrain on: a file of SMILES, one a line, in a shuffled order; plain, or packed by gzip or xz."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pandas as pd

from gtx.data.public_datasets import load_public_dataset
from gtx.molecules import murcko_scaffold

OPENERS = {".xz": lzma.open, ".gz": gzip.open}


def read_corpus(path: Path, first: int | None = None) -> list[str]:
    """Read the first words of its lines, all or the `first` so many."""
    with OPENERS.get(path.suffix, open)(path, "rt") as file:
        return [line.split()[0] for line in islice(file, first)]


def scaffolds_of_test_rows(names: Iterable[str]) -> set[str]:
    """Collect the Murcko scaffolds of the test rows of sets with a `split` column, without the empty scaffold."""
    found = set()
    for name in names:
        entry = load_public_dataset(name)
        table = pd.read_csv(entry.path)
        found |= set(map(murcko_scaffold, table[entry.smiles_column][table["split"] == "test"]))
    return found - {""}
