"""Atom and bond codes: against values known from chemistry, against OGB's own, and whatever the order of atoms."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from gtx.molecules import (
    ATOM_FEATURE_VALUES,
    BOND_FEATURE_VALUES,
    Featuriser,
    bond_edge_index,
    encode_atoms,
    encode_bonds,
    read_smiles,
)

from .rewriting import CAGES, ODD, coloured_graph, rewritings, sample

FEATURISER = Featuriser(descriptors=False)


@cache
def atom_table(smiles: str) -> np.ndarray:
    return encode_atoms(read_smiles(smiles))


def atoms(smiles: str, column: str) -> list:
    """Values of one column; None for other."""
    values = (None, *ATOM_FEATURE_VALUES[column])
    return [values[code] for code in atom_table(smiles)[:, list(ATOM_FEATURE_VALUES).index(column)]]


def bonds(smiles: str, column: str) -> list:
    values = (None, *BOND_FEATURE_VALUES[column])
    return [values[code] for code in encode_bonds(read_smiles(smiles))[::2, list(BOND_FEATURE_VALUES).index(column)]]


@pytest.mark.parametrize(
    ("smiles", "column", "expected"),
    [
        ("CC(=O)[O-]", "element", [6, 6, 8, 8]),
        ("*[Og]", "element", [None, 118]),
        ("CC(=O)[O-]", "charge", [0, 0, 0, -1]),
        ("[Fe+3].[C-7]", "charge", [3, None]),
        ("CC(=O)O", "hydrogens", [3, 0, 0, 1]),
        ("CC(C)(C)C", "degree", [1, 4, 1, 1, 1]),
        ("CC#CC=C", "hybridisation", ["SP3", "SP", "SP", "SP2", "SP2"]),
        ("FS(F)(F)(F)(F)F", "hybridisation", ["SP3", "SP3D2"] + ["SP3"] * 5),
        ("c1cc[nH]c1C", "aromatic", [True] * 5 + [False]),
        ("C1CC1C2CCCC2C", "ring", [3, 3, 3, 5, 5, 5, 5, 5, 0]),
        ("C1CCC1CC12CCCCC1CC2", "ring", [4, 4, 4, 4, 0, 4, 6, 6, 6, 6, 4, 4, 4]),
        ("C" * 3 + "1" + "C" * 22 + "C1", "ring", [0, 0] + [24] * 24),
        ("C1" + "C" * 23 + "C1", "ring", [None] * 25),
        ("[CH3].[O][O].[CH2]", "radical", [1, 1, 1, 2]),
        ("[13CH4].C", "isotope", [True, False]),
        ("C[N+](C)(C)C", "hydrogens", [3, 0, 3, 3, 3]),
    ],
)
def test_atom_columns(smiles: str, column: str, expected: list) -> None:
    assert atoms(smiles, column) == expected


@pytest.mark.parametrize(
    ("smiles", "column", "expected"),
    [
        ("C=CC#N", "type", ["DOUBLE", "SINGLE", "TRIPLE"]),
        ("C1=CC=CC=C1C", "type", ["AROMATIC"] * 5 + ["SINGLE", "AROMATIC"]),
        ("N->[Pt]", "type", ["DATIVE"]),
        ("C$C", "type", [None]),
        ("C=CC=CCC", "conjugated", [True, True, True, False, False]),
        ("C1CC1C", "ring", [True, True, False, True]),
    ],
)
def test_bond_columns(smiles: str, column: str, expected: list) -> None:
    assert sorted(map(str, bonds(smiles, column))) == sorted(map(str, expected))


def test_bonds_go_both_ways() -> None:
    mol = read_smiles("CC(=O)Oc1ccccc1C(=O)O")
    ends, codes = bond_edge_index(mol), encode_bonds(mol)
    assert ends.dtype == np.int32 and codes.dtype == np.uint8 and ends.shape == (2, len(codes)) == (2, 26)
    assert (ends[:, ::2] == ends[::-1, 1::2]).all() and (codes[::2] == codes[1::2]).all()
    assert {frozenset(pair) for pair in ends.T.tolist()} == {
        frozenset((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())) for bond in mol.GetBonds()
    }


@pytest.mark.parametrize("text", [*ODD, "C"])
def test_shapes_and_ranges_of_odd_molecules(text: str) -> None:
    molecule = FEATURISER(text)
    n = len(molecule.atoms)
    assert molecule.atoms.shape == (n, len(ATOM_FEATURE_VALUES)) and molecule.bonds.shape == (
        2,
        len(molecule.bond_codes),
    )
    assert molecule.bond_codes.shape[1] == len(BOND_FEATURE_VALUES)
    assert all(array.flags.writeable for array in molecule[:3])  # or torch.from_numpy would complain
    assert (molecule.atoms < FEATURISER.atom_sizes).all() and (molecule.bond_codes < FEATURISER.bond_sizes).all()
    assert molecule.bonds.size == 0 or molecule.bonds.max() < n


@pytest.mark.parametrize("text", [*CAGES, *ODD])
def test_cages_and_odd_molecules_however_written(text: str) -> None:
    molecule = FEATURISER(text)
    for written in rewritings(text, 8):
        assert coloured_graph(FEATURISER(written)) == coloured_graph(molecule), written


@pytest.mark.slow
def test_real_molecules_however_written(shared_data: Path) -> None:
    with_hydrogens = Featuriser(descriptors=False, hydrogens=True)
    for text in sample(shared_data, 60, stereo=False, seed=1):
        mol = read_smiles(text)
        kekulised = Chem.Mol(mol)
        Chem.Kekulize(kekulised, clearAromaticFlags=True)
        styles = [
            Chem.MolToSmiles(kekulised, kekuleSmiles=True, canonical=False),
            Chem.MolToSmiles(mol, allHsExplicit=True, allBondsExplicit=True),
            Chem.MolToSmiles(Chem.AddHs(mol)),
            *rewritings(text, 1),
        ]
        for written in styles:
            assert coloured_graph(FEATURISER(written)) == coloured_graph(FEATURISER(text)), (text, written)
        graphs = {coloured_graph(with_hydrogens(written)) for written in (text, *styles)}
        assert len(graphs) == 1, text


@pytest.mark.slow
def test_ogb_has_the_same_features(shared_data: Path) -> None:
    """ESOL as the Open Graph Benchmark featurised it (ogb.utils.features), atom by atom in the order of the SMILES."""
    folder = shared_data / "ogb" / "ogbg_molesol"
    charges, hybridisations = range(-5, 6), ("SP", "SP2", "SP3", "SP3D", "SP3D2")
    types = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")

    def table(name: str) -> list[list[str]]:
        with gzip.open(folder / name, "rt") as file:
            return list(csv.reader(file))

    nodes, edges, ends = (iter(table(f"raw/{name}.csv.gz")) for name in ("node-feat", "edge-feat", "edge"))
    counts = zip(table("raw/num-node-list.csv.gz"), table("raw/num-edge-list.csv.gz"), strict=True)
    molecules = table("mapping/mol.csv.gz")[1:]
    assert len(molecules) == 1128
    for (_, smiles, _), ((n,), (m,)) in zip(molecules, counts, strict=True):
        mol = read_smiles(smiles)
        seen = [
            [atoms_by[name][i] for name in ("element", "degree", "charge", "hydrogens", "radical", "hybridisation")]
            + [atoms_by["aromatic"][i], atoms_by["ring"][i] > 0]
            for atoms_by in [{name: atoms(smiles, name) for name in ATOM_FEATURE_VALUES}]
            for i in range(mol.GetNumAtoms())
        ]
        theirs = [
            [z + 1, degree - hydrogens, charges[q], hydrogens, radical, hybridisations[h], bool(aromatic), bool(ring)]
            for z, _, degree, q, hydrogens, radical, h, aromatic, ring in (
                map(int, row) for row in islice(nodes, int(n))
            )
        ]
        assert seen == theirs, smiles
        ours = dict(
            zip(
                map(frozenset, bond_edge_index(mol).T[::2].tolist()),
                zip(bonds(smiles, "type"), bonds(smiles, "conjugated"), strict=True),
                strict=True,
            )
        )
        theirs = {
            frozenset(map(int, pair)): (types[int(row[0])], row[2] == "1")
            for pair, row in zip(islice(ends, int(m)), islice(edges, int(m)), strict=True)
        }
        assert ours == theirs, smiles
