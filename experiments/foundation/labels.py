"""Labels of a corpus, to pretrain on: RDKit's descriptors, or the numbers of a teacher.

    OMP_NUM_THREADS=1 python -m experiments.foundation.labels descriptors corpus.smi.xz --first 250000 --jobs 2
    OMP_NUM_THREADS=1 python -m experiments.foundation.labels minimol corpus.smi.xz
    OMP_NUM_THREADS=1 python -m experiments.foundation.labels jazzy corpus.smi.xz

A corpus is a file of SMILES, one a line, in a shuffled order; plain, or packed by gzip or xz. Worker processes label
shards of it, each file whole or not there, so that the same command goes on where it was stopped. A molecule that
cannot be labelled has NaN and a reason; the reasons are counted at the end.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import track

from experiments.foundation.labellers import LABELLERS, LabelError
from experiments.runs import read_set
from gtx.data.featurising import map_in_workers
from gtx.data.public_datasets import load_public_dataset
from gtx.files import whole_file
from gtx.molecules import Featuriser, MoleculeError, murcko_scaffold

OUT = Path("build/foundation")
OPENERS = {".xz": lzma.open, ".gz": gzip.open}


def read_corpus(path: Path, first: int | None = None) -> list[str]:
    """Read the first words of its lines, all or the `first` so many."""
    with OPENERS.get(path.suffix, open)(path, "rt") as file:
        return [line.split()[0] for line in islice(file, first)]


def scaffolds_of_test_rows(names: Iterable[str]) -> set[str]:
    """Collect the Murcko scaffolds of the test rows of sets with a `split` column, without the empty scaffold."""
    found = set()
    for name in names:
        table = read_set(name)
        found |= set(map(murcko_scaffold, table[load_public_dataset(name).smiles_column][table["split"] == "test"]))
    return found - {""}


class Labels(NamedTuple):
    """Labels of consecutive molecules of the corpus.

    Attributes:
        molecule: `[n, K]`, NaN where there is none.
        error: `[n]`, why there are no labels; empty where there are.
    """

    molecule: np.ndarray
    error: np.ndarray


def label(kind: str, texts: Sequence[str]) -> Labels:
    """Label some SMILES."""
    labeller, read = LABELLERS[kind], Featuriser().read
    molecule, errors = np.full((len(texts), len(labeller.names)), np.nan, labeller.digits), [""] * len(texts)
    for row, text in enumerate(texts):
        try:
            molecule[row] = labeller.label(read(text))
        except (MoleculeError, LabelError) as reason:
            errors[row] = str(reason)
    return Labels(molecule, np.array(errors))


def read_labels(folder: Path, molecules: int) -> Labels:
    """Read the labels of the first `molecules` of a corpus, as far as the shards reach without a gap."""
    shards, found = [], 0
    for file in sorted(folder.glob("*.npz")):
        if int(file.stem) != found or found >= molecules:
            break
        with np.load(file) as arrays:
            shards.append(Labels(arrays["molecule"], arrays["error"]))
        found += len(shards[-1].error)
    return Labels(*(np.concatenate(arrays) for arrays in zip(*shards, strict=True)))


def write_shard(kind: str, folder: Path, begin: int, texts: Sequence[str]) -> Counter[str]:
    """Label the molecules from number `begin` on and write them; the reasons of failures, counted."""
    shard = label(kind, texts)
    with whole_file(folder / f"{begin:09d}.npz") as file:
        np.savez(file, **shard._asdict())
    return Counter(shard.error[shard.error != ""].tolist())


def main() -> None:
    """Label what is not labelled yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=LABELLERS)
    parser.add_argument("corpus", type=Path, help="SMILES, one a line; .xz and .gz too")
    parser.add_argument("--first", type=int, help="so many molecules from the top; default all")
    parser.add_argument("--out", type=Path, default=OUT, help="folder; the labels go to a folder in it")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    args = parser.parse_args()
    texts, folder, size = read_corpus(args.corpus, args.first), args.out / args.kind, LABELLERS[args.kind].shard
    begins = range(0, len(texts), size)
    todo = [(folder, i, texts[i : i + size]) for i in begins if not (folder / f"{i:09d}.npz").exists()]
    done = map_in_workers(partial(write_shard, args.kind), todo, args.jobs)
    failures: Counter[str] = Counter()
    for counted in track(done, "Labelling", total=len(todo), console=Console(stderr=True)):
        failures += counted
    print(f"{len(texts):,} molecules, {failures.total():,} of those labelled now without labels")
    for reason, count in failures.most_common():
        print(f"{count:8,}  {reason}")


if __name__ == "__main__":
    main()
