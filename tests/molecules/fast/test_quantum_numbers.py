"""Molecular quantum numbers: RDKit's, all 42, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd

from gtx.molecules import read_smiles
from gtx.molecules.fast.graphs import Graphs
from gtx.molecules.fast.neighbours import look
from gtx.molecules.fast.quantum_numbers import quantum_numbers, rotatable
from tests.molecules.rewriting import CAGES, ODD, SYMMETRIC, sample

from .usual import graphs_of


def graphs(texts: Sequence[str]) -> tuple[list[Chem.Mol], Graphs]:
    return graphs_of([read_smiles(text) for text in texts])


@pytest.mark.parametrize("texts", [CAGES, SYMMETRIC, [*ODD, "C:C"]], ids=["cages", "symmetric", "odd"])
def test_odd_molecules(texts: list[str]) -> None:
    mols, together = graphs(texts)
    theirs = [rd.MQNs_(mol) for mol in mols]
    assert np.array_equal(quantum_numbers(together, look(together)), theirs)


def test_real_molecules(shared_data: Path) -> None:
    texts = sample(shared_data, 250, stereo=False, seed=6)
    mols, together = graphs(texts)
    ours, theirs = quantum_numbers(together, look(together)), np.array([rd.MQNs_(mol) for mol in mols])
    assert np.array_equal(ours, theirs), np.unique(np.nonzero(ours != theirs)[1] + 1)
    assert len(np.flatnonzero(theirs.any(0))) > 38  # nearly all of them are seen


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
    assert rotatable(together, look(together)).sum() == count == rd.CalcNumRotatableBonds(read_smiles(smiles))
