"""CIP labels: right where the literature is clear, and the same however the molecule is written."""

import pytest
from rdkit import Chem
from rdkit.Chem.EnumerateStereoisomers import EnumerateStereoisomers, StereoEnumerationOptions

from gtx.molecules import Featuriser
from gtx.molecules import graphs as stereo
from gtx.molecules.graphs import quietly

from .rewriting import SYMMETRIC, coloured_graph, inchi_key, labels, rewritings

FEATURISER = Featuriser(descriptors=False)


def isomers(flat: str, tried: int = 16) -> list[str]:
    """A SMILES of each stereoisomer of `flat`, as InChI tells them apart."""
    options = StereoEnumerationOptions(maxIsomers=tried, unique=False, rand=0)
    written = [Chem.MolToSmiles(mol) for mol in EnumerateStereoisomers(Chem.MolFromSmiles(flat), options)]
    return sorted({inchi_key(text): text for text in written}.values())


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


@pytest.mark.parametrize("flat", SYMMETRIC)
def test_symmetric_molecules_keep_their_labels(flat: str) -> None:
    for isomer in isomers(flat):
        molecule = FEATURISER(isomer)
        for written in rewritings(isomer, 6):
            assert coloured_graph(FEATURISER(written)) == coloured_graph(molecule), written


@pytest.mark.parametrize(
    ("flat", "count"), [("OC1C(O)C(O)C(O)C(O)C1O", 9), ("CC1CCC(C)CC1", 2), ("OC(C(O)C(=O)O)C(=O)O", 3)]
)
def test_stereoisomers_are_told_apart(flat: str, count: int) -> None:
    """The nine inositols, 1,4-dimethylcyclohexane, tartaric acid."""
    written = isomers(flat, 64)
    assert len({coloured_graph(FEATURISER(isomer)) for isomer in written}) == len(written) == count


@pytest.mark.parametrize("legacy", [True, False])
def test_the_callers_perception_changes_nothing_and_is_left_alone(legacy: bool) -> None:
    texts = [written for isomer in isomers("FC1C(F)C(F)C(F)C1F") for written in rewritings(isomer, 10)]
    expected = [coloured_graph(FEATURISER(text)) for text in texts]
    before = Chem.GetUseLegacyStereoPerception()
    Chem.SetUseLegacyStereoPerception(legacy)
    try:
        assert [coloured_graph(FEATURISER(text)) for text in texts] == expected
        assert Chem.GetUseLegacyStereoPerception() is legacy
        first, second = quietly(), quietly()  # of two threads
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert Chem.GetUseLegacyStereoPerception()
        second.__exit__(None, None, None)
        assert Chem.GetUseLegacyStereoPerception() is legacy
    finally:
        Chem.SetUseLegacyStereoPerception(before)


def test_what_takes_too_long_is_undecided_and_said(monkeypatch) -> None:
    monkeypatch.setattr(stereo, "_MAX_ITERATIONS", 1)
    molecule = FEATURISER("C/C=C/[C@H]1CC[C@@H](C)CC1")
    assert labels(molecule) == ("??", "?")
    assert molecule.warnings == ("stereochemistry that CIP rules could not name is ignored",)


def test_square_planar_is_said_to_be_ignored() -> None:
    molecule = FEATURISER("N[Pt@SP1](N)(Cl)Cl")
    assert labels(molecule) == ("?", "") and molecule.warnings
