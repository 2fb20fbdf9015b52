"""The bundled data set xtb9: what its card promises holds for every row."""

from __future__ import annotations

import json
from collections import Counter
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
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
RADII = {1: 0.31, 6: 0.76, 7: 0.71, 8: 0.66, 9: 0.57, 16: 1.05, 17: 1.02}  # covalent, Å


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.read_parquet(FILE)


@pytest.fixture(scope="module")
def molecules(frame) -> list[Chem.Mol]:
    return [Chem.MolFromSmiles(smiles) for smiles in frame["smiles"]]


def test_size(frame):
    assert FILE.stat().st_size <= 6e6
    assert 8_000 <= len(frame) <= 12_000


def test_card_is_of_this_file(frame):
    card = FILE.with_suffix(".md").read_text()
    assert f"{len(frame):,} neutral molecules" in card
    assert f"{FILE.stat().st_size:,} bytes" in card
    for name in RANGES:
        x = frame[name]
        assert f"| {x.min():.2f} | {x.mean():.2f} | {x.max():.2f} | {x.std(ddof=0):.2f} |" in card, name


def test_metadata():
    metadata = pq.read_schema(FILE).metadata
    units = json.loads(metadata[b"units"])
    assert {name: units[name] for name in RANGES} == {name: unit for name, (_, _, unit) in RANGES.items()}
    assert {"rdkit", "tblite", "ase"} <= set(json.loads(metadata[b"versions"]))
    assert metadata[b"licence"] == b"CC0-1.0"


def test_smiles_are_canonical_and_unique(frame, molecules):
    assert None not in molecules
    assert [Chem.MolToSmiles(mol) for mol in molecules[::8]] == frame["smiles"].tolist()[::8]
    assert len({Chem.MolToSmiles(mol, isomericSmiles=False) for mol in molecules}) == len(frame)


def test_composition(molecules):
    for mol in molecules:
        assert 2 <= mol.GetNumAtoms() <= 9
        assert {atom.GetSymbol() for atom in mol.GetAtoms()} <= {"C", "N", "O", "F", "S", "Cl"}
        assert not any(atom.GetFormalCharge() or atom.GetNumRadicalElectrons() for atom in mol.GetAtoms())


def test_every_stereocentre_is_marked(molecules):
    """But for nitrogen in a ring of three, which inverts."""
    for mol in molecules:
        centres = Chem.FindMolChiralCenters(mol, includeUnassigned=True, useLegacyImplementation=False)
        unmarked = {mol.GetAtomWithIdx(atom).GetSymbol() for atom, mark in centres if mark == "?"}
        assert unmarked <= {"N"}, Chem.MolToSmiles(mol)


@pytest.mark.parametrize("name", RANGES)
def test_targets(frame, name):
    low, high, _ = RANGES[name]
    assert frame[name].between(low, high).all()
    assert frame[name].std() > 0.5


def test_coordinates_follow_the_smiles(frame, molecules):
    """Bonded atoms are close and others apart only if the order of atoms is that of `AddHs(MolFromSmiles)`."""
    for smiles, mol, flat, count in zip(
        frame["smiles"], molecules, frame["coordinates"], frame["num_atoms"], strict=True
    ):
        full = Chem.AddHs(mol)
        assert full.GetNumAtoms() == count
        positions = np.asarray(flat, dtype=float).reshape(count, 3)
        radii = np.array([RADII[atom.GetAtomicNum()] for atom in full.GetAtoms()])
        distance = np.linalg.norm(positions[:, None] - positions[None], axis=-1)  # (n, n)
        close = distance < 1.25 * (radii[:, None] + radii[None])
        np.fill_diagonal(close, False)
        assert np.array_equal(close, Chem.GetAdjacencyMatrix(full).astype(bool)), smiles


def test_stereochemistry_is_that_of_the_coordinates(frame, molecules):
    for smiles, mol, flat in islice(zip(frame["smiles"], molecules, frame["coordinates"], strict=True), 0, None, 20):
        full = Chem.AddHs(mol)
        full.AddConformer(Chem.Conformer(full.GetNumAtoms()))
        full.GetConformer().SetPositions(np.asarray(flat, dtype=float).reshape(-1, 3))
        Chem.RemoveStereochemistry(full)
        Chem.AssignStereochemistryFrom3D(full)
        params = Chem.RemoveHsParameters()
        params.removeDefiningBondStereo = True
        assert Chem.CanonSmiles(Chem.MolToSmiles(Chem.RemoveHs(full, params))) == smiles


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


def test_the_generator_makes_what_is_bundled(frame):
    """The candidates found first are in the file, but for the few left out in labelling."""
    generate = pytest.importorskip("experiments.xtb9.generate")
    bundled = {Chem.CanonSmiles(smiles, useChiral=0) for smiles in frame["smiles"]}
    found = list(generate.candidates(200))
    assert sum(smiles in bundled for smiles in found) >= 190
