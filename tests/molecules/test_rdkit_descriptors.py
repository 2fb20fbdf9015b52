"""RDKit's descriptors: its own values under its own names."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem.Descriptors import CalcMolDescriptors

from gtx.molecules.descriptors import LEFT_OUT, RDKIT_DESCRIPTORS, rdkit_descriptors


@pytest.mark.parametrize("text", ["CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CC(=O)[O-]", "C", "F[P-](F)(F)(F)(F)F.[Na+]"])
def test_values_are_those_of_rdkit(text):
    mol = Chem.MolFromSmiles(text)
    wanted = CalcMolDescriptors(Chem.MolFromSmiles(text))
    assert set(wanted) == {*RDKIT_DESCRIPTORS, *LEFT_OUT}
    found = dict(zip(RDKIT_DESCRIPTORS, rdkit_descriptors(mol), strict=True))
    for name, value in found.items():
        assert value == pytest.approx(wanted[name], nan_ok=True) or not np.isfinite(wanted[name]), name


def test_what_rdkit_cannot_compute_is_nan():
    found = dict(zip(RDKIT_DESCRIPTORS, rdkit_descriptors(Chem.MolFromSmiles("N[Pt](N)(Cl)Cl")), strict=True))
    assert np.isnan(found["MaxPartialCharge"])  # Gasteiger has no parameters for it
    assert found["MolWt"] == pytest.approx(298.04, abs=0.1)
