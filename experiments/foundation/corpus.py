"""The molecules to pretrain on: a file of SMILES, one a line, in a shuffled order; plain, or packed by gzip or xz."""

from __future__ import annotations

import gzip
import lzma
from itertools import islice
from pathlib import Path

OPENERS = {".xz": lzma.open, ".gz": gzip.open}


def read_corpus(path: Path, first: int | None = None) -> list[str]:
    """The first words of its lines, all or the `first` so many."""
    with OPENERS.get(path.suffix, open)(path, "rt") as file:
        return [line.split()[0] for line in islice(file, first)]
