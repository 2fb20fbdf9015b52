"""Clusters and the order of Kennard and Stone, beside their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit.DataManip.Metric.rdMetricMatrixCalc import GetTanimotoDistMat
from rdkit.ML.Cluster.Butina import ClusterData

from gtx.molecules import butina_clusters, fragments, morgan_bits, order_by_kennard_stone
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


def test_the_next_of_kennard_and_stone_is_furthest_from_all_before(distance: np.ndarray) -> None:
    order = order_by_kennard_stone(SMILES, 60)
    assert sorted(order) == list(range(60)) and order_by_kennard_stone(SMILES, 20) == order[:20]
    assert distance[order[0], order[1]] == distance.max()
    for k in range(2, 60):
        to_nearest = distance[:, order[:k]].min(1)
        assert to_nearest[order[k]] == pytest.approx(np.delete(to_nearest, order[:k]).max(), abs=1e-9)
