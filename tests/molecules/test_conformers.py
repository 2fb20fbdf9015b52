"""Conformers: the same however a molecule is written, of its stereochemistry; NaN and a reason where there is none."""

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from gtx.molecules import ATOM_FEATURE_VALUES, Featuriser, Molecule, coordinates, make_conformer, read_smiles
from tests.molecules_for_tests import SMILES

from .rewriting import CAGES, rewritings, sample

MADE = Featuriser(conformers=True)
NODES = Featuriser(conformers=True, hydrogens=True)
ELEMENT = list(ATOM_FEATURE_VALUES).index("element")
ALANINE = "C[C@H](N)C(=O)O"


def distances(molecule: Molecule) -> list[tuple[int, int, float]]:
    """Every pair as its elements and its distance, sorted: what no numbering of the atoms changes."""
    elements = molecule.atoms[:, ELEMENT].astype(int)
    apart = np.linalg.norm(molecule.positions[:, None] - molecule.positions, axis=-1)
    apart = np.where(np.isnan(apart), -1.0, apart.round(3)).tolist()
    pairs = [(i, j) for i in range(len(elements)) for j in range(i)]
    return sorted((*sorted((elements[i], elements[j])), apart[i][j]) for i, j in pairs)


@pytest.mark.slow
def test_the_way_of_writing_does_not_matter(shared_data: Path) -> None:
    for text in [*SMILES[:4], *CAGES[:2], *sample(shared_data, 1, stereo=True)]:
        expected = distances(NODES(text))
        for written in rewritings(text, 2):
            assert distances(NODES(written)) == expected, (text, written)


def test_positions_belong_to_their_atoms() -> None:
    """Bonded atoms are as far apart as bonds are long, and no others are so close."""
    for text in [ALANINE, SMILES[0], SMILES[3], *rewritings(SMILES[4], 2)]:
        molecule = NODES(text)
        apart = np.linalg.norm(molecule.positions[:, None] - molecule.positions, axis=-1)
        bonded = np.zeros(apart.shape, bool)
        bonded[tuple(molecule.bonds)] = True
        assert apart[bonded].min() > 0.9 and apart[bonded].max() < 1.65
        assert apart[~bonded & ~np.eye(len(apart), dtype=bool)].min() > 1.5


def test_hydrogens_change_nothing_for_the_others() -> None:
    for text in [SMILES[0], SMILES[2], *SMILES[4:6], SMILES[7], "[H]OC([H])=O"]:
        bare, full = MADE(text), NODES(text)
        heavy = full.atoms[:, ELEMENT] > 1
        assert np.array_equal(full.positions[heavy], bare.positions, equal_nan=True)
        assert bare.warnings == full.warnings


@pytest.mark.parametrize("text", ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "F/C=C/F", "F/C=C\\F", SMILES[4]])
def test_stereochemistry_is_that_of_the_text(text: str) -> None:
    mol = Chem.AddHs(read_smiles(text))
    conformer = Chem.Conformer(mol.GetNumAtoms())
    conformer.SetPositions(make_conformer(mol).positions.astype(float))
    mol.AddConformer(conformer)
    given = Chem.MolToSmiles(Chem.RemoveHs(mol))
    Chem.AssignStereochemistryFrom3D(mol)
    assert Chem.MolToSmiles(Chem.RemoveHs(mol)) == given


def test_given_coordinates_win() -> None:
    mol = Chem.AddHs(Chem.MolFromSmiles(ALANINE))
    assert AllChem.EmbedMolecule(mol, randomSeed=1) == 0
    places = mol.GetConformer().GetPositions()
    space = Featuriser(coordinates=True)
    assert np.array_equal(MADE(ALANINE, places).positions, space(ALANINE, places).positions)
    block = Chem.MolToMolBlock(mol)
    assert np.array_equal(MADE(block).positions, space(block).positions)
    AllChem.Compute2DCoords(mol)  # a drawing is not a conformer
    assert distances(MADE(Chem.MolToMolBlock(mol))) == distances(MADE(ALANINE))


def test_only_the_largest_part_has_positions() -> None:
    molecule = MADE("[Na+].CC(=O)[O-].O")
    assert np.isnan(molecule.positions).all(axis=1).tolist() == [True, False, False, False, False, True]
    assert molecule.warnings[-1] == "one of 3 parts has a conformer; distances to and in the others are unknown"
    for text in ("c1ccncc1.Cl", "Cl.c1ccncc1"):  # "Cl.c1ccncc1" is canonical
        assert np.isfinite(MADE(text).positions).all(axis=1).sum() == 6
    assert np.isfinite(MADE("CCO.CCO").positions).all(axis=1).sum() == 3


@pytest.mark.slow
def test_no_conformer_leaves_the_molecule_and_says_why(monkeypatch) -> None:
    impossible = "C[C@]12C[C@@]1(C)C2"  # centres that no cage of this kind can have
    failures = {
        "ETKDG gave up after 40 attempts, most often at: ": MADE(impossible),
        "it has 512 atoms with its hydrogens; the limit is 500": MADE("C" * 170),
    }
    monkeypatch.setattr(coordinates, "_SECONDS", 1)
    monkeypatch.setattr(coordinates, "_ATTEMPTS", 1_000_000)
    failures["ETKDG took longer than 1 s"] = MADE(impossible)
    for reason, molecule in failures.items():
        assert np.isnan(molecule.positions).all() and molecule.positions.shape == (len(molecule.atoms), 3)
        assert molecule.warnings[-1].startswith(f"no conformer could be made: {reason}")
        assert molecule.warnings[-1].endswith("; distances are unknown")


def test_another_force_field_is_said() -> None:
    assert MADE("B1OBOBO1").warnings[-1] == "the conformer is minimised in UFF, as MMFF94 lacks parameters"
    assert MADE("*CC").warnings[-1] == "the conformer is not minimised, as MMFF94 and UFF lack parameters"
    assert not MADE("CCO").warnings and not MADE("[He]").warnings
