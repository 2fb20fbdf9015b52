"""Clusters of molecules, beside their definition."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit.DataManip.Metric.rdMetricMatrixCalc import GetTanimotoDistMat
from rdkit.ML.Cluster.Butina import ClusterData

from gtx.molecules import butina_clusters, fragments
from gtx.molecules.fragments import morgan_bits
from tests.tables import molecules

SMILES = molecules(60)["smiles"].tolist()


@pytest.fixture(scope="module")
def distance() -> np.ndarray:
    found = np.zeros((60, 60))
    found[np.tril_indices(60, -1)] = GetTanimotoDistMat(morgan_bits(SMILES))
    return found + found.T


def test_clusters_are_those_of_the_distances_that_rdkit_finds(distance: np.ndarray, monkeypatch) -> None:
    monkeypatch.setattr(fragments, "CHUNK", 7)
    for cutoff in (0.4, 0.6, 0.8):
        expected = ClusterData(distance, 60, cutoff, isDistData=True)
        found = butina_clusters(SMILES, cutoff)
        assert [sorted(members) for members in expected] == [np.flatnonzero(found == k).tolist() for k in set(found)]
