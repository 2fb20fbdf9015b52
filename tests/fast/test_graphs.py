"""What the compiled way reads of RDKit's binary form itself, and what it leaves to RDKit."""

from __future__ import annotations

import pytest
from rdkit import Chem

from gtx.fast import graphs as columns
from gtx.fast.descriptors import unsupported
from gtx.fast.graphs import Graphs, binary, form_version
from gtx.molecules import BOND_FEATURE_VALUES, Featuriser, read_smiles
from gtx.molecules.reading import read_molblock
from tests.tables import molecules

PEPTIDE = "N[C@@H](C)C(=O)" * 60 + "O"  # more than 255 atoms


def test_most_molecules_take_the_fast_way_and_the_rest_the_plain_one() -> None:
    forms = [binary(read_smiles(text)) for text in (*molecules(100).smiles, "C[C@H](N)/C=C/C", "[Na+].[Cl-]")]
    usual, graphs = Graphs.read(forms)
    assert usual == len(forms) and unsupported(graphs).mean() < 0.1
    for text in ("*CC", "[13CH4]", PEPTIDE):
        mol = read_smiles(text)
        assert Graphs.read([binary(read_smiles("C")), binary(mol), binary(mol)])[0] == 1


def test_no_molecules() -> None:
    usual, graphs = Graphs.read([])
    assert usual == 0 and [len(array) for array in graphs] == [0] * 4 + [1] * 5 + [0] * 4


@pytest.mark.parametrize("smiles", ["[2H]C", "[H][H]", "*C", "C$C", "C:C", "[W-6].C", "N->[Pt]", "CC[S+5]"])
def test_out_of_the_ordinary_is_asked_of_rdkit(smiles: str) -> None:
    usual, graphs = Graphs.read([binary(read_smiles(smiles))])
    assert usual == 0 or unsupported(graphs)[0]


def test_stereo_that_is_left_open() -> None:
    crossed = Chem.MolToMolBlock(read_smiles("CC=CC")).replace("  2  3  2  0", "  2  3  2  3")
    mol = read_molblock(crossed)
    assert mol.GetBondWithIdx(1).GetStereo() == Chem.BondStereo.STEREOANY  # refers to no atoms
    assert Graphs.read([binary(mol)])[0] == 0
    featuriser = Featuriser(descriptors=False)
    assert (featuriser(crossed).bond_codes[:, list(BOND_FEATURE_VALUES).index("stereo")] == 1).all()


@pytest.mark.parametrize("place", [0, 8, 12])
def test_another_version_of_the_form_is_left_alone(place: int) -> None:
    assert form_version() == columns.VERSION
    form = bytearray(binary(read_smiles("C[C@H](N)C(=O)O")))
    form[place] += 1
    assert Graphs.read([bytes(form)])[0] == 0


def test_a_form_cut_short_is_left_alone() -> None:
    """Wherever it ends: nothing beyond it is read."""
    mol = read_smiles("F/C=C/[C@H]1CC[C@@H](C(=O)[O-])CC1")
    form, end = binary(mol), None
    for length in range(len(form)):
        usual, _ = Graphs.read([form[:length], form])
        end = length if usual and end is None else end
        assert usual == 0 or end <= length, length
    rings = 1 + 4 + 7  # their mark, how many, the one: its size and atoms
    assert end == form.index(bytes([66, 1, 0, 0, 0, 6])) + rings
