"""Put a filter of the molecules that the foundation learned from, and of their scaffolds, into the package.

    python -m experiments.foundation.seen corpus.smi.xz --first 200000

It tells how often it is wrong of the molecules after these.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rich.progress import track

from experiments.foundation.labels import read_corpus
from experiments.foundation.pack import FOLDER
from gtx.base.files import atomic_file
from gtx.prediction.foundation import identity, is_in_filter, make_filter

OTHERS = 5_000


def main() -> None:
    """Write the filter, and print how often it is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--first", type=int, required=True, help="molecules from the top of the corpus")
    args = parser.parse_args()
    texts = read_corpus(args.corpus, args.first + OTHERS)
    found = [identity(text) for text in track(texts, "Reading")]
    known, others = found[: args.first], found[args.first :]
    filters = {}
    for name, which in (("molecules", 0), ("scaffolds", 1)):
        own = {one[which] for one in known} - {""}
        new = sorted({one[which] for one in others} - own - {""})
        filters[name] = make_filter(own)
        assert is_in_filter(filters[name], own).all()
        wrong = is_in_filter(filters[name], new).mean() if new else 0.0
        print(f"{len(own):,} {name}; of {len(new):,} others {wrong:.2%} are taken for one of them")
    with atomic_file(FOLDER / "seen.npz") as file:
        np.savez_compressed(file, **filters)
    print(f"{(FOLDER / 'seen.npz').stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
