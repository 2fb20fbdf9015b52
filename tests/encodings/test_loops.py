"""What compiled loops find on a processor is what the definitions in tensor operations give, to rounding."""

from __future__ import annotations

import pytest
import torch
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from gtx.encodings import (
    BondFeatures,
    Encoding,
    RandomWalkProbabilities,
    ShortestPathBonds,
    ShortestPathLength,
    ShortestPathOneHot,
    SimplePathCounts,
)
from gtx.encodings.edges import compiled
from gtx.graph import CompleteGraph
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph
from gtx.molecules import Featuriser
from tests.molecules_for_tests import RINGS, SMILES, whole_batch

BOND_SIZES = Featuriser().bond_sizes
ENCODINGS = [
    ShortestPathBonds(BOND_SIZES[0]),
    ShortestPathBonds(BOND_SIZES[0], 3, farthest=4),
    SimplePathCounts(3),
]


def random_graph(sizes: list[int], bonds_per_node: float, seed: int, both_ways: bool) -> Data:
    """Bonds drawn at random within each molecule: duplicates, bonds of a node with itself, parts not connected."""
    generator = torch.Generator().manual_seed(seed)
    edges, start = [torch.zeros(2, 0, dtype=torch.long)], 0
    for n in sizes:
        count = round(bonds_per_node * n)
        edges.append(start + torch.randint(max(n, 1), (2, count if n else 0), generator=generator))
        start += n
    edge_index = torch.cat(edges, 1)
    codes = [torch.randint(size, (edge_index.shape[1],), generator=generator) for size in BOND_SIZES]
    data = Data(edge_index=edge_index, edge_attr=torch.stack(codes, 1), num_nodes=start)
    if both_ways:
        data.edge_index = torch.cat([edge_index, edge_index.flip(0)], 1)
        data.edge_attr = torch.cat([data.edge_attr, data.edge_attr])
    mixed = torch.randperm(data.num_edges, generator=generator)  # in no order, molecules included
    data.edge_index, data.edge_attr = data.edge_index[:, mixed], data.edge_attr[mixed]
    data.ptr = torch.tensor([0, *sizes]).cumsum(0)
    return data


CASES = {
    "molecules": whole_batch([*SMILES, *RINGS]),
    "300 atoms": whole_batch(["C" * 299 + "O", "[Na+].[Cl-]"]),
    "no molecule": random_graph([], 0, 0, False),
    "molecules of no atoms": random_graph([0, 0, 5, 0, 1, 0], 1, 0, True),
    "rare bonds": random_graph([30, 1, 12], 0.8, 1, True),
    "bonds galore": random_graph([9, 2, 40], 4, 2, True),
    "one way": random_graph([20, 3, 33], 1.1, 3, False),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def data(request: pytest.FixtureRequest) -> Data:
    return request.param


def by_definition(encoding: Encoding, data: Data, graph: CompleteGraph, monkeypatch: pytest.MonkeyPatch) -> tuple:
    with monkeypatch.context() as patch:
        patch.setattr("gtx.encodings.paths.compiled", lambda edge_index, graph: False)
        return encoding(data, graph)


def assert_same(found: tuple, expected: tuple) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype == other.dtype and one.shape == other.shape
            torch.testing.assert_close(one, other, rtol=0, atol=1e-6 if one.is_floating_point() else 0)


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
def test_loops_are_the_definition(encoding: Encoding, data: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = CompleteGraph.from_ptr(data.ptr)
    assert_same(encoding(data, graph), by_definition(encoding, data, graph, monkeypatch))


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
def test_threads_change_nothing(encoding: Encoding, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = CASES["molecules"]
    several = Batch.from_data_list(batch.to_data_list() * 10)
    graph = CompleteGraph.from_ptr(several.ptr)
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.append(encoding(several, graph))
    for one, other in zip(*found, strict=True):
        assert one is other is None or one.equal(other)


@pytest.mark.parametrize(
    ("encoding", "sender", "receiver"),
    [
        (BondFeatures([3]), 0, 2),
        (ShortestPathBonds(3), -1, 0),
        (ShortestPathOneHot(2), 0, 5),
        (RandomWalkProbabilities(3), 7, 1),
        (ShortestPathLength(), 0, 2),
    ],
    ids=repr,
)
def test_an_edge_astray_is_named(encoding: Encoding, sender: int, receiver: int) -> None:
    data = Data(edge_index=torch.tensor([[0, sender], [1, receiver]]), edge_attr=torch.zeros(2, 1, dtype=torch.long))
    words = f"5 nodes in all, but edge 1 is from node {sender} to node {receiver}"
    with pytest.raises(ValueError, match=words):
        encoding(data, CompleteGraph.from_ptr(torch.tensor([0, 2, 5])))


def test_bonds_of_the_wrong_kind_are_named() -> None:
    graph = CompleteGraph.from_ptr(torch.tensor([0, 3]))
    data = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), edge_attr=torch.tensor([[0], [3]]))
    with pytest.raises(ValueError, match=r"expected edge_attr \[2, 2\], got \[2, 1\]"):
        BondFeatures([4, 4])(data, graph)
    with pytest.raises(ValueError, match="expected a bond type from 0 to 2 for each of 2 edges"):
        ShortestPathBonds(3)(data, graph)


def test_loops_run_where_they_can() -> None:
    edge_index, graph = torch.tensor([[0, 1], [1, 0]]), CompleteGraph.from_ptr(torch.tensor([0, 2]))
    assert compiled(edge_index, graph)
    assert not compiled(edge_index.to("meta"), graph) and not compiled(EdgeIndex(edge_index), graph)
    assert not torch.compile(lambda edges: edges + compiled(edges, graph), backend="eager")(torch.zeros(2, 1)).any()
    ghost = ConstantShapeGraph.from_sizes(torch.tensor([2]), BatchShape(3, 5, 2, ((1, 2),)))
    assert not compiled(edge_index, ghost)
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert not compiled(edge_index, graph)
    finally:
        torch.set_default_dtype(torch.float32)
