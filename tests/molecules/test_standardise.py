"""Standardising: what goes, what stays, and that the order of atoms has no say."""

from __future__ import annotations

import pytest
from rdkit import Chem

from gtx.molecules import read_smiles
from gtx.molecules.reading import standardise_molecule

from .rewriting import rewritings


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("[Na+].CC(=O)[O-]", "CC(=O)O"),
        ("C[NH3+].[Cl-]", "CN"),
        ("[NH3+]CC(=O)[O-]", "NCC(=O)O"),
        ("c1cc[nH+]cc1", "c1ccncc1"),
        ("OP([O-])(=O)[O-].[Ca+2]", "O=P(O)(O)O"),
        ("C[N+](C)(C)CC(=O)[O-]", "C[N+](C)(C)CC(=O)[O-]"),
        ("C[N+](C)(C)C.[Br-]", "C[N+](C)(C)C"),
        ("O=[N+]([O-])c1ccccc1", "O=[N+]([O-])c1ccccc1"),
        ("C[C@H]([NH3+])C(=O)[O-]", "C[C@H](N)C(=O)O"),
        ("[2H]C([2H])[NH3+]", "[2H]C([2H])N"),
        ("O=c1cc[nH]cc1", "O=c1cc[nH]cc1"),
        ("CCO.OCC", "CCO"),
        ("[Fe+2]", "[Fe+2]"),
        ("*", "*"),
    ],
)
def test_standardised(smiles: str, expected: str) -> None:
    for written in (smiles, *rewritings(smiles, 4)):
        assert Chem.MolToSmiles(standardise_molecule(read_smiles(written))) == expected


def test_the_molecule_itself_is_left_alone() -> None:
    mol = read_smiles("C[NH3+].[Cl-]")
    standardise_molecule(mol)
    assert Chem.MolToSmiles(mol) == "C[NH3+].[Cl-]"
