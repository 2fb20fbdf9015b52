"""The order of atoms and bonds in lists: one for every spelling, or a question."""

import random

import numpy as np
import pytest
from rdkit import Chem

from gtx.data import featurise
from gtx.molecules import Featuriser, MoleculeError
from gtx.molecules.graphs import ATOM_INDEX
from gtx.molecules.perception import HYDROGEN_DOUBT, MAP_DOUBT, OrderDoubt, list_order_doubt

MOLECULES = ("CO", "CC(=O)Nc1ccc(O)cc1", "N[C@@H](C)C(=O)O", "C/C=C/C", "C/C=N/C", "OC1CC1F", "[NH4+].[Cl-]")


def elements(smiles: str, **settings) -> tuple[list[int], list[tuple[int, int]]]:
    """Elements of the nodes, and the elements at the ends of each bond, in order."""
    found = Featuriser(descriptors=False, **settings)(smiles)
    of_node = found.atoms[:, ATOM_INDEX["element"]].tolist()
    return of_node, [tuple(sorted((of_node[i], of_node[j]))) for i, j in found.bonds[:, ::2].T.tolist()]


def spelling(smiles: str, seed: int) -> str:
    """A SMILES of the molecule in another order of atoms, with some of its hydrogens written."""
    draw = random.Random(seed)
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    if draw.random() < 0.7:  # only some
        mol = Chem.RWMol(mol)
        bound = [atom for atom in mol.GetAtoms() if atom.GetAtomicNum() == 1]
        for atom in draw.sample(bound, len(bound) // 2):
            atom.SetAtomMapNum(99)
        parameters = Chem.RemoveHsParameters()
        parameters.removeMapped, parameters.removeDefiningBondStereo = False, True
        mol = Chem.RemoveHs(mol, parameters)
        for atom in mol.GetAtoms():
            atom.SetAtomMapNum(0)
    order = list(range(mol.GetNumAtoms()))
    draw.shuffle(order)
    return Chem.MolToSmiles(Chem.RenumberAtoms(mol, order), canonical=False, rootedAtAtom=0)


@pytest.mark.parametrize("fast", ["0", "1"])
@pytest.mark.parametrize("smiles", MOLECULES)
def test_hydrogens_come_last_whichever_are_written(smiles: str, fast: str, monkeypatch) -> None:
    monkeypatch.setenv("GTX_FAST", fast)
    canonical = Featuriser()(smiles)
    for seed in range(8):
        text = spelling(smiles, seed)
        mol = Chem.AddHs(Chem.MolFromSmiles(text))  # what users have: RDKit's own order, of removable hydrogens
        expected = [atom.GetAtomicNum() for atom in mol.GetAtoms()]
        ends = [tuple(sorted((b.GetBeginAtom().GetAtomicNum(), b.GetEndAtom().GetAtomicNum()))) for b in mol.GetBonds()]
        assert elements(text, hydrogens=True) == (expected, ends), text
        found = Featuriser(hydrogens=True)(text)
        degrees = (found.bonds[0][:, None] == np.arange(len(expected))).sum(0)
        assert degrees.tolist() == [atom.GetDegree() for atom in mol.GetAtoms()], text
        assert found.smiles == canonical.smiles
        heavy = [atom.GetAtomicNum() for atom in Chem.MolFromSmiles(text).GetAtoms()]
        assert elements(text)[0] == heavy


@pytest.mark.parametrize(
    ("smiles", "order", "hydrogens", "expected", "bonds"),
    [
        ("[H]OC", "hydrogens-last", True, [8, 6, 1, 1, 1, 1], [(6, 8), (1, 8), (1, 6), (1, 6), (1, 6)]),
        ("[H]OC", "smiles", True, [1, 8, 6, 1, 1, 1], [(1, 8), (6, 8), (1, 6), (1, 6), (1, 6)]),
        ("[H]OC", "smiles", False, [8, 6], [(6, 8)]),
        ("[2H]OC", "hydrogens-last", False, [8, 6, 1], [(6, 8), (1, 8)]),
        ("[H]/N=C/C", "hydrogens-last", False, [7, 6, 6, 1], [(6, 7), (6, 6), (1, 7)]),
        ("[CH3:2][OH:1]", "map", False, [8, 6], [(6, 8)]),
        ("[CH3:2][OH:1]", "smiles", False, [6, 8], [(6, 8)]),
        ("[CH3:2][OH:1]", "map", True, [8, 6, 1, 1, 1, 1], [(6, 8), (1, 6), (1, 6), (1, 6), (1, 8)]),
        ("[C:5]([H:2])([H:1])([H:4])[F:3]", "map", True, [1, 1, 9, 1, 6], [(1, 6), (1, 6), (1, 6), (6, 9)]),
        ("[C:5]([H:2])([H:1])([H:4])[F:3]", "map", False, [9, 6], [(6, 9)]),
        ("[C:1]([H:2])([H:3])([H:4])[F:5]", None, True, [6, 1, 1, 1, 9], [(1, 6), (1, 6), (1, 6), (6, 9)]),
        ("[H]OC", "map", True, [8, 6, 1, 1, 1, 1], [(6, 8), (1, 8), (1, 6), (1, 6), (1, 6)]),  # has no numbers
        ("[H]OC |o1:1|", "hydrogens-last", True, [8, 6, 1, 1, 1, 1], [(6, 8), (1, 8), (1, 6), (1, 6), (1, 6)]),
    ],
)
def test_orders(smiles: str, order: str | None, hydrogens: bool, expected: list[int], bonds: list) -> None:
    assert elements(smiles, hydrogens=hydrogens, atom_order=order) == (expected, bonds)


@pytest.mark.parametrize(
    ("smiles", "hydrogens", "doubt"),
    [
        ("OC", True, None),
        ("[OH]C", True, None),
        ("[H]OC", False, None),
        ("[H]OC", True, HYDROGEN_DOUBT),
        ("CO[H]", True, HYDROGEN_DOUBT),  # the hydrogens of C are not written, and come before it or after
        ("C([H])([H])([H])[H]", True, None),
        ("[H][H]", True, None),
        ("[2H]OC", False, HYDROGEN_DOUBT),
        ("[H]/N=C/C", False, HYDROGEN_DOUBT),
        ("[CH3:1][OH:2]", True, None),
        ("[CH3:2][OH:1]", False, MAP_DOUBT),
        ("[CH3:2]O", False, None),  # not all atoms have a number
        ("[C:1]([H:2])([H:3])([H:4])[F:5]", True, None),
        ("[C:1]([H:3])([H:4])([H:5])[F:2]", True, MAP_DOUBT),
        ("[H]C1CC", True, None),  # an error of its own
    ],
)
def test_an_order_that_is_not_clear_is_told(smiles: str, hydrogens: bool, doubt: OrderDoubt | None) -> None:
    assert list_order_doubt(Featuriser(hydrogens=hydrogens), smiles) == doubt
    assert list_order_doubt(Featuriser(hydrogens=hydrogens, atom_order="smiles"), smiles) is None


def test_mol_blocks_keep_their_order_and_lose_their_numbers() -> None:
    parameters = Chem.SmilesParserParams()
    parameters.removeHs = False
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("[H]OC", parameters))
    assert elements(block, hydrogens=True)[0] == [1, 8, 6, 1, 1, 1]
    assert list_order_doubt(Featuriser(hydrogens=True), block) is None
    mapped = Chem.MolToMolBlock(Chem.MolFromSmiles("[CH3:2][OH:1]"))
    assert Featuriser()(mapped).smiles == "CO"
    assert list_order_doubt(Featuriser(), mapped) == MAP_DOUBT
    assert elements(mapped)[0] == [6, 8] and elements(mapped, atom_order="map")[0] == [8, 6]


@pytest.mark.parametrize(
    ("smiles", "reason"), [("[CH3:2]O", "has none"), ("[CH3:2][OH:2]", "has the map number 2 twice")]
)
def test_map_numbers_that_give_no_order_are_an_error(smiles: str, reason: str) -> None:
    with pytest.raises(MoleculeError, match=reason):
        Featuriser(atom_order="map")(smiles)


def test_coordinates_follow_the_atoms() -> None:
    points = np.float32([[0, 0, 0], [1.4, 0, 0]])
    found = featurise(Featuriser(coordinates=True, atom_order="map"), ["[CH3:2][OH:1]"], [points], workers=0)
    assert found.store.atoms[:, 0].tolist() == [8, 6]
    np.testing.assert_array_equal(found.store.positions, points)  # they are a list of the atoms too
    mol = Chem.AddHs(Chem.MolFromSmiles("CO"))
    text = "[H]OC"
    at = np.float32([[-0.9, 0, 0], [0, 0, 0], [1.4, 0, 0]])
    found = featurise(Featuriser(coordinates=True, hydrogens=True), [text], [at], workers=0)
    assert mol.GetNumAtoms() == 6 and found.store.atoms[:, 0].tolist()[:3] == [8, 6, 1]
    np.testing.assert_array_equal(found.store.positions[:3], at[[1, 2, 0]])
