"""Molecules read and featurised per second on one core, beside the floor: RDKit's bare `MolFromSmiles`.

    python -m experiments.speed.bench_featurising

Every way works through the same molecules of a set, by the processor's seconds. RDKit gives molecules, PyG a graph
each, gtx flat arrays: canonical SMILES, which training needs, and descriptors take their time, so it is measured with
and without. chemprop's featuriser needs an environment of its own.
"""

from __future__ import annotations

import random
from argparse import Namespace
from collections.abc import Callable, Sequence

import pandas as pd
from rdkit import Chem, RDLogger
from torch_geometric.utils import from_smiles

from experiments.speed.harness import Record, Topic, Work
from experiments.speed.measured import main, ratio, table
from gtx.data.named_sets import load_set
from gtx.molecules import Featuriser, featurise_texts

SETS = {"ESOL": "esol", "BBBP": "bbbp", "ZINC-12k": "zinc12k"}
FLOOR = "RDKit: MolFromSmiles"
FULL, BARE = Featuriser(), Featuriser(descriptors=False)
WAYS: dict[str, Callable[[Sequence[str]], object]] = {
    FLOOR: lambda texts: [Chem.MolFromSmiles(text) for text in texts],
    "gtx: no descriptors, no SMILES": lambda texts: featurise_texts(BARE, texts, smiles=False),
    "gtx: no descriptors": lambda texts: featurise_texts(BARE, texts),
    "gtx: descriptors, no SMILES": lambda texts: featurise_texts(FULL, texts, smiles=False),
    "gtx: descriptors (the default)": lambda texts: featurise_texts(FULL, texts),
    "PyG: from_smiles": lambda texts: [from_smiles(text) for text in texts],
}
"""Texts to molecules, by the name in the table."""


def make_case(name: str, read: Namespace) -> Work:
    """A case, such as "ESOL; PyG: from_smiles": SMILES that RDKit can read, drawn by a fixed seed."""
    RDLogger.DisableLog("rdApp.*")
    set, way = name.split("; ")
    entry = load_set(SETS[set])
    texts = pd.read_csv(entry.path)[entry.smiles_column].tolist()
    texts = random.Random(0).sample(texts, min(200 if read.quick else 2000, len(texts)))
    texts = [text for text in texts if Chem.MolFromSmiles(text)]
    return Work({"all": lambda: WAYS[way](texts)}, {"molecules": len(texts)}, seconds=0.0)


def tables(records: Sequence[Record]) -> list[str]:
    """Rates and their share of the floor's, a column per set."""
    found = {tuple(record["case"].split("; ")): record for record in records}
    sets, ways = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))

    def cell(set: str, way: str) -> str:
        record, share = found[set, way], ratio(found[set, FLOOR], found[set, way])
        if "failed" in record:
            return record["failed"]
        return f"{record['molecules'] / record['seconds']:,.0f} /s" + ("" if share is None else f" ({share:.0%})")

    rows = [[way, *(cell(set, way) for set in sets)] for way in ways]
    return [table("Featurising", ["way", *sets], rows, "Molecules per second, and the share of the floor's rate.")]


def case_groups(read: Namespace) -> list[list[str]]:
    """All ways on each set."""
    return [[f"{set}; {way}" for way in WAYS] for set in SETS]


DEFAULTS = {"threads": 1, "clock": "cpu"}
TOPIC = Topic("featurising", __doc__, make_case, case_groups, tables, defaults=DEFAULTS)

if __name__ == "__main__":
    main(TOPIC)
