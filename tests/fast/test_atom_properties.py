"""Contributions to logP, partial charges and surfaces of atoms: RDKit's, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors, rdPartialCharges

from gtx.fast.atom_properties import PARAMETERS, RADII, charges, crippen, find_neighbours, surfaces
from gtx.fast.graphs import CHARGE, ELEMENT, HYBRIDISATION, NEUTRAL
from gtx.molecules import read_smiles
from tests.fast.sample_graphs import graphs_of
from tests.molecules.rewriting import CAGES, ODD, SYMMETRIC, sample

HYDROGEN = Chem.MolFromSmarts("[#1]")

RARE = [
    "CC(C)(C)C", "C=C=C", "CC(=O)C=N", "C#CC#N", "Cc1ccccc1", "Cc1ccncc1", "CCc1ccccc1", "CC(C)c1ccco1",
    "c1ccccc1[SiH3]", "Fc1ccccc1Cl", "Brc1ccccc1I", "c1ccc2ccccc2c1", "c1ccccc1-c1ccccc1", "Nc1ccccc1O",
    "Sc1ccccc1", "O=c1cccc[nH]1", "C=Cc1ccccc1", "C=C(c1ccccc1)c1ccncc1", "C[SiH3]", "CNC", "CNc1ccccc1",
    "CN(C)c1ccccc1", "c1ccccc1N(c1ccccc1)c1ccccc1", "C=N", "CC=NC", "CC#N", "C[NH3+]", "C[NH+](C)C",
    "C[n+]1ccccc1", "C[N+](C)(C)C", "C[N+](=O)[O-]", "C[N+]#[C-]", "CN=[N+]=[N-]", "C[N-]C", "O", "CO", "COC",
    "COc1ccccc1", "CN=O", "O=S(C)C", "C[S+](C)[O-]", "CC(=O)[O-]", "C[O-]", "C=O", "CC=O", "CC(C)=O", "NC=O",
    "O=C=O", "O=Cc1ccccc1", "CC(=O)c1ccccc1", "NC(N)=O", "COC(=O)OC", "O=C(c1ccccc1)c1ccccc1", "[F-]", "[I+]",
    "[Na+]", "[Na]", "CP(C)C", "CS", "CSC", "C[S-]", "CC(=S)N", "CS(=N)C", "c1ccsc1", "C[Zn]C", "[Hf]",
    "[Sb]", "[Xe]", "CC(C)(C)c1ccccc1", "CC(C)(C)O", "CN(C)C", "N", "CP(C)(C)=O",
]  # fmt: skip
"""Between them every type of the table but those of hydrogen."""


def both(texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The contributions of all atoms of some molecules, ours and RDKit's."""
    mols, graphs = graphs_of([read_smiles(text) for text in texts])
    ours = np.stack(crippen(graphs, find_neighbours(graphs)), 1)
    theirs = [pair for mol in mols for pair in rdMolDescriptors._CalcCrippenContribs(mol)]
    return ours, np.array(theirs)


@pytest.mark.parametrize("text", [*RARE, *SYMMETRIC])
def test_rows_of_the_table(text: str) -> None:
    ours, theirs = both([text])
    assert np.array_equal(ours, theirs), np.flatnonzero((ours != theirs).any(1))


def test_all_types_are_tried() -> None:
    types: set[str] = set()
    for text in RARE:
        mol = read_smiles(text)
        labels = [""] * mol.GetNumAtoms()
        rdMolDescriptors._CalcCrippenContribs(mol, False, [0] * len(labels), labels)
        types.update(labels)
    numbered = {f"{element}{i}" for element, most in (("C", 27), ("N", 14), ("O", 12)) for i in range(1, most + 1)}
    assert numbered | {"CS", "NS", "OS", "F", "Cl", "Br", "I", "Hal", "P", "S1", "S2", "S3", "Me1", "Me2"} <= types


def test_real_molecules_all_at_once(shared_data: Path) -> None:
    texts = sample(shared_data, 250, stereo=False, seed=5)
    ours, theirs = both([text for text in texts if not Chem.MolFromSmiles(text).HasSubstructMatch(HYDROGEN)])
    assert len(ours) > 15_000 and np.array_equal(ours, theirs)


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


def test_surfaces_are_those_of_rdkit(shared_data: Path) -> None:
    mols = [read_smiles(text) for text in (*ODD, *CAGES, "C:C", *sample(shared_data, 100, stereo=False, seed=8))]
    mols, graphs = graphs_of(mols)
    surface, whole = surfaces(graphs, RADII)
    assert np.array_equal(surface, [area for mol in mols for area in rdMolDescriptors._CalcLabuteASAContribs(mol)[0]])
    assert np.array_equal(whole, [rdMolDescriptors.CalcLabuteASA(mol) for mol in mols])
