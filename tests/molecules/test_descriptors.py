"""Descriptors, fingerprints, keys, scaffolds and clusters: RDKit's values, however the molecule is written."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import Descriptors, MACCSkeys
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.DataManip.Metric.rdMetricMatrixCalc import GetTanimotoDistMat
from rdkit.ML.Cluster.Butina import ClusterData

from gtx.base.errors import InputError
from gtx.molecules import (
    DESCRIPTOR_NAMES,
    Featuriser,
    MoleculeError,
    butina_clusters,
    morgan_counts,
    murcko_scaffold,
    read_smiles,
)
from gtx.molecules.descriptors import (
    LEFT_OUT,
    MOLECULE_FEATURES,
    RDKIT_DESCRIPTORS,
    compute_descriptors,
    morgan_bits,
    rdkit_descriptors,
)
from gtx.molecules.perception import featurise_texts
from tests.molecules_for_tests import SMILES
from tests.tables import molecules

from .rewriting import CAGES, ODD, rewritings, sample


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
    assert np.isfinite(compute_descriptors(read_smiles("CC(=O)[O-].[Na+]"))).all()  # a counter-ion costs none


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


NO_CHARGES = "N[Pt](N)(Cl)Cl"  # Gasteiger has no parameters for it


@pytest.mark.parametrize("text", ["CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CC(=O)[O-]", "C", NO_CHARGES])
def test_named_descriptors_are_those_of_rdkit(text: str) -> None:
    mol = Chem.MolFromSmiles(text)
    wanted = Descriptors.CalcMolDescriptors(Chem.MolFromSmiles(text))
    assert set(wanted) == {*RDKIT_DESCRIPTORS, *LEFT_OUT}
    found = dict(zip(RDKIT_DESCRIPTORS, rdkit_descriptors(mol), strict=True))
    for name, value in found.items():
        assert value == pytest.approx(wanted[name], nan_ok=True) or not np.isfinite(wanted[name]), name
    assert np.isnan(found["MaxPartialCharge"]) == (text == NO_CHARGES) and np.isfinite(found["MolWt"])


# --- Fingerprints, scaffolds and clusters, beside their definitions.


ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def test_counts_are_those_of_rdkit_folded_whatever_the_order_of_atoms() -> None:
    """The unfolded fingerprint of the older interface, folded here."""
    for radius, bits in ((2, 2048), (1, 64)):
        unfolded = rd.GetMorganFingerprint(Chem.MolFromSmiles(ASPIRIN), radius).GetNonzeroElements()
        expected = np.zeros(bits, int)
        for number, count in unfolded.items():
            expected[number % bits] += count
        ours = morgan_counts([ASPIRIN, "C", *rewritings(ASPIRIN, 5)], radius, bits)
        assert ours.dtype == np.uint8 and ours.shape == (7, bits)
        assert (ours[[0, *range(2, 7)]] == expected).all()
    assert morgan_counts(["C" * 400], radius=0).max() == 255  # cut, and not wrapped
    assert morgan_counts([]).shape == (0, 2048)


def test_a_table_of_one_column_and_rdkits_molecules_are_read_and_nonsense_is_not() -> None:
    plain = morgan_counts([ASPIRIN, "CCO"])
    table = pd.DataFrame({"smiles": [ASPIRIN, "CCO"]})
    mols = [Chem.MolFromSmiles(text) for text in table.smiles]
    for given in (table, table.smiles, table.to_numpy(), mols, np.array(mols, object)[:, None]):
        np.testing.assert_array_equal(morgan_counts(given), plain)
    with pytest.raises(MoleculeError, match=r"a table of one column, got one of shape \[2, 2\]"):
        morgan_counts(table.assign(y=1))
    with pytest.raises(MoleculeError, match=r"^number 1, counted from 0: 'C1CC' cannot be read: .*unclosed ring"):
        morgan_counts(["C", "C1CC"])
    with pytest.raises(MoleculeError, match=r"expected SMILES \[n\], got one text, 'CCO'"):
        morgan_counts("CCO")
    for gap in (None, float("nan"), 5):
        with pytest.raises(MoleculeError, match=rf"^number 1, counted from 0: {gap} cannot be read: the text is empty"):
            morgan_counts(["C", gap])


@pytest.mark.parametrize(
    ("smiles", "expected"),
    [
        ("CCO", ""),
        ("CCc1ccccc1CCO", "c1ccccc1"),
        ("c1ccccc1CCCN1CCNCC1", "c1ccc(CCCN2CCNCC2)cc1"),
        ("O=C1CCCCC1C", "O=C1CCCCC1"),
        ("C[C@H]1CC[C@@H](C)CC1", "C1CCCCC1"),
        ("C/C=C1/CCC(C)C1", "C=C1CCCC1"),
        ("c1ccccc1.[Na+]", "c1ccccc1"),
    ],
)
def test_known_scaffolds(smiles: str, expected: str) -> None:
    assert murcko_scaffold(smiles) == murcko_scaffold(read_smiles(smiles)) == expected


def test_every_real_molecule_has_a_scaffold_however_written(shared_data: Path) -> None:
    for text in [*ODD, *sample(shared_data, 10, stereo=False, seed=3)]:
        assert {murcko_scaffold(written) for written in (text, *rewritings(text, 2))} == {murcko_scaffold(text)}, text
    with pytest.raises(MoleculeError, match="unclosed ring"):
        murcko_scaffold("C1CC")


def test_clusters_are_those_of_the_distances_that_rdkit_finds() -> None:
    texts, distance = molecules(60)["smiles"].tolist(), np.zeros((60, 60))
    distance[np.tril_indices(60, -1)] = GetTanimotoDistMat(morgan_bits(texts))
    for cutoff in (0.4, 0.6, 0.8):
        expected = ClusterData(distance + distance.T, 60, cutoff, isDistData=True)
        found = butina_clusters(texts, cutoff)
        assert [sorted(members) for members in expected] == [np.flatnonzero(found == k).tolist() for k in set(found)]
