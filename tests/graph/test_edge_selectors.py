"""Which pairs are edges, against the plain definition on real molecules."""

import networkx
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_networkx

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
    """The bonds of a shortest path between every two connected atoms."""
    bare = Data(edge_index=batch.edge_index, num_nodes=batch.num_nodes)
    paths = networkx.all_pairs_shortest_path_length(to_networkx(bare))
    return {(sender, receiver): bonds for sender, reached in paths for receiver, bonds in reached.items()}


@pytest.mark.parametrize("loops", [True, False])
def test_bonded_pairs(loops: bool, batch: Batch, graph: CompleteGraph) -> None:
    each = {(i, i) for i in range(batch.num_nodes)} if loops else set()
    assert edges(BondEdges(loops)(batch, graph), graph) == bonds(batch) | each


@pytest.mark.parametrize("k", [0, 1, 3, 28, 29])
def test_within_hops(k: int, batch: Batch, graph: CompleteGraph) -> None:
    """The longest chain has 30 atoms, 29 bonds; two molecules have parts that no bond joins."""
    assert edges(HopCutoffEdges(k)(batch, graph), graph) == {pair for pair, d in hops(batch).items() if d <= k}


@pytest.mark.parametrize("cutoff", [1e-6, 4.0])
def test_within_distance(cutoff: float, batch: Batch, graph: CompleteGraph) -> None:
    apart = torch.cdist(batch.pos, batch.pos, compute_mode="donot_use_mm_for_euclid_dist")
    found = edges(DistanceCutoffEdges(cutoff)(batch, graph), graph)
    pairs = graph.pair_index.T.tolist()
    assert found == {(s, r) for s, r in pairs if apart[s, r] < cutoff or batch.batch[s] == UNPLACED}
    assert batch.num_nodes < len(found) < graph.num_pairs


@pytest.mark.parametrize(
    ("of", "name", "message"),
    [
        (DistanceCutoffEdges(4.0), "pos", r"needs coordinates: expected pos \[N, 3\] in Å, got None"),
        (ExpanderEdges(), "edge_attr", r"of bonds edge_attr \[E, F\], got None"),
    ],
    ids=str,
)
def test_what_a_batch_lacks_is_named(of: EdgeSelector, name: str, message: str, batch: Batch, graph) -> None:
    without = batch.clone()
    without[name] = None
    with pytest.raises(ValueError, match=message):
        of(without, graph)


def test_causal(batch: Batch, graph: CompleteGraph) -> None:
    found = edges(CausalEdges()(batch, graph), graph)
    assert found == {(s, r) for s, r in graph.pair_index.T.tolist() if s <= r}


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
    for degree in (0, 3, -2):
        with pytest.raises(ValueError, match=f"expected an even degree of at least 2, got {degree}"):
            ExpanderEdges(degree)
    with pytest.raises(ValueError, match="expected a radius of 0 or more bonds, got -1"):
        ExpanderEdges(radius=-1)
    with pytest.raises(TypeError, match="EdgeSelector does not say which pairs are edges"):
        EdgeSelector()(Data(), CompleteGraph.from_ptr(torch.tensor([0, 1])))
    assert repr(HopCutoffEdges(3)) == "HopCutoffEdges(hops=3)" and HopCutoffEdges(3) == HopCutoffEdges(3)


# --- The expander: regular over kinds of atoms, well connected, and the same for every numbering.


ATOMS = 200


def adjacency(degree: int, kinds: Tensor, seed: int = 0) -> Tensor:
    """Of atoms without bonds, of which each is of the kind that is said, `[n, n]`."""
    nothing = torch.zeros(2, 0, dtype=torch.long)
    data = Data(kinds[:, None], edge_index=nothing, edge_attr=nothing.T[:, :1])
    graph = CompleteGraph.from_ptr(torch.tensor([0, len(kinds)]))
    return ExpanderEdges(degree, seed)(data, graph).view(len(kinds), -1).double()


@pytest.mark.parametrize("degree", [2, 4, 6])
def test_it_is_a_union_of_cycles_and_mixes_as_fast_as_a_regular_graph_can(degree: int) -> None:
    joined = adjacency(degree, torch.arange(ATOMS))
    assert torch.equal(joined, joined.T) and joined.diagonal().sum() == 0
    assert joined.sum(1).max() == degree and joined.sum(1).double().mean() > degree - 0.1
    values = torch.linalg.eigvalsh(joined)
    assert values[-1] - values[-2] > (0 if degree == 2 else degree - 2 * (degree - 1) ** 0.5 - 0.3)  # Alon-Boppana
    reached = torch.linalg.matrix_power(torch.eye(ATOMS, dtype=torch.float64) + joined, ATOMS if degree == 2 else 10)
    assert (reached > 0).all()


def test_atoms_of_a_kind_have_the_same_neighbours() -> None:
    kinds = torch.tensor([3, 1, 3, 5, 1, 7, 9, 3])
    joined = adjacency(2, kinds)
    assert torch.equal(joined[0], joined[2]) and torch.equal(joined[1], joined[4])
    kind, place = kinds.unique(return_inverse=True)
    between = torch.zeros(len(kind), len(kind))
    between[place[:, None], place] = joined.float()
    assert torch.equal(between.sum(1), torch.full((len(kind),), 2.0))  # every kind lies on one cycle
    assert adjacency(4, torch.full((6,), 2)).all()  # all of one kind


def test_renumbering_the_atoms_renumbers_the_edges() -> None:
    """Of symmetrical molecules too; the other selectors are their definitions, which know no numbers."""
    batch = whole_batch([*SMILES, "CC(C)(C)c1ccc(cc1)C(C)(C)C", "C1CC1", "OCC(O)CO"])
    mask = ExpanderEdges()(batch, CompleteGraph.from_batch(batch.batch))
    for seed in range(5):
        other, order = renumbered(batch, seed)
        graph = CompleteGraph.from_batch(other.batch)
        found = ExpanderEdges()(other, graph)
        assert torch.equal(found, mask[graph.pair_of(order[graph.pair_index])]) and not torch.equal(found, mask)
