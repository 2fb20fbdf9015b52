"""Pack the labels of xtb9 into one Parquet file with splits, and print its figures.

    python -m experiments.xtb9.pack        # reads candidates.smi and labels.jsonl, writes xtb9.parquet

Rows keep the order of the candidates, which is a seeded shuffle. Same labels and versions, same bytes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from importlib.metadata import version

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rdkit import Chem, RDLogger
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

from experiments.xtb9 import generate, label

SPLIT_SEED = 80_10_10
UNITS = {
    "gap": "eV",
    "dipole": "debye",
    "atomisation": "kcal/mol",
    "solvation_water": "kcal/mol",
    "solvation_octanol": "kcal/mol",
    "coordinates": "Å",
}
DECIMALS = {"gap": 4, "dipole": 4, "atomisation": 3, "solvation_water": 3, "solvation_octanol": 3}


def xtb9_random_split(count: int, seed: int = SPLIT_SEED) -> list[str]:
    """Assign 'train', 'val' or 'test' to each of `count` rows, 80/10/10 by a seeded permutation."""
    split, tenth = np.full(count, "train", dtype=object), round(count / 10)
    order = np.random.default_rng(seed).permutation(count)
    split[order[:tenth]], split[order[tenth : 2 * tenth]] = "test", "val"
    return split.tolist()


def xtb9_scaffold_split(smiles: list[str]) -> list[str]:
    """Assign 'train', 'val' or 'test' by Bemis-Murcko scaffold, 80/10/10 at most; no scaffold in two of them.

    Scaffolds go by size, the largest first (ties by their SMILES): to train while it has room, then to val,
    the rest to test. Molecules without a ring share the empty scaffold.
    """
    groups = defaultdict(list)
    for row, text in enumerate(smiles):
        groups[MurckoScaffoldSmiles(text, includeChirality=False)].append(row)
    split, sizes = [""] * len(smiles), Counter()
    for _, rows in sorted(groups.items(), key=lambda group: (-len(group[1]), group[0])):
        room = {"train": 0.8 * len(smiles), "val": 0.1 * len(smiles), "test": float("inf")}
        name = next(name for name in room if sizes[name] + len(rows) <= room[name])
        sizes[name] += len(rows)
        for row in rows:
            split[row] = name
    return split


def check(record: dict) -> int:
    """Count the atoms of a record, once SMILES and coordinates, rebuilt as stored, agree."""
    mol = Chem.AddHs(Chem.MolFromSmiles(record["smiles"]))
    positions = np.array(record["coordinates"], dtype=np.float32).astype(float).reshape(-1, 3)
    mol.AddConformer(Chem.Conformer(mol.GetNumAtoms()))
    mol.GetConformer().SetPositions(positions)
    label.check_bonds(mol)
    again, _ = label.written(mol)
    if again != record["smiles"]:
        raise ValueError(f"the coordinates of {record['smiles']!r} read back as {again!r}")
    Chem.RemoveStereochemistry(mol)
    flat = Chem.CanonSmiles(Chem.MolToSmiles(Chem.RemoveHs(mol)))
    if flat != record["candidate"]:
        raise ValueError(f"candidate {record['candidate']!r} became {flat!r}")
    return mol.GetNumAtoms()


def table(records: list[dict]) -> pa.Table:
    """Make an Arrow table; coordinates are lists of 3 * num_atoms numbers, Å."""
    smiles = [record["smiles"] for record in records]
    columns = {"smiles": pa.array(smiles)}
    for name, decimals in DECIMALS.items():
        columns[name] = pa.array([round(record[name], decimals) for record in records], pa.float64())
    columns["split_random"] = pa.array(xtb9_random_split(len(records)))
    columns["split_scaffold"] = pa.array(xtb9_scaffold_split(smiles))
    columns["coordinates"] = pa.array([r["coordinates"] for r in records], pa.list_(pa.float32()))
    columns["num_atoms"] = pa.array([check(record) for record in records], pa.int16())
    metadata = {
        "name": "xtb9",
        "licence": "CC0-1.0",
        "method": "GFN2-xTB//GFN2-xTB, ALPB solvation (solution state gsolv) at the gas geometry",
        "units": UNITS,
        "seeds": {"generate": generate.SEED, "conformers": label.SEED, "split_random": SPLIT_SEED},
        "versions": {name: version(name) for name in ("rdkit", "tblite", "ase", "numpy", "pyarrow")},
    }
    text = {key: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for key, v in metadata.items()}
    return pa.table(columns).replace_schema_metadata(text)


def unmarked(smiles: str) -> bool:
    """Return True if a stereocentre other than nitrogen, which inverts, is left open, as in some rings by RDKit."""
    mol = Chem.MolFromSmiles(smiles)
    centres = Chem.FindMolChiralCenters(mol, includeUnassigned=True, useLegacyImplementation=False)
    return any(mark == "?" and mol.GetAtomWithIdx(i).GetSymbol() != "N" for i, mark in centres)


def kept(done: list[dict]) -> list[dict]:
    """Return the labelled records to pack; any other gets the reason as its `status`."""
    seen = set()
    for record in done:
        if record["status"] != "ok":
            continue
        if record["smiles"] in seen:
            record["status"] = "duplicate"
        elif unmarked(record["smiles"]):
            record["status"] = "stereochemistry not written"
        seen.add(record["smiles"])
    return [record for record in done if record["status"] == "ok"]


if __name__ == "__main__":
    RDLogger.DisableLog("rdApp.warning")
    labelled = {record["candidate"]: record for record in map(json.loads, label.LABELS.read_text().splitlines())}
    done = [labelled[smiles] for smiles in generate.CANDIDATES.read_text().split() if smiles in labelled]
    good = kept(done)
    packed = table(good)
    pq.write_table(
        packed,
        "gtx/data/sets/xtb9.parquet",
        compression="zstd",
        compression_level=19,
        use_dictionary=["split_random", "split_scaffold", "coordinates.list.element"],
        dictionary_pagesize_limit=1 << 20,
        row_group_size=len(good),
        store_schema=True,
    )
    print(Counter(record["status"] for record in done), packed.to_pandas().describe().to_string(), sep="\n")
