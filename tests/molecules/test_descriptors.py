"""Descriptors: RDKit's values, the same however the molecule is written, never a silent zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit.Chem import Crippen, Descriptors
from rdkit.Chem import rdMolDescriptors as rd

from gtx.molecules import DESCRIPTOR_NAMES, Featuriser, read_smiles
from gtx.molecules.descriptors import compute_descriptors

from .rewriting import CAGES, rewritings, sample


def by_name(smiles: str) -> dict[str, float]:
    return dict(zip(DESCRIPTOR_NAMES, compute_descriptors(read_smiles(smiles)).tolist(), strict=True))


def test_values_are_those_of_rdkit() -> None:
    smiles = "CC(=O)Oc1ccccc1C(=O)O"
    mol, ours = read_smiles(smiles), by_name(smiles)
    for name, theirs in {
        "amw": Descriptors.MolWt(mol),
        "tpsa": Descriptors.TPSA(mol),
        "labuteASA": Descriptors.LabuteASA(mol),
        "NumHBD": Descriptors.NumHDonors(mol),
        "SlogP_VSA2": Descriptors.SlogP_VSA2(mol),
        "SMR_VSA10": Descriptors.SMR_VSA10(mol),
        "PEOE_VSA1": Descriptors.PEOE_VSA1(mol),
        "kappa1": Descriptors.Kappa1(mol),
        "MQN12": mol.GetNumHeavyAtoms(),
        "CrippenLogP_heavy": sum(logp for logp, _ in Crippen._GetAtomContribs(mol)),
    }.items():
        assert ours[name] == pytest.approx(theirs, rel=1e-5), name


def test_order_of_atoms_changes_nothing(shared_data: Path) -> None:
    """Differences in units of each descriptor's spread over these molecules; bins of VSA could jump."""
    texts = [*CAGES, *sample(shared_data, 50, stereo=False, seed=2)]
    pairs = [(text, written) for text in texts for written in rewritings(text, 1)]
    ours = np.array([[compute_descriptors(read_smiles(text)) for text in pair] for pair in pairs])
    spread = np.nanstd(ours[:, 0], axis=0)
    assert len(pairs) > 190 and (np.isnan(ours[:, 0]) == np.isnan(ours[:, 1])).all()
    difference = np.nanmax(np.abs(ours[:, 0] - ours[:, 1]), axis=0)
    assert (difference <= 1e-5 * spread).all(), np.array(DESCRIPTOR_NAMES)[difference > 1e-5 * spread]


@pytest.mark.parametrize("smiles", ["C[Se]C", "C[Hg]C", "*CC", "N->[Pt]"])
def test_no_charges_is_nan_and_a_warning(smiles: str) -> None:
    values = by_name(smiles)
    assert {name for name, value in values.items() if np.isnan(value)} == {f"PEOE_VSA{i}" for i in range(1, 15)}
    assert Featuriser()(smiles).warnings == ("descriptors RDKit cannot compute: PEOE_VSA",)


def test_a_counter_ion_costs_no_descriptor() -> None:
    assert np.isfinite(compute_descriptors(read_smiles("CC(=O)[O-].[Na+]"))).all()


def test_values_are_those_of_rdkit_for_real_molecules(shared_data: Path) -> None:
    """Every descriptor by RDKit's function for it alone."""
    names = [name for name in DESCRIPTOR_NAMES if not name.startswith(("Crippen", "SlogP", "SMR", "PEOE", "MQN"))]
    properties = rd.Properties(names)
    texts = [*sample(shared_data, 60, stereo=False, seed=7), "[2H]C([2H])O", "CC[S+5]", "[W-6].CCO", "C" * 300]
    for text in texts:
        mol = read_smiles(text)
        theirs = [
            *properties.ComputeProperties(mol),
            *np.sum(rd._CalcCrippenContribs(mol), 0),
            *rd.SlogP_VSA_(mol),
            *rd.SMR_VSA_(mol),
            *rd.PEOE_VSA_(mol),
            *rd.MQNs_(mol),
        ]
        ours = compute_descriptors(mol)
        known = np.isfinite(ours)
        np.testing.assert_allclose(ours[known], np.float32(theirs)[known], rtol=2e-7, atol=1e-6, err_msg=text)
        assert (ours[known] == np.float32(theirs)[known]).mean() > 0.98
