"""Molecules read and featurised per second on one core, beside the floor: RDKit's bare `MolFromSmiles`.

Every way works through the same molecules of a set, by the processor's seconds. RDKit gives molecules, PyG a graph
each, gtx flat arrays: canonical SMILES, which training needs, and descriptors take their time, so it is measured with
and without. chemprop's featuriser needs an environment of its own.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from rdkit import Chem, RDLogger
from torch_geometric.utils import from_smiles

from experiments.speed.harness import Record, Work
from experiments.speed.pages import molecule_rate, ratio, table
from experiments.speed.samples import smiles_of
from gtx.molecules import Featuriser, featurise_texts

DEFAULTS = {"threads": 1, "clock": "cpu"}
SETS = {"ESOL": "esol", "BBBP": "bbbp", "ZINC-12k": "zinc12k"}
FLOOR = "RDKit: MolFromSmiles"
FULL, BARE = Featuriser(), Featuriser(descriptors=False)
WAYS = {
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
    texts = [text for text in smiles_of(SETS[set], 200 if options.quick else 2000) if Chem.MolFromSmiles(text)]
    return Work({"all": lambda: WAYS[way](texts)}, {"molecules": len(texts)}, seconds=0.0)


def tables(records: Sequence[Record]) -> list[str]:
    """Rates and their share of the floor's, a column per set."""
    found, rows = {record["case"]: record for record in records}, {}
    for case, record in found.items():
        set, way = case.split("; ")
        share = ratio(found.get(f"{set}; {FLOOR}"), record)
        cell = record.get("failed") or f"{molecule_rate(record)} /s" + ("" if share is None else f" ({share:.0%})")
        rows.setdefault(way, {"way": way})[set] = cell
    return [table("Featurising", [*rows.values()], "Molecules per second, and the share of the floor's rate.")]
