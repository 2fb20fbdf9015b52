"""Molecules read and featurised per second on one core, beside the floor: RDKit's bare `MolFromSmiles`.

    python -m experiments.speed.featurising

Every way works through the same molecules of a set in this process, chunk by chunk in turn, so that a busy machine
slows all alike, by the processor's seconds. RDKit gives molecules, PyG a graph each, gtx flat arrays: canonical SMILES,
which training needs, and descriptors take their time, so it is measured with and without. chemprop's featuriser needs
an environment of its own.
"""

from __future__ import annotations

import random
import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any

from rdkit import Chem, rdBase
from torch_geometric.utils import from_smiles

from experiments.speed.cases import options
from experiments.speed.results import Table, write
from gtx.data.named_sets import load_set
from gtx.data.tables import open_table
from gtx.molecules import Featuriser, featurise_texts

SETS = {"ESOL": "esol", "BBBP": "bbbp", "ZINC-12k": "zinc12k"}
CHUNK = 500
FLOOR = "RDKit: MolFromSmiles"

Way = Callable[[Sequence[str]], object]


def ways() -> dict[str, Way]:
    """Texts to molecules, by the name in the table."""
    full, bare = Featuriser(), Featuriser(descriptors=False)
    return {
        FLOOR: lambda texts: [Chem.MolFromSmiles(text) for text in texts],
        "gtx: no descriptors, no SMILES": lambda texts: featurise_texts(bare, texts, smiles=False),
        "gtx: no descriptors": lambda texts: featurise_texts(bare, texts),
        "gtx: descriptors, no SMILES": lambda texts: featurise_texts(full, texts, smiles=False),
        "gtx: descriptors (the default)": lambda texts: featurise_texts(full, texts),
        "PyG: from_smiles": lambda texts: [from_smiles(text) for text in texts],
    }


def molecules(name: str, most: int) -> list[str]:
    """Up to `most` SMILES of a set that RDKit can read, drawn by a fixed seed."""
    entry = load_set(SETS[name])
    texts = [row.text for row in open_table(entry.path, entry.smiles_column).rows]
    texts = random.Random(0).sample(texts, min(most, len(texts)))
    return [text for text in texts if Chem.MolFromSmiles(text)]


def measure(texts: Sequence[str], repeats: int) -> list[dict[str, Any]]:
    """A record for every way: `seconds`, a median; `turns`, of each repeat; `per_second`; `ratio` to the floor."""
    tried = ways()
    chunks = [texts[i : i + CHUNK] for i in range(0, len(texts), CHUNK)]
    turns: dict[str, list[float]] = {name: [] for name in tried}
    for way in tried.values():
        way(chunks[0][:20])  # whatever is made once
    for _ in range(repeats):
        spent = dict.fromkeys(tried, 0.0)
        for chunk in chunks:
            for name, way in tried.items():
                begun = time.process_time()
                way(chunk)
                spent[name] += time.process_time() - begun
        for name, seconds in spent.items():
            turns[name].append(seconds)
    return [
        {
            "case": name,
            "seconds": statistics.median(own),
            "turns": own,
            "per_second": len(texts) / statistics.median(own),
            "ratio": statistics.median(floor / mine for floor, mine in zip(turns[FLOOR], own, strict=True)),
        }
        for name, own in turns.items()
    ]


def tables(records: Sequence[dict[str, Any]]) -> list[Table]:
    """Rates and their ratio to the floor, a column per set."""
    names = list(dict.fromkeys(record["set"] for record in records))
    rows = [
        [case, *(f"{r['per_second']:,.0f} /s ({r['ratio']:.0%})" for r in records if r["case"] == case)]
        for case in dict.fromkeys(record["case"] for record in records)
    ]
    return [Table("Featurising", ["way", *names], rows, "Molecules per second, and the share of the floor's rate.")]


def main(arguments: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Measure all, write it and return it."""

    def more(parser: ArgumentParser) -> None:
        parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS), help="molecules to take")
        parser.add_argument("--molecules", type=int, help="of each set, at most (default 2000; quick 200)")

    read: Namespace = options(__doc__, arguments, more)
    read.threads, read.clock = 1, "cpu"
    records = []
    with rdBase.BlockLogs():
        for name in read.sets:
            texts = molecules(name, read.molecules or (200 if read.quick else 2000))
            records += [{"set": name, "molecules": len(texts), **row} for row in measure(texts, read.repeats)]
    write("featurising", __doc__, read, records, tables(records))
    return records


if __name__ == "__main__":
    main()
