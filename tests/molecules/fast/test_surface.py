"""Surfaces of atoms and molecules: RDKit's, to the last bit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rdkit.Chem import rdMolDescriptors as rd

from gtx.molecules import read_smiles
from gtx.molecules.fast.surface import RADII, surfaces
from tests.molecules.rewriting import CAGES, ODD, sample

from .usual import graphs_of


def test_surfaces_are_those_of_rdkit(shared_data: Path) -> None:
    mols = [read_smiles(text) for text in (*ODD, *CAGES, "C:C", *sample(shared_data, 100, stereo=False, seed=8))]
    mols, graphs = graphs_of(mols)
    surface, whole = surfaces(graphs, RADII)
    assert np.array_equal(surface, [area for mol in mols for area in rd._CalcLabuteASAContribs(mol)[0]])
    assert np.array_equal(whole, [rd.CalcLabuteASA(mol) for mol in mols])
