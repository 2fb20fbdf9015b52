"""Partial charges: RDKit's, to the last bit, formal charges or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit.Chem import rdPartialCharges

from gtx.molecules import read_smiles
from gtx.molecules.fast.charges import PARAMETERS, charges
from tests.molecules.rewriting import CAGES, ODD, sample

from .usual import graphs_of

ELEMENT, CHARGE, HYBRIDISATION = 0, 1, 4
NEUTRAL = 5  # code
CHARGED = [
    "CC(=O)[O-]", "C[N+](=O)[O-]", "NC(N)=[NH2+]", "[O-]C(=O)C=CC(=O)[O-]", "C[n+]1ccccc1", "[O-]c1ccccc1[N+](=O)[O-]",
    "[NH3+]CC(=O)[O-]", "[O-]S(=O)(=O)C", "CP(=O)([O-])[O-]", "C[N+](C)(C)C.[Cl-]", "[O-][N+]([O-])=[N+]([O-])[O-]",
    "c1cc[n-]c1", "[CH2-]C=[NH+]C", "C[B-](C)(C)C", "C[Si](C)(C)O", "B(O)(O)c1ccccc1",
]  # fmt: skip
"""Shared by two or three ends, of both signs, left where they are."""


def test_charges_are_those_of_rdkit(shared_data: Path) -> None:
    real = sample(shared_data, 100, stereo=False, seed=9)
    mols = [read_smiles(text) for text in (*CAGES, *ODD, *CHARGED, "C", "O", "CP(C)(C)=O", *real)]
    mols, graphs = graphs_of(mols)
    ours = np.split(charges(graphs, PARAMETERS), graphs.atom_ptr[1:-1])
    compared, charged, kinds = 0, 0, set()
    for k, (mol, charge) in enumerate(zip(mols, ours, strict=True)):
        atoms, _ = graphs.codes(k)
        here = set(zip(atoms[:, ELEMENT].tolist(), atoms[:, HYBRIDISATION].tolist(), strict=True))
        if all(PARAMETERS[kind].any() for kind in here) and atoms[:, CHARGE].all():
            rdPartialCharges.ComputeGasteigerCharges(mol)
            assert charge.tolist() == [atom.GetDoubleProp("_GasteigerCharge") for atom in mol.GetAtoms()], k
            compared, charged, kinds = compared + 1, charged + (atoms[:, CHARGE] != NEUTRAL).any(), kinds | here
    assert compared > 250 and charged > 50 and len(kinds) > 14


@pytest.mark.parametrize("smiles", ["C", "CC(=O)O", "c1ccncc1"])
def test_with_its_hydrogens_a_molecule_is_neutral(smiles: str) -> None:
    """What the nodes lack or have too much is on hydrogens: more electronegative elements are the more negative."""
    _, graphs = graphs_of([read_smiles(smiles)])
    charge = charges(graphs, PARAMETERS)
    assert (charge[graphs.atoms[:, ELEMENT] > 6] < 0).all() and -1 < charge.sum() < 0
