"""Whether a corpus holds molecules of the benchmarks: by the flat SMILES of the neutral parent.

    python -m experiments.foundation.leaks corpus.smi.xz

A molecule's parent is its largest fragment, neutralised; flat is without stereochemistry. Sets that are not there are
named and left out. The exit status is 1 if a test molecule is in the corpus.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.progress import track

from experiments.foundation.labels import read_corpus
from gtx.base.errors import InputError
from gtx.data import open_table
from gtx.data.public_datasets import PUBLIC_DATASETS, load_public_dataset
from gtx.prediction.foundation import identity


def flat(texts: Iterable[str]) -> set[str]:
    """Collect the flat SMILES of molecules' neutral parents, without those that cannot be read."""
    return {identity(text)[0] for text in texts} - {""}


def main() -> int:
    """Print what is shared with each set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--first", type=int, help="so many molecules from the top; default all")
    args = parser.parse_args()
    corpus = flat(track(read_corpus(args.corpus, args.first), "Corpus"))
    print(f"{len(corpus):,} molecules of the corpus")
    leaks = 0
    for name in PUBLIC_DATASETS:
        try:
            entry = load_public_dataset(name, download=False)
        except InputError:
            print(f"{name}: not here")
            continue
        molecules = flat(row.text for row in open_table(entry.path, entry.smiles_column).rows if not row.error)
        found = molecules & corpus
        leaks += len(found)
        print(f"{name}: {len(found):,} of {len(molecules):,} are in the corpus", *sorted(found)[:5], sep="\n    ")
    return int(leaks > 0)


if __name__ == "__main__":
    sys.exit(main())
