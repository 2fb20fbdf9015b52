"""Labels of a corpus, to pretrain on: RDKit's descriptors, a teacher's embedding, or quantum chemistry by GFN2-xTB.

    OMP_NUM_THREADS=1 python -m experiments.foundation.labels descriptors corpus.smi.xz --first 250000 --jobs 2
    OMP_NUM_THREADS=1 python -m experiments.foundation.labels minimol corpus.smi.xz
    OMP_NUM_THREADS=1 python -m experiments.foundation.labels jazzy corpus.smi.xz
    OMP_NUM_THREADS=1 python -m experiments.foundation.labels xtb corpus.smi.xz --first 50000 --jobs 2

Worker processes label shards of the corpus, each file whole or not there, so that the same command goes on where it was
stopped. A molecule that cannot be labelled has NaN and a reason; the reasons are counted at the end.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.foundation.corpus import read_corpus
from experiments.foundation.labellers import LABELLERS, LabelError
from gtx.data.featurising import map_in_workers
from gtx.files import whole_file
from gtx.molecules import Featuriser, MoleculeError

OUT = Path("build/foundation")


class Labels(NamedTuple):
    """Labels of consecutive molecules of the corpus.

    Attributes:
        molecule: `[n, K]`, NaN where there is none.
        atom: float32 `[atoms, A]` of all their atoms, in the order in which gtx numbers them.
        atoms: int64 `[n]`, how many of `atom` belong to each; 0 for a molecule that cannot be read.
        error: `[n]`, why there are no labels; empty where there are.
    """

    molecule: np.ndarray
    atom: np.ndarray
    atoms: np.ndarray
    error: np.ndarray


def label(kind: str, texts: Sequence[str]) -> Labels:
    """Label some SMILES."""
    labeller, read = LABELLERS[kind], Featuriser().read
    molecule = np.full((len(texts), len(labeller.molecule)), np.nan, labeller.digits)
    atoms, errors = [np.empty((0, len(labeller.atom)))] * len(texts), [""] * len(texts)
    mols = {}
    for row, text in enumerate(texts):
        try:
            mols[row] = read(text)
        except MoleculeError as reason:
            errors[row] = str(reason)
    for (row, mol), found in zip(mols.items(), labeller.label(list(mols.values())), strict=True):
        if isinstance(found, LabelError):
            atoms[row], errors[row] = np.full((mol.GetNumAtoms(), len(labeller.atom)), np.nan), str(found)
        else:
            molecule[row], atoms[row] = found
    counts = np.array([len(each) for each in atoms], np.int64)
    return Labels(molecule, np.concatenate(atoms, dtype=np.float32), counts, np.array(errors))


def read_labels(folder: Path, molecules: int) -> Labels:
    """Read the labels of the first `molecules` of a corpus, as far as the shards reach without a gap."""
    shards, found = [], 0
    for file in sorted(folder.glob("*.npz")):
        if int(file.stem) != found or found >= molecules:
            break
        with np.load(file) as arrays:
            shards.append(Labels(**arrays))
        found += len(shards[-1].atoms)
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
    failures: Counter[str] = Counter()
    columns = TextColumn("Labelling"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=len(begins), completed=len(begins) - len(todo))
        for counted in map_in_workers(partial(write_shard, args.kind), todo, args.jobs):
            failures += counted
            bar.advance(task)
    print(f"{len(texts):,} molecules, {failures.total():,} of those labelled now without labels")
    for reason, count in failures.most_common():
        print(f"{count:8,}  {reason}")


if __name__ == "__main__":
    main()
