"""RDKit's binary form of a molecule, in compiled code, says what its getters say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from gtx.molecules import ATOM_COLUMNS, BOND_COLUMNS, binary, graphs, read_molblock, read_smiles
from gtx.molecules.binary import decode
from gtx.molecules.features import plain_parts
from gtx.molecules.graphs import Graphs

from .rewriting import CAGES, ODD, SYMMETRIC, sample

PEPTIDE = "N[C@@H](C)C(=O)" * 60 + "O"  # more than 255 atoms
USUAL = ["CC(=O)Oc1ccccc1C(=O)O", "C[C@H](N)/C=C/C", "[Na+].[Cl-]", "C[N+](C)(C)CC(=O)[O-]", "C"]
UNUSUAL = ["*CC", "[13CH4]", PEPTIDE]


def plainly(mols: Sequence[Chem.Mol]) -> Graphs:
    """By RDKit's getters alone."""
    pieces = [graphs._arrays(plain_parts(mol)) for mol in mols]
    return Graphs.from_arrays(*graphs._join(pieces))


def same(one: Graphs, other: Graphs) -> bool:
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("text", [*ODD, *CAGES, *SYMMETRIC, *UNUSUAL, "F/C=C/F", "[13CH3:7]C", "C[C@H]([2H])O"])
def test_odd_molecules_by_either_way(text: str) -> None:
    mol = read_smiles(text)
    for form in (mol, Chem.AddHs(mol)):
        assert same(Graphs.of([form]), plainly([form]))


def test_real_molecules_by_either_way(shared_data: Path) -> None:
    texts = [*sample(shared_data, 100, stereo=False, seed=3), *sample(shared_data, 50, stereo=True, seed=4)]
    mols = [read_smiles(text) for text in texts]
    assert same(Graphs.of(mols), plainly(mols))
    mols = [read_molblock(Chem.MolToMolBlock(mol)) for mol in mols]
    assert same(Graphs.of(mols), plainly(mols))


def test_unusual_molecules_among_others_keep_their_place() -> None:
    texts = [UNUSUAL[0], *USUAL, *UNUSUAL, USUAL[0], UNUSUAL[1]]
    mols = [read_smiles(text) for text in texts]
    assert same(Graphs.of(mols), plainly(mols))
    assert same(Graphs.join([Graphs.of(mols[:4]), Graphs.of(mols[4:5]), Graphs.of(mols[5:])]), plainly(mols))
    assert [len(array) for array in Graphs.of([])] == [0] * 5 + [1] * 5 + [0] * 5


def test_stereo_that_is_left_open() -> None:
    crossed = Chem.MolToMolBlock(read_smiles("CC=CC")).replace("  2  3  2  0", "  2  3  2  3")
    mol = read_molblock(crossed)
    mol.GetBondWithIdx(0).SetStereo(Chem.BondStereo.STEREOANY)  # refers to no atoms
    found = Graphs.of([mol])
    assert same(found, plainly([mol])) and 0 in found.bonds[:, list(BOND_COLUMNS).index("stereo")]


def test_most_molecules_take_the_fast_way_and_the_rest_the_plain_one() -> None:
    for text in USUAL:
        assert decode([binary.binary(read_smiles(text))])[0] == 1
    for text in UNUSUAL:
        mol = read_smiles(text)
        assert decode([binary.binary(read_smiles("C")), binary.binary(mol), binary.binary(mol)])[0] == 1


@pytest.mark.parametrize("place", [0, 8, 12])
def test_another_version_of_the_form_is_left_alone(place: int) -> None:
    form = bytearray(binary.binary(read_smiles("C[C@H](N)C(=O)O")))
    form[place] += 1
    assert decode([bytes(form)])[0] == 0


def test_a_form_cut_short_is_left_alone() -> None:
    """Wherever it ends: nothing beyond it is read."""
    mol = read_smiles("F/C=C/[C@H]1CC[C@@H](C(=O)[O-])CC1")
    form, end = binary.binary(mol), None
    for length in range(len(form)):
        usual, _ = decode([form[:length], form])
        end = length if usual and end is None else end
        assert usual == 0 or end <= length, length
    rings = 1 + 4 + 7  # their mark, how many, the one: its size and atoms
    assert end == form.index(bytes([66, 1, 0, 0, 0, 6])) + rings


def test_columns_stand_where_the_compiled_code_puts_them() -> None:
    assert list(ATOM_COLUMNS) == [
        *("element", "charge", "hydrogens", "degree", "hybridisation", "aromatic"),
        *("ring", "chirality", "radical", "isotope"),
    ]
    assert list(BOND_COLUMNS) == ["type", "stereo", "conjugated", "ring"]
    assert ATOM_COLUMNS["charge"].index(0) == 4 and ATOM_COLUMNS["chirality"] == ("none", "R", "S", "r", "s")
    assert ATOM_COLUMNS["element"][0] == 1 and ATOM_COLUMNS["hydrogens"][0] == ATOM_COLUMNS["degree"][0] == 0
    assert ATOM_COLUMNS["hybridisation"][1:4] == ("SP", "SP2", "SP3") and ATOM_COLUMNS["ring"][:2] == (0, 3)
    assert BOND_COLUMNS["type"][:4] == ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
    assert all(columns[name] == (False, True) for columns, name in ((ATOM_COLUMNS, "aromatic"), (BOND_COLUMNS, "ring")))
