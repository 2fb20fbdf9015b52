"""CIP labels: right where the literature is clear, and the same however the molecule is written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem
from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers, StereoEnumerationOptions
from rdkit.Chem.inchi import MolToInchiKey

from gtx.molecules import Featuriser, read_smiles
from gtx.molecules import graphs as stereo
from gtx.molecules.graphs import LABEL, assign_stereo_labels

from .rewriting import SYMMETRIC, coloured_graph, labels, rewritings, sample

FEATURISER = Featuriser(descriptors=False)


def key(smiles: str) -> str:
    return MolToInchiKey(Chem.MolFromSmiles(smiles))


def isomers(flat: str, tried: int = 16) -> list[str]:
    """A SMILES of each stereoisomer of `flat`, as InChI tells them apart."""
    options = StereoEnumerationOptions(maxIsomers=tried, unique=False, rand=0)
    written = [Chem.MolToSmiles(mol) for mol in EnumerateStereoisomers(Chem.MolFromSmiles(flat), options)]
    return sorted({key(text): text for text in written}.values())


@pytest.mark.parametrize(
    ("smiles", "atoms", "bonds"),
    [
        ("C[C@H](N)C(=O)O", "S", ""),  # L-alanine
        ("N[C@@H](CS)C(=O)O", "R", ""),  # L-cysteine
        ("OC(=O)[C@H](O)[C@@H](O)C(=O)O", "RR", ""),  # L-tartaric acid
        ("OC(=O)[C@H](O)[C@H](O)C(=O)O", "RS", ""),  # meso-tartaric acid
        ("OC[C@H](O)[C@@H](O)[C@H](O)CO", "RSr", ""),  # xylitol, (2R,3r,4S)
        ("OC[C@H](O)[C@H](O)[C@H](O)CO", "RSs", ""),  # ribitol, (2R,3s,4S)
        ("C/C=C/C", "", "E"),
        ("C/C=C\\C", "", "Z"),
        ("C/C=C/[C@H](O)/C=C\\C", "S", "EZ"),
        ("[2H][C@H](O)C", "S", ""),  # by isotope alone
        ("C[S@](=O)c1ccccc1", "S", ""),
        ("CC(N)C(=O)O", "", ""),
    ],
)
def test_known_labels(smiles: str, atoms: str, bonds: str) -> None:
    assert labels(FEATURISER(smiles)) == (atoms, bonds)


@pytest.mark.parametrize("smiles", ["C[C@H]1CC[C@@H](C)CC1", "C[C@H]1CC[C@H](C)CC1"])
def test_cis_is_s_and_trans_is_r_in_1_4_dimethylcyclohexane(smiles: str) -> None:
    """Which it is, is read off coordinates: cis if both methyls are on the same side of the ring's mean plane."""
    mol = Chem.AddHs(Chem.MolFromSmiles(smiles))
    assert AllChem.EmbedMolecule(mol, randomSeed=7) == 0
    place = mol.GetConformer().GetPositions()
    ring = place[[1, 2, 3, 4, 6, 7]]
    normal = np.linalg.svd(ring - ring.mean(0))[2][2]
    bonds = place[[0, 5]] - place[[1, 4]]
    hydrogens = [
        next(n.GetIdx() for n in mol.GetAtomWithIdx(c).GetNeighbors() if n.GetAtomicNum() == 1) for c in (1, 4)
    ]
    sides = np.sign((bonds - (place[hydrogens] - place[[1, 4]])) @ normal)  # methyl against hydrogen
    assert labels(FEATURISER(smiles))[0] == ("ss" if sides[0] == sides[1] else "rr")


@pytest.mark.parametrize("flat", SYMMETRIC)
def test_symmetric_molecules_keep_their_labels(flat: str) -> None:
    for isomer in isomers(flat):
        molecule = FEATURISER(isomer)
        for written in rewritings(isomer, 6):
            again = FEATURISER(written)
            assert labels(again) == labels(molecule), written
            assert coloured_graph(again) == coloured_graph(molecule), written


@pytest.mark.parametrize(
    ("flat", "count"), [("OC1C(O)C(O)C(O)C(O)C1O", 9), ("CC1CCC(C)CC1", 2), ("OC(C(O)C(=O)O)C(=O)O", 3)]
)
def test_stereoisomers_are_told_apart(flat: str, count: int) -> None:
    """The nine inositols, 1,4-dimethylcyclohexane, tartaric acid."""
    written = isomers(flat, 64)
    assert len({coloured_graph(FEATURISER(isomer)) for isomer in written}) == len(written) == count


@pytest.mark.slow
def test_real_molecules_keep_their_labels(shared_data: Path) -> None:
    texts = sample(shared_data, 60, stereo=True)
    assert len(texts) > 200
    labelled = 0
    for text in texts:
        molecule = FEATURISER(text)
        assert key(molecule.smiles) == key(text)
        labelled += labels(molecule) != ("", "")
        for written in rewritings(text, 2):
            again = FEATURISER(written)
            assert coloured_graph(again) == coloured_graph(molecule), (text, written)
            assert again.smiles == molecule.smiles, (text, written)
    assert labelled > 180


def test_mirror_images_swap_their_labels(shared_data: Path) -> None:
    swap = str.maketrans("RS", "SR")  # r and s are the same in the mirror
    for text in sample(shared_data, 25, stereo=True):
        mol = read_smiles(text)
        for atom in mol.GetAtoms():
            atom.InvertChirality()
        centres, bonds = labels(FEATURISER(text))
        assert labels(FEATURISER(Chem.MolToSmiles(mol))) == ("".join(sorted(centres.translate(swap))), bonds), text


@pytest.mark.parametrize("legacy", [True, False])
def test_the_callers_perception_changes_nothing_and_is_left_alone(legacy: bool) -> None:
    texts = [written for isomer in isomers("FC1C(F)C(F)C(F)C1F") for written in rewritings(isomer, 10)]
    expected = [coloured_graph(FEATURISER(text)) for text in texts]
    before = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(legacy)
    try:
        assert [coloured_graph(FEATURISER(text)) for text in texts] == expected
        assert Chem.GetUseLegacyStereoPerception() is legacy
    finally:
        Chem.SetUseLegacyStereoPerception(before)


def test_what_takes_too_long_is_undecided_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stereo, "_MAX_ITERATIONS", 1)
    molecule = FEATURISER("C/C=C/[C@H]1CC[C@@H](C)CC1")
    assert labels(molecule) == ("??", "?")
    assert molecule.warnings == ("stereochemistry that CIP rules could not name is ignored",)


def test_square_planar_is_said_to_be_ignored() -> None:
    molecule = FEATURISER("N[Pt@SP1](N)(Cl)Cl")
    assert labels(molecule) == ("?", "") and molecule.warnings


def test_labels_of_an_earlier_reading_do_not_linger() -> None:
    mol = read_smiles("C[C@H]1CC[C@@H](C)CC1")
    mol.GetAtomWithIdx(0).SetProp(LABEL, "R")
    assign_stereo_labels(mol)
    assert not mol.GetAtomWithIdx(0).HasProp(LABEL)
