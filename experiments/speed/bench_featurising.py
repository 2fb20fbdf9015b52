"""Molecules read and featurised per second on one core, beside the floor: RDKit's bare `MolFromSmiles`.

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

from experiments.speed.harness import Record, Work
from experiments.speed.pages import molecule_rate, ratio, table
from gtx.data.named_sets import load_set
from gtx.molecules import Featuriser, featurise_texts

DEFAULTS = {"threads": 1, "clock": "cpu"}
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


def groups(options: Namespace) -> list[list[str]]:
    return [[f"{set}; {way}" for way in WAYS] for set in SETS]


def make(name: str, options: Namespace) -> Work:
    """SMILES that RDKit can read, drawn by a fixed seed."""
    RDLogger.DisableLog("rdApp.*")
    set, way = name.split("; ")
    entry = load_set(SETS[set])
    texts = pd.read_csv(entry.path)[entry.smiles_column].tolist()
    texts = random.Random(0).sample(texts, min(200 if options.quick else 2000, len(texts)))
    texts = [text for text in texts if Chem.MolFromSmiles(text)]
    return Work({"all": lambda: WAYS[way](texts)}, {"molecules": len(texts)}, seconds=0.0)


def tables(records: Sequence[Record]) -> list[str]:
    """Rates and their share of the floor's, a column per set."""
    floors = {record["case"].split("; ")[0]: record for record in records if record["case"].endswith(FLOOR)}
    rows: dict[str, dict[str, str]] = {}
    for record in records:
        set, way = record["case"].split("; ")
        share = ratio(floors.get(set), record)
        cell = record.get("failed") or f"{molecule_rate(record)} /s" + ("" if share is None else f" ({share:.0%})")
        rows.setdefault(way, {"way": way})[set] = cell
    return [table("Featurising", [*rows.values()], "Molecules per second, and the share of the floor's rate.")]
