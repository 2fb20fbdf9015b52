"""Lists of atoms and bonds in a table: read in the order that the user names, asked for where it is not clear."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

import gtx
from gtx.base.errors import InputError
from gtx.data import FeatureColumns
from gtx.molecules import Featuriser
from gtx.molecules.graphs import ATOM_INDEX
from gtx.prediction import Predictor
from gtx.tasks import Regression
from gtx.training import TrainSettings
from gtx.training_data import DataSettings, load_training_table
from gtx.workflow import train_model
from tests.tables import ALONE, TINY, molecules, write

KEPT = Chem.SmilesParserParams()
KEPT.removeHs = False


def mapped(smiles: str, seed: int) -> tuple[str, list[int]]:
    """The molecule with all hydrogens written and all atoms numbered, in an order of its own; elements by number."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    draw = np.random.default_rng(seed)
    mol = Chem.RenumberAtoms(mol, draw.permutation(mol.GetNumAtoms()).tolist())
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(atom.GetIdx() + 1)
    text = Chem.MolToSmiles(mol, canonical=False, rootedAtAtom=int(draw.integers(mol.GetNumAtoms())))
    return text, [atom.GetAtomicNum() for atom in mol.GetAtoms()]


def written(text: str) -> list[int]:
    """Elements of the atoms of a SMILES, hydrogens included, as written."""
    return [atom.GetAtomicNum() for atom in Chem.MolFromSmiles(text, KEPT).GetAtoms()]


def table(path: Path, elements: Callable[[str, list[int]], list[int]], column: str = "z") -> DataSettings:
    """Mapped molecules with lists of elements."""
    pairs = [mapped(smiles, seed) for seed, smiles in enumerate(molecules(20).smiles)]
    rows = [[text, json.dumps(elements(text, by_number)), len(text)] for text, by_number in pairs]
    task = Regression(column, level="atom")
    return DataSettings(str(write(path, rows, ["smiles", column, "y"])), task=task, workers=0)


def by_number(text: str, elements: list[int]) -> list[int]:
    return elements


def as_written(text: str, elements: list[int]) -> list[int]:
    return written(text)


HYDROGENS = Featuriser(hydrogens=True, descriptors=False)


@pytest.mark.parametrize(("order", "elements"), [("map", by_number), ("smiles", as_written)])
def test_targets_and_features_of_mapped_molecules_reach_their_atoms(tmp_path, order: str, elements: Callable) -> None:
    targets = table(tmp_path / "t.csv", elements)
    features = replace(targets, task=Regression("y"), target_columns=("y",), features=FeatureColumns(atoms=("z",)))
    asked = r't\.csv: row 1, column "smiles", value ".*": its atoms have map numbers in another order .* --atom-order'
    for data in (targets, features):
        with pytest.raises(InputError, match=asked):
            load_training_table(replace(data, featuriser=HYDROGENS))
        store = load_training_table(replace(data, featuriser=replace(HYDROGENS, atom_order=order))).store
        values = store.atom_y if data is targets else store.atom_features
        assert values is not None and len(store) == 20
        np.testing.assert_array_equal(values[:, 0], store.atoms[:, ATOM_INDEX["element"]])


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Predictor:
    folder = tmp_path_factory.mktemp("order")
    data = replace(table(folder / "t.csv", by_number), featuriser=replace(HYDROGENS, atom_order="map"))
    train_model(data, TrainSettings(**TINY), folder / "run", **ALONE)
    return gtx.load(folder / "run" / "model.gtx", "cpu")


@pytest.mark.slow
def test_the_model_remembers_the_order(model: Predictor, tmp_path) -> None:
    assert model.header.featuriser.atom_order == "map"
    text, _ = mapped("CC(=O)N", 3)
    mol = Chem.MolFromSmiles(text, KEPT)
    numbers = np.array([atom.GetAtomMapNum() for atom in mol.GetAtoms()])
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(0)
    plain = replace(model.header, featuriser=replace(model.header.featuriser, atom_order="smiles"))
    expected = json.loads(Predictor(model.members, plain).predict([text]).z_pred[0])  # as written
    found = model.predict([text])
    np.testing.assert_allclose(json.loads(found.z_pred[0]), np.array(expected)[numbers.argsort()], atol=1e-5)
    assert found.warning.isna().all() and found.error.isna().all()
    unmapped = model.predict([mol, "CC(=O)N"])  # an RDKit molecule keeps its order
    np.testing.assert_allclose(json.loads(unmapped.z_pred[0]), expected, atol=1e-5)
    assert len(json.loads(unmapped.z_pred[1])) == len(expected)
    assert "has none" in model.predict(["[CH3:2]O"]).error[0]
    pd.DataFrame({"smiles": [text], "z": [json.dumps(by_number(*mapped("CC(=O)N", 3)))]}).to_csv(tmp_path / "t.csv")
    outcome = model.predict_table(tmp_path / "t.csv", tmp_path / "out.csv")
    error = np.array(by_number(*mapped("CC(=O)N", 3))) - json.loads(found.z_pred[0])
    assert outcome.metrics["rmse"] == pytest.approx(np.sqrt((error**2).mean()), rel=1e-4)


@pytest.mark.slow
def test_a_model_that_was_told_no_order_warns(model: Predictor) -> None:
    header = replace(model.header, featuriser=replace(model.header.featuriser, atom_order=None))
    answers = Predictor(model.members, header).predict(["CO", "[H]OC", "OC", "[CH3:2][OH:1]"])
    lists = [json.loads(text) for text in answers.z_pred]
    np.testing.assert_allclose(lists[1], lists[2], atol=1e-5)  # one order for every spelling
    assert answers.warning.isna().tolist() == [True, False, True, False]
    assert "lists have the hydrogens after the other atoms" in answers.warning[1]
    assert "lists have the atoms as they are written" in answers.warning[3]
