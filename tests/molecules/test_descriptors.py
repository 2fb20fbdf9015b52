"""Descriptors, fingerprints and keys: RDKit's values, the same however the molecule is written, no silent zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors, MACCSkeys
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem.Descriptors import CalcMolDescriptors

from gtx.base.errors import InputError
from gtx.molecules import DESCRIPTOR_NAMES, Featuriser, morgan_counts, read_smiles
from gtx.molecules.descriptors import (
    LEFT_OUT,
    MOLECULE_FEATURES,
    RDKIT_DESCRIPTORS,
    compute_descriptors,
    rdkit_descriptors,
)
from gtx.molecules.perception import featurise_texts
from tests.molecules_for_tests import SMILES
from tests.tables import molecules

from .rewriting import CAGES, rewritings, sample


def test_order_of_atoms_changes_nothing(shared_data: Path) -> None:
    """Differences in units of each descriptor's spread over these molecules; bins of VSA could jump."""
    texts = [*CAGES, *sample(shared_data, 20, stereo=False, seed=2)]
    pairs = [(text, written) for text in texts for written in rewritings(text, 1)]
    ours = np.array([[compute_descriptors(read_smiles(text)) for text in pair] for pair in pairs])
    spread = np.nanstd(ours[:, 0], axis=0)
    assert len(pairs) > 80 and (np.isnan(ours[:, 0]) == np.isnan(ours[:, 1])).all()
    difference = np.nanmax(np.abs(ours[:, 0] - ours[:, 1]), axis=0)
    assert (difference <= 1e-5 * spread).all(), np.array(DESCRIPTOR_NAMES)[difference > 1e-5 * spread]


@pytest.mark.parametrize("smiles", ["C[Se]C", "C[Hg]C", "*CC", "N->[Pt]"])
def test_no_charges_is_nan_and_a_warning(smiles: str) -> None:
    values = dict(zip(DESCRIPTOR_NAMES, compute_descriptors(read_smiles(smiles)).tolist(), strict=True))
    assert {name for name, value in values.items() if np.isnan(value)} == {f"PEOE_VSA{i}" for i in range(1, 15)}
    assert Featuriser()(smiles).warnings == ("descriptors RDKit cannot compute: PEOE_VSA",)


def test_a_counter_ion_costs_no_descriptor() -> None:
    assert np.isfinite(compute_descriptors(read_smiles("CC(=O)[O-].[Na+]"))).all()


def test_values_are_those_of_rdkit() -> None:
    """Every descriptor by RDKit's function for it alone."""
    names = [name for name in DESCRIPTOR_NAMES if not name.startswith(("Crippen", "SlogP", "SMR", "PEOE", "MQN"))]
    properties = rd.Properties(names)
    texts = [*SMILES, *molecules(200).smiles, "[2H]C([2H])O", "CC[S+5]", "[W-6].CCO", "C" * 300]
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


# --- Further features of a molecule, by name.


ALL = tuple(MOLECULE_FEATURES)


def test_further_features_are_those_of_rdkit_and_follow_the_descriptors() -> None:
    found = featurise_texts(Featuriser(molecule_features=ALL), SMILES)
    plain = featurise_texts(Featuriser(), SMILES)
    width = plain.descriptors.shape[1]
    assert np.array_equal(found.descriptors[:, :width], plain.descriptors, equal_nan=True)
    mols = [Chem.MolFromSmiles(text) for text in SMILES]
    place = width + 2048 + 167 + RDKIT_DESCRIPTORS.index("TPSA")
    assert np.array_equal(found.descriptors[:, width : width + 2048], morgan_counts(SMILES))
    keys = [list(MACCSkeys.GenMACCSKeys(mol)) for mol in mols]
    assert np.array_equal(found.descriptors[:, width + 2048 :][:, :167], keys)
    assert np.allclose(found.descriptors[:, place], [Descriptors.TPSA(mol) for mol in mols])


def test_further_features_do_not_depend_on_hydrogens_or_on_how_a_molecule_is_written() -> None:
    one = Featuriser(molecule_features=ALL, descriptors=False)
    other = Featuriser(molecule_features=ALL, descriptors=False, hydrogens=True)
    assert np.allclose(one("c1ccccc1O").descriptors, one("Oc1ccccc1").descriptors, rtol=1e-5)
    assert np.allclose(one("c1ccccc1O").descriptors, other("Oc1ccccc1").descriptors, rtol=1e-5)


def test_a_text_at_fault_and_an_unknown_name() -> None:
    featuriser = Featuriser(molecule_features=["maccs"], descriptors=False)
    found = featurise_texts(featuriser, ["CCO", "C1CC", "CC"])
    assert found.descriptors.shape == (2, 167) and [bool(error) for error in found.errors] == [False, True, False]
    assert featurise_texts(featuriser, []).descriptors.shape == (0, 167)
    assert Featuriser.from_dict(featuriser.to_dict()) == featuriser
    assert featuriser.hash != Featuriser(descriptors=False).hash
    with pytest.raises(InputError, match="no molecule features 'mordred'; gtx has morgan, maccs, rdkit"):
        Featuriser(molecule_features=["mordred"])


@pytest.mark.parametrize("text", ["CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CC(=O)[O-]", "C", "F[P-](F)(F)(F)(F)F.[Na+]"])
def test_named_descriptors_are_those_of_rdkit(text: str) -> None:
    mol = Chem.MolFromSmiles(text)
    wanted = CalcMolDescriptors(Chem.MolFromSmiles(text))
    assert set(wanted) == {*RDKIT_DESCRIPTORS, *LEFT_OUT}
    found = dict(zip(RDKIT_DESCRIPTORS, rdkit_descriptors(mol), strict=True))
    for name, value in found.items():
        assert value == pytest.approx(wanted[name], nan_ok=True) or not np.isfinite(wanted[name]), name


def test_what_rdkit_cannot_compute_is_nan() -> None:
    found = dict(zip(RDKIT_DESCRIPTORS, rdkit_descriptors(Chem.MolFromSmiles("N[Pt](N)(Cl)Cl")), strict=True))
    assert np.isnan(found["MaxPartialCharge"])  # Gasteiger has no parameters for it
    assert found["MolWt"] == pytest.approx(298.04, abs=0.1)
