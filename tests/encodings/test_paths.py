"""What lies along shortest paths equals what networkx finds by listing them."""

from __future__ import annotations

import itertools

import networkx
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_networkx

from gtx.encodings import ShortestPathBonds, ShortestPathLength, ShortestPathOneHot
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser

BOND_SIZE = Featuriser().bond_sizes[0]


def by_listing(data: Data, length: int, farthest: int) -> torch.Tensor:
    n, bonds = data.num_nodes, to_networkx(data, edge_attrs=["edge_attr"])
    expected = torch.zeros(n, n, length, BOND_SIZE)
    for r in range(n):
        for s in networkx.node_connected_component(bonds.to_undirected(), r) - {r}:
            paths = list(networkx.all_shortest_paths(bonds, r, s))
            d = len(paths[0]) - 1
            if d > farthest:
                continue
            for path in paths:
                for i, bond in enumerate(itertools.pairwise(path[: length + 1])):
                    expected[r, s, i, bonds.edges[bond]["edge_attr"][0]] += 1 / len(paths) / min(d, length)
    return expected.view(n * n, -1)


@pytest.mark.parametrize(("length", "farthest"), [(5, 20), (2, 4)])
def test_edge_path_is_the_mean_over_all_shortest_paths(length: int, farthest: int, batch: Batch) -> None:
    encoding = ShortestPathBonds(BOND_SIZE, length, farthest)
    several = False
    for data in batch.to_data_list():
        _, values = encoding(data, CompleteGraph.from_ptr(torch.tensor([0, data.num_nodes])))
        torch.testing.assert_close(values, by_listing(data, length, farthest))
        several |= bool(((values > 0) & (values < 1 / length - 1e-4)).any())
    assert several  # pairs with more than one shortest path, which differ in their bonds


def test_edge_path_counts_from_the_receiver() -> None:
    chain = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), edge_attr=torch.tensor([[1], [1], [2], [2]]))
    _, values = ShortestPathBonds(3, 2)(chain, CompleteGraph.from_ptr(torch.tensor([0, 3])))
    values = values.view(3, 3, 2, 3)
    assert values[0, 2].tolist() == [[0, 0.5, 0], [0, 0, 0.5]]
    assert values[2, 0].tolist() == [[0, 0, 0.5], [0, 0.5, 0]]
    assert values[0, 1].tolist() == [[0, 1, 0], [0, 0, 0]]


def test_edge_path_wants_sizes() -> None:
    with pytest.raises(ValueError, match="got bond_size=4, length=0, farthest=20"):
        ShortestPathBonds(4, 0)


def test_hop_masks_are_the_distances(batch: Batch) -> None:
    graph = CompleteGraph.from_batch(batch.batch)
    _, masks = ShortestPathOneHot(3)(batch, graph)
    _, distance = ShortestPathLength(30)(batch, graph)
    assert masks.shape[1] == 4
    for k in range(4):
        assert masks[:, k].equal((distance[:, 0] == k).float())
