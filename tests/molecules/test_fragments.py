"""Fingerprints, scaffolds and clusters, beside their definitions."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors
from rdkit.DataManip.Metric.rdMetricMatrixCalc import GetTanimotoDistMat
from rdkit.ML.Cluster.Butina import ClusterData

from gtx.molecules import MoleculeError, butina_clusters, morgan_counts, murcko_scaffold, read_smiles
from gtx.molecules.descriptors import morgan_bits
from tests.tables import molecules

from .rewriting import ODD, rewritings, sample

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def test_counts_are_those_of_rdkit_folded_whatever_the_order_of_atoms() -> None:
    """The unfolded fingerprint of the older interface, folded here."""
    for radius, bits in ((2, 2048), (1, 64)):
        unfolded = rdMolDescriptors.GetMorganFingerprint(Chem.MolFromSmiles(ASPIRIN), radius).GetNonzeroElements()
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
