"""Encodings equal their definitions, follow a renumbering, and do not see batch-mates."""

from collections.abc import Callable

import networkx
import pytest
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_networkx

import gtx.encodings
from gtx.encodings import (
    AddEncodingToData,
    AtomTypes,
    BesselDistance,
    BondFeatures,
    Encoding,
    ExpNormDistance,
    FourierDistance,
    GaussianDistance,
    LaplacianEigenvectors,
    MATDistanceAndAdjacency,
    NeighbourAtomTypes,
    NeighbourDistancesAndAngles,
    NodeDegree,
    PairUnitVector,
    RandomWalkProbabilities,
    SameRing,
    ShortestPathBonds,
    ShortestPathLength,
    ShortestPathOneHot,
    SimplePathCounts,
    SinusoidalPosition,
    TransformerM3DEncoding,
)
from gtx.graph import CompleteGraph
from gtx.molecules import Featuriser
from gtx.testing import check_encoding

ATOM_SIZES, BOND_SIZES = Featuriser().atom_sizes, Featuriser().bond_sizes
FOLLOWING = [  # the order of the atoms means nothing to them
    AtomTypes(ATOM_SIZES[0]),
    BesselDistance(5),
    BondFeatures(BOND_SIZES),
    NodeDegree(2),
    PairUnitVector(3.0),
    ShortestPathBonds(BOND_SIZES[0], 3),
    ExpNormDistance(6),
    FourierDistance(4),
    GaussianDistance(8),
    ShortestPathOneHot(3),
    NeighbourDistancesAndAngles(GaussianDistance(8), ATOM_SIZES[0], 5, cutoff=2.5),
    NeighbourAtomTypes(ExpNormDistance(6, 3.0), ATOM_SIZES[0], 5),
    MATDistanceAndAdjacency(),
    RandomWalkProbabilities(6),
    SameRing(),
    ShortestPathLength(8),
    SimplePathCounts(5),
    TransformerM3DEncoding(ExpNormDistance(6, 3.0)),
]
SETTLED = [*FOLLOWING, SinusoidalPosition(6)]  # nothing in them is arbitrary
ENCODINGS = [*SETTLED, *(LaplacianEigenvectors(40, signs) for signs in ("random", "absolute", "invariant"))]


def test_every_encoding_is_tested_here() -> None:
    exported = [getattr(gtx.encodings, name) for name in gtx.encodings.__all__]
    classes = {each for each in exported if isinstance(each, type) and issubclass(each, Encoding)}
    of_reactions = {gtx.encodings.BothSides}  # reads codes of two sides
    assert classes - {Encoding} - of_reactions == {type(encoding) for encoding in ENCODINGS}


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
def test_the_guarantees(encoding: Encoding, batch: Batch) -> None:
    check_encoding(encoding, batch, order_matters=encoding not in FOLLOWING, arbitrary=encoding not in SETTLED)


REFUSED = [
    (lambda: AtomTypes(0), "at least one code, got 0"),
    (lambda: NodeDegree(-1), "at least 0, got -1"),
    (lambda: ShortestPathLength(0), "a largest distance of at least 1, got 0"),
    (lambda: SimplePathCounts(0), "paths of at least 1 bond, got 0"),
    (lambda: ShortestPathBonds(4, 0), "got bond_size=4, length=0, farthest=20"),
    (lambda: SameRing(2), "rings of at least 3 bonds, got 2"),
    (lambda: RandomWalkProbabilities(0), "at least one step, got 0"),
    (lambda: LaplacianEigenvectors(0), "at least one eigenvector, got 0"),
    (lambda: LaplacianEigenvectors(2, "fixed"), "'random', 'absolute' or 'invariant', got 'fixed'"),
    (lambda: SinusoidalPosition(5), "an even number of channels, at least 2, got 5"),
    (lambda: SinusoidalPosition(2, "halves"), "an even number of channels, at least 4, got 2"),
    (lambda: SinusoidalPosition(4, "thirds"), "the convention 'interleaved' or 'halves', got 'thirds'"),
    (lambda: FourierDistance(3), "an even number of channels, got 3"),
    (lambda: BesselDistance(4, cutoff=-1), "at least 1 channels and a positive cutoff, got 4 and -1"),
    (lambda: GaussianDistance(1), "at least 2 channels and a positive cutoff, got 1 and 10"),
    (lambda: PairUnitVector(float("nan")), "a positive cutoff, got 1 and nan"),
    (lambda: NeighbourDistancesAndAngles(GaussianDistance(8), 128, 0), "at least 1 channels"),
    (lambda: NeighbourDistancesAndAngles(GaussianDistance(8), 128, cutoff=0.0), "positive cutoff, got 128 and 0.0"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_wrong_settings_are_refused(make: Callable[[], Encoding], message: str) -> None:
    with pytest.raises(ValueError, match=f"expected .*{message}"):
        make()


@pytest.mark.parametrize("largest", [3, 20])
def test_shortest_path_is_networkx(largest: int, batch: Batch) -> None:
    encoding = ShortestPathLength(largest)
    for data in batch.to_data_list():
        n = data.num_nodes
        _, codes = encoding(data, CompleteGraph.from_ptr(torch.tensor([0, n])))
        expected = torch.full((n, n), largest + 2)
        for source, lengths in networkx.all_pairs_shortest_path_length(to_networkx(data)):
            for target, length in lengths.items():
                expected[source, target] = min(length, largest + 1)
        assert codes.view(n, n).equal(expected)


def test_a_long_chain_is_bounded_work() -> None:
    n = 1000
    chain = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    data = Data(edge_index=torch.cat([chain, chain.flip(0)], 1), num_nodes=n)
    _, codes = ShortestPathLength(2)(data, CompleteGraph.from_ptr(torch.tensor([0, n])))
    assert torch.bincount(codes.flatten()).tolist() == [n, 2 * (n - 1), 2 * (n - 2), (n - 2) * (n - 3)]


def test_random_walk_is_the_power_of_its_matrix(batch: Batch) -> None:
    data = batch.to_data_list()[3]
    n = data.num_nodes
    A = torch.zeros(n, n)
    A[data.edge_index[1], data.edge_index[0]] = 1
    M = A / A.sum(1, keepdim=True)
    node, pair = RandomWalkProbabilities(5)(data, CompleteGraph.from_ptr(torch.tensor([0, n])))
    for k in range(5):
        torch.testing.assert_close(pair.view(n, n, 5)[..., k], torch.matrix_power(M, k))
        torch.testing.assert_close(node[:, k], torch.matrix_power(M, k + 1).diagonal())


def test_bonds_name_the_pair_they_join(batch: Batch, graph: CompleteGraph) -> None:
    _, codes = BondFeatures(BOND_SIZES)(batch, graph)
    at = graph.pair_of(batch.edge_index)
    assert codes[at].equal(batch.edge_attr + 1)
    assert codes.any(1).sum() == batch.num_edges


def test_degree(batch: Batch, graph: CompleteGraph) -> None:
    node, _ = NodeDegree(2)(batch, graph)
    start = graph.ptr[0]
    assert node[start : start + 4].flatten().tolist() == [1, 3, 1, 2]  # CC(=O)O of aspirin; 3 stands for "more than 2"


@pytest.mark.parametrize("encoding", ENCODINGS, ids=repr)
def test_transform_puts_it_on_a_data(encoding: Encoding, batch: Batch) -> None:
    for n in (1, 4):
        data = next(data for data in batch.to_data_list() if data.num_nodes == n)
        data.pos = torch.randn(n, 3)
        data = AddEncodingToData(encoding)(data)
        assert ("node_encoding" in data, "pair_encoding" in data) == (bool(encoding.node), bool(encoding.pair))
        if encoding.node:
            assert data.node_encoding.shape[0] == n and data.node_encoding.dim() == 2
        if encoding.pair:
            assert data.pair_encoding.shape[0] == n * n and data.pair_encoding.dim() == 2
    assert repr(AddEncodingToData(encoding)) == f"AddEncodingToData({encoding})"


CODES = [
    (AtomTypes(4), "x"),
    (BondFeatures((3,)), "edge_attr"),
    (ShortestPathBonds(4), "edge_attr"),
    (GaussianDistance(8, pair_types=4), "x"),
    (NeighbourDistancesAndAngles(GaussianDistance(8), 4, 5), "x"),
    (NeighbourAtomTypes(ExpNormDistance(6, 3.0), 4, 5), "x"),
]


@pytest.mark.parametrize(("encoding", "name"), CODES, ids=repr)
def test_what_are_no_codes_is_named(encoding: Encoding, name: str) -> None:
    data = Data(x=torch.ones(2, 1).long(), edge_index=torch.tensor([[0, 1], [1, 0]]), pos=torch.randn(2, 3))
    data.edge_attr = torch.ones(2, 1).long()
    AddEncodingToData(encoding)(data.clone())
    one_hot, negative = torch.eye(2), torch.tensor([[0], [-1]])
    for wrong, came in (
        (one_hot, r"integers \[n, F\], got torch.float32 \[2, 2\]; of one-hot"),
        (negative, "from 0 on, got -1 in row 1, column 0"),
    ):
        data[name] = wrong
        with pytest.raises(ValueError, match=f"expected {name} of codes.* {came}"):
            AddEncodingToData(encoding)(data)


def test_transform_of_points_without_bonds() -> None:
    data = AddEncodingToData(GaussianDistance(8))(Data(pos=torch.randn(3, 3)))
    assert data.pair_encoding.shape == (9, 9)
