"""Compiled graphs and descriptors against their definitions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd

from gtx.fast import graphs as columns
from gtx.fast.atom_properties import find_neighbours
from gtx.fast.descriptors import rotatable, tabulate, unsupported
from gtx.fast.graphs import Graphs, binary, form_version
from gtx.fast.perception import encode_labels
from gtx.molecules import BOND_FEATURE_VALUES, DESCRIPTOR_NAMES, Featuriser, read_smiles
from gtx.molecules.descriptors import compute_descriptors
from gtx.molecules.graphs import bond_edge_index, encode_atoms, encode_bonds
from gtx.molecules.reading import read_molblock
from tests.fast.sample_graphs import graphs_of
from tests.molecules.rewriting import CAGES, ODD, SYMMETRIC, sample

# --- RDKit's binary form, decoded by compiled code, equals RDKit's getters.


PEPTIDE = "N[C@@H](C)C(=O)" * 60 + "O"  # more than 255 atoms
USUAL = ["CC(=O)Oc1ccccc1C(=O)O", "C[C@H](N)/C=C/C", "[Na+].[Cl-]", "C[N+](C)(C)CC(=O)[O-]", "C"]
UNUSUAL = ["*CC", "[13CH4]", PEPTIDE]


def check(mols: Sequence[Chem.Mol]) -> int:
    """Compare graphs with RDKit's getters; return the number of molecules compared."""
    usual, graphs = graphs_of(mols)
    for k, mol in enumerate(usual):
        atoms, bonds = graphs.codes(k)
        first, last = graphs.atom_ptr[k : k + 2]
        tags = [int(atom.GetChiralTag()) for atom in mol.GetAtoms()]
        assert ((atoms[:, 7] == 0) == np.array(tags, bool)).all()
        assert (bonds[:, 1] == 0).tolist() == [
            bond.GetStereo() != Chem.BondStereo.STEREONONE for bond in mol.GetBonds()
        ]
        encode_labels(mol, atoms, bonds)
        assert np.array_equal(atoms, encode_atoms(mol)) and np.array_equal(bonds.repeat(2, 0), encode_bonds(mol))
        ends, info = graphs.ends[slice(*graphs.bond_ptr[k : k + 2])], mol.GetRingInfo()
        assert ends.T.tolist() == bond_edge_index(mol)[:, ::2].tolist()
        rings = [graphs.member_ptr[r : r + 2] for r in range(*graphs.ring_ptr[k : k + 2])]
        assert [graphs.rings[slice(*ring)].tolist() for ring in rings] == [list(ring) for ring in info.AtomRings()]
        assert graphs.atom_rings[first:last].tolist() == [info.NumAtomRings(i) for i in range(len(atoms))]
        for i, atom in enumerate(mol.GetAtoms(), first):
            near = slice(*graphs.near_ptr[i : i + 2])
            assert graphs.near_atoms[near].tolist() == [other.GetIdx() for other in atom.GetNeighbors()]
            assert graphs.near_bonds[near].tolist() == [bond.GetIdx() for bond in atom.GetBonds()]
    return len(usual)


@pytest.mark.parametrize("text", [*ODD, *CAGES, *SYMMETRIC, *UNUSUAL, "F/C=C/F", "[13CH3:7]C", "C[C@H]([2H])O"])
def test_odd_molecules(text: str) -> None:
    mol = read_smiles(text)
    assert check([mol, Chem.AddHs(mol)]) == (
        0 if text in UNUSUAL or "[2H]" in text or "[13C" in text or "*" in text else 2
    )


def test_real_molecules(shared_data: Path) -> None:
    texts = [*sample(shared_data, 40, stereo=False, seed=3), *sample(shared_data, 20, stereo=True, seed=4)]
    mols = [read_smiles(text) for text in texts]
    assert check(mols) > 230
    assert check([read_molblock(Chem.MolToMolBlock(mol)) for mol in mols]) > 230


def test_no_molecules() -> None:
    usual, graphs = Graphs.read([])
    assert usual == 0 and [len(array) for array in graphs] == [0] * 4 + [1] * 5 + [0] * 5


def test_stereo_that_is_left_open() -> None:
    crossed = Chem.MolToMolBlock(read_smiles("CC=CC")).replace("  2  3  2  0", "  2  3  2  3")
    mol = read_molblock(crossed)
    assert check([mol]) == 0 and mol.GetBondWithIdx(1).GetStereo() == Chem.BondStereo.STEREOANY  # refers to no atoms
    featuriser = Featuriser(descriptors=False)
    assert (featuriser(crossed).bond_codes[:, list(BOND_FEATURE_VALUES).index("stereo")] == 1).all()


def test_most_molecules_take_the_fast_way_and_the_rest_the_plain_one() -> None:
    for text in USUAL:
        assert Graphs.read([binary(read_smiles(text))])[0] == 1
    for text in UNUSUAL:
        mol = read_smiles(text)
        assert Graphs.read([binary(read_smiles("C")), binary(mol), binary(mol)])[0] == 1


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


# --- Descriptors from graphs: RDKit's values, to the last bit of a float32, wherever RDKit is not asked itself.


RINGS = [
    "C1CCC2(CC1)CCCC2", "C1CC2CC1C=C2", "C1CC2CCC1N2", "c1ccc2[nH]ccc2c1", "C1CO1", "C1=CC=CC=CC=C1", "C1CC12CC2",
    "O=C1C=CC(=O)C=C1", "C1CC2(C1)CC1(CC1)C2", "C1CC2CC(C1)C2", "c1ccc2c(c1)CC1CC2CN1",
]  # fmt: skip
"""Spiro atoms, bridgeheads, rings of every kind."""

POLAR = [
    "CC#N", "C=N", "CN", "C=[NH2+]", "C[NH3+]", "CN=C", "C[N+]#[C-]", "CN=[N+]=[N-]", "C1CN1", "CNC", "C[NH+]=C",
    "C[NH2+]C", "c1ccncc1", "c1cc[nH]c1", "c1cc[nH+]cc1", "CN1CC1", "CN(C)C", "CN(=O)=O", "C[N+](C)=C", "C[NH+](C)C",
    "Cn1cccc1", "c1ccc2cccn2c1", "c1cc2ccccn2c1", "C[n+]1ccccc1", "C[N+](C)(C)C", "C=O", "CO", "C[O-]", "C1CO1", "COC",
    "c1ccoc1", "[OH3+]", "C[OH2+]", "[NH4+]", "[NH2-]", "[n-]1cccc1", "O=n1ccccc1", "[BH4-]", "[AlH4-]", "[Si-2](C)C",
]  # fmt: skip
"""Nitrogen and oxygen by all rows of the table of Ertl and others; more hydrogens than outer electrons."""


def test_compiled_values_are_those_of_rdkit(shared_data: Path) -> None:
    real = [*sample(shared_data, 150, stereo=False, seed=7), *sample(shared_data, 30, stereo=True, seed=8)]
    mols = [read_smiles(text) for text in (*real, *ODD, *CAGES, *SYMMETRIC, *RINGS, *POLAR, "C" * 300)]
    mols, graphs = graphs_of(mols)
    assert unsupported(graphs).mean() < 0.1
    for mol, ours in zip(mols, tabulate(graphs, mols), strict=True):
        theirs = compute_descriptors(mol)
        assert np.array_equal(ours, theirs, equal_nan=True), (
            Chem.MolToSmiles(mol),
            np.array(DESCRIPTOR_NAMES)[ours != theirs],
        )


@pytest.mark.parametrize("smiles", ["[2H]C", "[H][H]", "*C", "C[Se]C", "C$C", "C:C", "[W-6].C", "N->[Pt]", "CC[S+5]"])
def test_out_of_the_ordinary_is_asked_of_rdkit(smiles: str) -> None:
    usual, graphs = Graphs.read([binary(read_smiles(smiles))])
    assert usual == 0 or unsupported(graphs)[0]


def graphs(texts: Sequence[str]) -> tuple[list[Chem.Mol], Graphs]:
    return graphs_of([read_smiles(text) for text in texts])


@pytest.mark.parametrize(
    ("smiles", "count"),
    [
        ("CCCC", 1),
        ("CC", 0),
        ("CCC#CCC", 0),
        ("FC(F)(F)CCC", 1),
        ("CC(C)(C)CCC", 1),
        ("CC(=O)NC", 0),
        ("CC(=O)OCC", 1),
        ("c1ccccc1-c1ccccc1", 1),
        ("C1CCCCC1", 0),
        ("CC(=O)SCC", 1),
    ],
)
def test_bonds_that_turn(smiles: str, count: int) -> None:
    _, together = graphs([smiles])
    assert (
        rotatable(together, find_neighbours(together)).sum() == count == rd.CalcNumRotatableBonds(read_smiles(smiles))
    )
