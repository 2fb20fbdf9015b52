"""Partial charges: RDKit's, to the last bit, for neutral molecules of the usual elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit.Chem import rdPartialCharges

from gtx.molecules import read_smiles
from gtx.molecules.binary import parts_of
from gtx.molecules.charges import PARAMETERS, charges
from gtx.molecules.graphs import Graphs
from gtx.molecules.neighbours import Atoms

from .rewriting import CAGES, sample

NEUTRAL = 5  # code


def test_charges_are_those_of_rdkit(shared_data: Path) -> None:
    mols = [
        read_smiles(text) for text in (*CAGES, "C", "O", "CP(C)(C)=O", *sample(shared_data, 100, stereo=False, seed=9))
    ]
    parts = [parts_of(mol) for mol in mols]
    graphs = Graphs.join(parts)
    ours = np.split(charges(graphs, Atoms(graphs)), np.cumsum(graphs.atom_counts)[:-1])
    compared, kinds = 0, set()
    for mol, part, charge in zip(mols, parts, ours, strict=True):
        here = set(zip(part.of_atoms("element"), part.of_atoms("hybridisation"), strict=True))
        if here <= PARAMETERS.keys() and set(part.of_atoms("charge")) == {NEUTRAL}:
            rdPartialCharges.ComputeGasteigerCharges(mol)
            assert charge.tolist() == [atom.GetDoubleProp("_GasteigerCharge") for atom in mol.GetAtoms()]
            compared, kinds = compared + 1, kinds | here
    assert compared > 200 and len(kinds) > 12


@pytest.mark.parametrize("smiles", ["C", "CC(=O)O", "c1ccncc1"])
def test_with_its_hydrogens_a_molecule_is_neutral(smiles: str) -> None:
    """What the nodes lack or have too much is on hydrogens: more electronegative elements are the more negative."""
    mol = read_smiles(smiles)
    graphs = Graphs.join([parts_of(mol)])
    charge = charges(graphs, Atoms(graphs))
    assert (charge[graphs.atoms[:, 0] > 6] < 0).all() and -1 < charge.sum() < 0
