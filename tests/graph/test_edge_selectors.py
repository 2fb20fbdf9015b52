"""Which pairs are edges, against the plain definition on real molecules."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gtx.graph import (
    AllPairEdges,
    BondEdges,
    CausalEdges,
    CompleteGraph,
    DistanceCutoffEdges,
    EdgeSelector,
    ExpanderEdges,
    HopCutoffEdges,
)
from tests.molecules_for_tests import SMILES, renumbered, whole_batch

UNPLACED = 3  # the molecule whose coordinates are unknown


@pytest.fixture(scope="module")
def batch() -> Batch:
    made = whole_batch()
    made.pos = 3 * torch.randn(made.num_nodes, 3, generator=torch.Generator().manual_seed(0))
    made.pos[made.batch == UNPLACED] = torch.nan
    return made


@pytest.fixture(scope="module")
def graph(batch: Batch) -> CompleteGraph:
    return CompleteGraph.from_batch(batch.batch, batch.num_graphs)


def edges(mask: Tensor, graph: CompleteGraph) -> set[tuple[int, int]]:
    """(sender, receiver) of every edge."""
    assert mask.dtype == torch.bool and mask.shape == (graph.num_pairs,)
    return set(map(tuple, graph.pair_index[:, mask].T.tolist()))


def bonds(batch: Batch) -> set[tuple[int, int]]:
    return set(map(tuple, batch.edge_index.T.tolist()))


def hops(batch: Batch) -> dict[tuple[int, int], int]:
    """The bonds of a shortest path between every two connected atoms, found atom by atom."""
    neighbours: dict[int, list[int]] = {i: [] for i in range(batch.num_nodes)}
    for s, r in bonds(batch):
        neighbours[s].append(r)
    found = {}
    for start in neighbours:
        reached, front, distance = {start}, [start], 0
        while front:
            found |= {(start, atom): distance for atom in front}
            front = sorted({n for atom in front for n in neighbours[atom]} - reached)
            reached |= set(front)
            distance += 1
    return found


@pytest.mark.parametrize("loops", [True, False])
def test_bonded_pairs(loops: bool, batch: Batch, graph: CompleteGraph) -> None:
    each = {(i, i) for i in range(batch.num_nodes)} if loops else set()
    assert edges(BondEdges(loops)(batch, graph), graph) == bonds(batch) | each


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5, 28, 29, 1000])
def test_within_hops(k: int, batch: Batch, graph: CompleteGraph) -> None:
    """The longest chain has 30 atoms, 29 bonds; two molecules have parts that no bond joins."""
    assert edges(HopCutoffEdges(k)(batch, graph), graph) == {pair for pair, d in hops(batch).items() if d <= k}


def test_more_hops_than_atoms_reach_a_whole_part_and_no_other(batch: Batch, graph: CompleteGraph) -> None:
    mask = HopCutoffEdges(10**9)(batch, graph)
    salt = graph.batch[graph.pair_index[1]] == SMILES.index("[Na+].[Cl-]")
    assert mask[salt].tolist() == [True, False, False, True]
    aspirin = graph.batch[graph.pair_index[1]] == 0
    assert mask[aspirin].all()


def test_within_distance(batch: Batch, graph: CompleteGraph) -> None:
    expected = set()
    for s, r in graph.pair_index.T.tolist():
        difference = [a - b for a, b in zip(batch.pos[s].tolist(), batch.pos[r].tolist(), strict=True)]
        distance = sum(d * d for d in difference) ** 0.5
        if int(batch.batch[s]) == UNPLACED or distance < 4.0:
            expected.add((s, r))
    found = edges(DistanceCutoffEdges(4.0)(batch, graph), graph)
    assert found == expected
    assert batch.num_nodes < len(found) < graph.num_pairs


def test_the_smallest_cutoff_leaves_each_node_itself_and_unplaced_molecules_whole(
    batch: Batch, graph: CompleteGraph
) -> None:
    sender, receiver = graph.pair_index
    unplaced = graph.batch[receiver] == UNPLACED
    assert DistanceCutoffEdges(1e-6)(batch, graph).equal(unplaced | (sender == receiver))


def test_distance_needs_coordinates(batch: Batch, graph: CompleteGraph) -> None:
    without = batch.clone()
    without.pos = None
    with pytest.raises(ValueError, match=r"needs coordinates: expected pos \[N, 3\] in Å, got None"):
        DistanceCutoffEdges(4.0)(without, graph)


def test_causal(batch: Batch, graph: CompleteGraph) -> None:
    found = edges(CausalEdges()(batch, graph), graph)
    assert found == {(s, r) for s, r in graph.pair_index.T.tolist() if s <= r}
    sizes = graph.ptr.diff()
    assert len(found) == int((sizes * (sizes + 1) // 2).sum())


@pytest.mark.parametrize("of", [BondEdges(), HopCutoffEdges(2), DistanceCutoffEdges(4.0), ExpanderEdges()], ids=str)
def test_renumbering_the_atoms_renumbers_the_edges(of: EdgeSelector, batch: Batch, graph: CompleteGraph) -> None:
    other, order = renumbered(batch)
    mask = of(batch, graph)
    assert torch.equal(of(other, graph), mask[graph.pair_of(order[graph.pair_index])])
    assert not torch.equal(of(other, graph), mask)


EVERY = [
    AllPairEdges(),
    BondEdges(),
    HopCutoffEdges(2),
    DistanceCutoffEdges(4.0),
    CausalEdges(),
    ExpanderEdges(),
    BondEdges() | CausalEdges(),
]


def test_either_of_two_sets(batch: Batch, graph: CompleteGraph) -> None:
    both = BondEdges(loops=False) | HopCutoffEdges(0)
    assert edges(both(batch, graph), graph) == bonds(batch) | {(i, i) for i in range(batch.num_nodes)}
    assert (HopCutoffEdges(0) | AllPairEdges())(batch, graph) is None


def test_bad_settings_are_named() -> None:
    with pytest.raises(ValueError, match="expected 0 or more hops, got -1"):
        HopCutoffEdges(-1)
    for cutoff in (0.0, -2.0, float("nan")):
        with pytest.raises(ValueError, match=f"expected a cutoff above 0 Å, got {cutoff}"):
            DistanceCutoffEdges(cutoff)
    with pytest.raises(TypeError, match="EdgeSelector does not say which pairs are edges"):
        EdgeSelector()(Data(), CompleteGraph.from_ptr(torch.tensor([0, 1])))
    assert repr(HopCutoffEdges(3)) == "HopCutoffEdges(hops=3)" and HopCutoffEdges(3) == HopCutoffEdges(3)
