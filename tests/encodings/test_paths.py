"""What lies along bonds: paths, rings, and the compiled loops that find them."""

import itertools
from collections import defaultdict

import networkx
import pytest
import torch
from rdkit import Chem
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data

from gtx.encodings import (
    BondFeatures,
    Encoding,
    RandomWalkProbabilities,
    SameRing,
    ShortestPathBonds,
    ShortestPathLength,
    ShortestPathOneHot,
    SimplePathCounts,
)
from gtx.graph import CompleteGraph
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph
from gtx.molecules import Featuriser
from tests.molecules_for_tests import RINGS, SMILES, whole_batch


def test_hop_masks_are_the_distances(batch: Batch) -> None:
    graph = CompleteGraph.from_batch(batch.batch)
    _, masks = ShortestPathOneHot(3)(batch, graph)
    _, distance = ShortestPathLength(30)(batch, graph)
    assert masks.shape[1] == 4
    for k in range(4):
        assert masks[:, k].equal((distance[:, 0] == k).float())


# --- What compiled loops find is what networkx lists.


BOND_SIZES = Featuriser().bond_sizes


def random_graph(sizes: list[int], bonds_per_node: float, seed: int) -> Data:
    """Bonds drawn at random within each molecule: duplicates, bonds of a node with itself, parts not connected."""
    generator = torch.Generator().manual_seed(seed)
    edges, start = [torch.zeros(2, 0, dtype=torch.long)], 0
    for n in sizes:
        count = round(bonds_per_node * n)
        edges.append(start + torch.randint(max(n, 1), (2, count if n else 0), generator=generator))
        start += n
    edge_index = torch.cat(edges, 1)
    codes = [torch.randint(size, (edge_index.shape[1],), generator=generator) for size in BOND_SIZES]
    data = Data(edge_index=torch.cat([edge_index, edge_index.flip(0)], 1), num_nodes=start)
    data.edge_attr = torch.stack(codes, 1).repeat(2, 1)
    mixed = torch.randperm(data.num_edges, generator=generator)  # in no order, molecules included
    data.edge_index, data.edge_attr = data.edge_index[:, mixed], data.edge_attr[mixed]
    data.ptr = torch.tensor([0, *sizes]).cumsum(0)
    return data


CASES = {
    "molecules": whole_batch([*SMILES, *RINGS]),
    "a chain": whole_batch(["C" * 29 + "O", "[Na+].[Cl-]"]),
    "no molecule": random_graph([], 0, 0),
    "molecules of no atoms": random_graph([0, 0, 5, 0, 1, 0], 1, 0),
    "rare bonds": random_graph([30, 1, 12], 0.8, 1),
    "bonds galore": random_graph([9, 2, 14], 2, 2),
}


def list_bonds_along_paths(data: Data, graph: CompleteGraph, length: int, farthest: int) -> torch.Tensor:
    """The mean over all shortest paths; of two bonds between the same atoms, each makes a path of its own."""
    kinds = defaultdict(list)
    for ends, kind in zip(data.edge_index.T.tolist(), data.edge_attr[:, 0].tolist(), strict=True):
        kinds[tuple(ends)].append(kind)
    bonds, expected = networkx.DiGraph(list(kinds)), torch.zeros(graph.num_pairs, length, BOND_SIZES[0])
    for pair, (s, r) in enumerate(graph.pair_index.T.tolist()):
        if r == s or not {r, s} <= set(bonds) or not networkx.has_path(bonds, r, s):
            continue
        paths = list(networkx.all_shortest_paths(bonds, r, s))
        if len(paths[0]) - 1 <= farthest:
            each = [way for p in paths for way in itertools.product(*(kinds[step] for step in itertools.pairwise(p)))]
            for i, kind in ((i, kind) for way in each for i, kind in enumerate(way[:length])):
                expected[pair, i, kind] += 1 / len(each) / min(len(each[0]), length)
    return expected.flatten(1)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("length", "farthest"), [(5, 20), (2, 4)])
def test_bonds_along_paths_are_the_mean_over_all_shortest_paths(case: str, length: int, farthest: int) -> None:
    data, graph = CASES[case], CompleteGraph.from_ptr(CASES[case].ptr)
    _, found = ShortestPathBonds(BOND_SIZES[0], length, farthest)(data, graph)
    torch.testing.assert_close(found, list_bonds_along_paths(data, graph, length, farthest))
    if case in ("molecules", "bonds galore"):  # some pairs have several shortest paths, which differ in their bonds
        assert ((found > 0) & (found < 1 / length - 1e-4)).any()


@pytest.mark.parametrize("case", CASES)
def test_simple_paths_are_those_of_networkx(case: str, monkeypatch) -> None:
    data, graph = CASES[case], CompleteGraph.from_ptr(CASES[case].ptr)
    bonds = networkx.DiGraph(data.edge_index.T.tolist())
    expected = torch.zeros(graph.num_pairs, 4)
    for pair, (s, r) in enumerate(graph.pair_index.T.tolist()):
        if r != s and {r, s} <= set(bonds):
            for path in networkx.all_simple_paths(bonds, s, r, cutoff=4):
                expected[pair, len(path) - 2] += 1
    _, found = SimplePathCounts(4)(data, graph)
    torch.testing.assert_close(found, expected.log1p())
    if found.any():
        monkeypatch.setattr("gtx.encodings.paths.MOST_PATHS", 5)
        with pytest.raises(ValueError, match="more than 5 simple paths of up to 4 bonds"):
            SimplePathCounts(4)(data, graph)


@pytest.mark.parametrize("encoding", [ShortestPathBonds(BOND_SIZES[0]), SimplePathCounts(3)], ids=repr)
def test_precision_and_kind_of_index_change_nothing(encoding: Encoding) -> None:
    data = CASES["molecules"].clone()
    graph = CompleteGraph.from_ptr(data.ptr)
    _, expected = encoding(data, graph)
    data.edge_index = EdgeIndex(data.edge_index)
    torch.set_default_dtype(torch.bfloat16)
    try:
        _, found = encoding(data, graph)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(found, expected.bfloat16(), rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("encoding", "sender", "receiver"),
    [
        (BondFeatures([3]), 0, 2),
        (ShortestPathBonds(3), -1, 0),
        (ShortestPathOneHot(2), 0, 5),
        (SameRing(), 1, 3),
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
    data.edge_attr = None
    for encoding in (BondFeatures([4]), ShortestPathBonds(3)):
        with pytest.raises(ValueError, match=r"edge_attr of codes, .*, got None"):
            encoding(data, graph)


def test_a_ghost_is_refused() -> None:
    ghost = ConstantShapeGraph.from_sizes(torch.tensor([2]), BatchShape(3, 5, 2, ((1, 2),)))
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), edge_attr=torch.zeros(2, 1, dtype=torch.long))
    for encoding in (ShortestPathBonds(3), SimplePathCounts(), SameRing()):
        with pytest.raises(ValueError, match="a graph of molecules alone, got a ConstantShapeGraph"):
            encoding(data, ghost)


# --- Atoms of the same ring are those RDKit says, but for the rings where the docstring says they differ.


FUSED_ON_EVERY_BOND = "C1C23CC24CC42CC24CC42CC132"  # cyclohexane, a cyclopropane on each bond
DRUG_LIKE = [
    *SMILES,
    *RINGS,
    "CN1CC[C@]23c4c5ccc(O)c4O[C@H]2[C@@H](O)C=C[C@H]3[C@H]1C5",  # morphine
    "C[C@]12CC[C@H]3[C@@H](CCc4cc(O)ccc34)[C@@H]1CC[C@@H]2O",  # estradiol
    "CC1(C)SC2C(NC(=O)Cc3ccccc3)C(=O)N2C1C(=O)O",  # penicillin G
    "CCC1OC(=O)C(C)C(O)C(C)C(O)C(C)(O)CC(C)C(=O)C(C)C(O)C1(C)O",  # a macrolide's ring of 14
    "C1CCCCCCCCCCC1",  # a ring of 12
    "C1CC2CCC1CC2",  # three rings, of which two suffice
    "C1CCCCc2ccc(cc2)CCCCC1",  # para-cyclophane: round either side of the phenylene
    "C1C2CC3CC1CC(C2)C3",  # adamantane
    "c1cc2ccc3ccc4ccc5ccc6ccc1c7c2c3c4c5c67",  # coronene
]


def rdkit_says(smiles: str, largest: int) -> torch.Tensor:
    molecule = Chem.MolFromSmiles(smiles)
    same = torch.zeros(molecule.GetNumAtoms(), molecule.GetNumAtoms(), dtype=torch.long)
    for ring in molecule.GetRingInfo().AtomRings():
        if len(ring) <= largest:
            same[torch.tensor(ring)[:, None], torch.tensor(ring)] = 1
    return same


def bonds_of(smiles: list[str]) -> tuple[Data, CompleteGraph]:
    """All molecules, their bonds in no order."""
    batch = whole_batch(smiles)
    data = Data(edge_index=batch.edge_index[:, torch.randperm(batch.num_edges)], num_nodes=batch.num_nodes)
    return data, CompleteGraph.from_batch(batch.batch)


@pytest.mark.parametrize("largest", [12, 11, 5])
def test_it_is_what_rdkit_says(largest: int) -> None:
    data, graph = bonds_of(DRUG_LIKE)
    _, codes = SameRing(largest)(data, graph)
    for smiles, own, n in zip(DRUG_LIKE, codes.split(graph.pair_ptr.diff().tolist()), graph.ptr.diff(), strict=True):
        assert own.view(n, n).equal(rdkit_says(smiles, largest)), smiles


def test_a_ring_whose_bonds_all_lie_on_smaller_ones_is_none() -> None:
    data, graph = bonds_of([FUSED_ON_EVERY_BOND])
    (same,) = SameRing()(data, graph)[1:]
    fewer = rdkit_says(FUSED_ON_EVERY_BOND, 12) - same.view(12, 12)
    assert fewer.min() == 0 and fewer.sum() == 6 * 3  # across the six-membered ring


def test_a_molecule_of_a_thousand_atoms() -> None:
    data, graph = bonds_of(["C1CCC(CC1)" * 160 + "C"])
    assert SameRing()(data, graph)[1].sum() == 160 * 36
