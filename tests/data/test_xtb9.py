"""The bundled data set xtb9: what its card promises holds for every row."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem.Scaffolds.MurckoScaffold import MurckoScaffoldSmiles

import gtx

pytestmark = pytest.mark.slow

FILE = Path(gtx.__file__).parent / "data" / "sets" / "xtb9.parquet"
RANGES = {  # loose: a unit mistaken for another falls outside
    "gap": (0, 20, "eV"),
    "dipole": (0, 15, "debye"),
    "atomisation": (200, 4000, "kcal/mol"),
    "solvation_water": (-30, 5, "kcal/mol"),
    "solvation_octanol": (-30, 5, "kcal/mol"),
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.read_parquet(FILE)


@pytest.fixture(scope="module")
def molecules(frame) -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(smiles) for smiles in frame["smiles"]]


def test_card_is_of_this_file(frame):
    card = FILE.with_suffix(".md").read_text()
    assert f"{len(frame):,} neutral molecules" in card
    assert f"{FILE.stat().st_size:,} bytes" in card
    for name in RANGES:
        x = frame[name]
        assert f"| {x.min():.2f} | {x.mean():.2f} | {x.max():.2f} | {x.std(ddof=0):.2f} |" in card, name


def test_smiles_are_canonical_and_unique(frame, molecules):
    assert None not in molecules
    assert [Chem.MolToSmiles(mol) for mol in molecules[::8]] == frame["smiles"].tolist()[::8]
    assert len({Chem.MolToSmiles(mol, isomericSmiles=False) for mol in molecules}) == len(frame)


@pytest.mark.parametrize("name", ["split_random", "split_scaffold"])
def test_splits_are_80_10_10(frame, name):
    sizes, tenth = Counter(frame[name]), len(frame) / 10
    assert set(sizes) == {"train", "val", "test"}
    assert sizes["train"] == pytest.approx(8 * tenth, abs=2)
    assert sizes["val"] == pytest.approx(tenth, abs=2)


def test_no_scaffold_in_two_splits(frame, molecules):
    scaffolds = [MurckoScaffoldSmiles(mol=mol, includeChirality=False) for mol in molecules]
    assert frame.groupby(scaffolds)["split_scaffold"].nunique().max() == 1
    rings = np.array([mol.GetRingInfo().NumRings() for mol in molecules])
    assert set(frame.loc[rings == 0, "split_scaffold"]) == {"train"}
