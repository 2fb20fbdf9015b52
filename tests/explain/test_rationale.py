"""Rationales: the search finds what is planted, and its cuts are molecules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

import gtx
from gtx.closed_form import fit_closed_form
from gtx.data import featurise
from gtx.errors import InputError
from gtx.explain import find_rationale
from gtx.explain.rationales import Atoms, search
from gtx.models import kernel as ridge
from gtx.molecules import Featuriser, read_smiles, shrink_substructure, substructure_to_smiles
from gtx.prediction import ModelHeader, Predictor
from gtx.tasks import Regression
from tests.tables import molecules

GOLDEN = Path(__file__).parents[1] / "prediction" / "golden"
LARGE = "CC(C)CC(N)c1ccc(CCOC(=O)C2CCC(C#N)CC2)cc1"


@pytest.fixture(scope="module")
def nitriles() -> Predictor:
    """A kernel that has learned to count nitriles, whose truth is known."""
    smiles = molecules(150)["smiles"].tolist()
    smiles += [f"{'C' * n}C#N" for n in range(1, 20)] + [f"N#CC{one}" for one in smiles[:60] if one[0] == "C"]
    nitrile, featuriser = Chem.MolFromSmarts("C#N"), Featuriser(descriptors=False)
    y = [[float(len(read_smiles(one).GetSubstructMatches(nitrile)))] for one in smiles]
    store = featurise(featuriser, smiles, workers=0).store.with_targets(np.array(y))
    task = Regression(("nitriles",)).fitted(store)
    kernel = ridge(1, labels=[[{"radius": 1, "atoms": [0], "bonds": [0]}]])
    fit_closed_form(kernel, task, store)
    spec = {"name": "tanimoto", "arguments": {"out_channels": 1, **kernel.learned_arguments}}
    return Predictor([kernel], ModelHeader(task, featuriser, spec), "cpu")


def test_the_search_finds_what_is_planted_in_bounded_work() -> None:
    mol = read_smiles(LARGE)
    planted = frozenset(mol.GetSubstructMatch(Chem.MolFromSmarts("OC(=O)C")))
    asked: list[Atoms] = []

    def worth(sets: Sequence[Atoms]) -> np.ndarray:
        asked.extend(sets)
        return np.array([float(planted <= atoms) for atoms in sets])

    def look(seed: int) -> dict[Atoms, float]:
        return search(
            worth, lambda atoms: shrink_substructure(mol, atoms), frozenset(range(mol.GetNumAtoms())), 4, 30, seed
        )

    found = look(0)
    smallest = min((atoms for atoms, value in found.items() if value), key=len)
    assert planted <= smallest and len(smallest) <= len(planted) + 6  # of a ring at one of its ends
    assert len(asked) == len(set(asked)) == len(found) < 1500 and min(map(len, found)) >= 4
    assert look(0) == found and list(look(1)) != list(found)


def test_a_trained_models_planted_substructure_is_found(nitriles: Predictor) -> None:
    found = find_rationale(nitriles, LARGE, threshold=0.4, least=2, draws=30)
    assert found.prediction > 0.4 and found.part_prediction >= 0.4 and len(found.atoms) <= 8
    assert set(read_smiles(LARGE).GetSubstructMatch(Chem.MolFromSmarts("C#N"))) <= set(found.atoms.tolist())
    own = nitriles.predict(found.part).nitriles_pred[0]
    assert own == pytest.approx(found.part_prediction) and f"{found.part} ({len(found.atoms)} atoms" in found.text()
    below = find_rationale(nitriles, LARGE, threshold=5.0, least=6, draws=2)
    assert "stays below it" in below.text() and len(below.atoms) == 6
    none = find_rationale(nitriles, LARGE, threshold=0.4, most=1, least=1, draws=1)
    assert none.part is None and "none of at most 1 atoms stays above it" in none.text()


def test_peelings_are_connected_and_take_whole_rings() -> None:
    mol = read_smiles("Cc1ccc2ccccc2c1")  # a methyl group at naphthalene
    atoms = frozenset(range(mol.GetNumAtoms()))
    without_methyl, without_ring = sorted(shrink_substructure(mol, atoms), key=len, reverse=True)
    assert substructure_to_smiles(mol, without_methyl) == "c1ccc2ccccc2c1"
    assert substructure_to_smiles(mol, without_ring) == "Cc1ccccc1"
    assert {len(atoms) for atoms in shrink_substructure(mol, without_methyl)} == {6}
    assert shrink_substructure(read_smiles("C"), frozenset({0})) == []


@pytest.mark.parametrize(
    ("smiles", "left", "expected"),
    [
        ("Cn1cccc1", [1, 2, 3, 4, 5], "c1cc[nH]c1"),
        ("C[N+](C)(C)CC(=O)[O-]", [1, 4, 5, 6, 7], "[NH3+]CC(=O)[O-]"),
        ("Cn1ccccc1=O", [1, 2, 3, 4, 5, 6], "C1=CCNC=C1"),  # what was aromatic by its oxygen alone
        ("C[C@H](O)F", [1, 2, 3], "OCF"),
        ("CC#N", [0, 1], "CC"),
    ],
)
def test_hydrogens_take_the_place_of_what_is_cut(smiles: str, left: list[int], expected: str) -> None:
    assert substructure_to_smiles(read_smiles(smiles), left) == Chem.CanonSmiles(expected)


def test_what_has_no_rationale_is_one_line(nitriles: Predictor) -> None:
    with pytest.raises(InputError, match="threshold: expected a value of nitriles"):
        find_rationale(nitriles, "CCO")
    with pytest.raises(InputError, match="most: expected 4 or more, got 3"):
        find_rationale(nitriles, "CCO", threshold=0, most=3)
    with pytest.raises(InputError, match="task sequence does not support explanations"):
        find_rationale(gtx.load(GOLDEN / "sequence.gtx"), "CCO")
    classes = gtx.load(GOLDEN / "classification.gtx", device="cpu")
    assert find_rationale(classes, "CCCCO", draws=1).threshold == 0.5
