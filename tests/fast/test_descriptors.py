"""Descriptors from graphs: RDKit's values, to the last bit of a float32, wherever RDKit is not asked itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd

from gtx.fast.atom_properties import find_neighbours
from gtx.fast.descriptors import rotatable, tabulate, unsupported
from gtx.fast.graphs import Graphs, binary
from gtx.molecules import DESCRIPTOR_NAMES, compute_descriptors, read_smiles
from tests.fast.sample_graphs import graphs_of
from tests.molecules.rewriting import CAGES, ODD, SYMMETRIC, sample

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
