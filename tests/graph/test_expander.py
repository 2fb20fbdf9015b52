"""The expander: regular over kinds of atoms, well connected, and the same for every numbering."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from gtx.graph import CompleteGraph, ExpanderEdges
from tests.molecules_for_tests import renumbered, whole_batch

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


def test_renumbering_a_symmetrical_molecule_renumbers_its_edges() -> None:
    batch = whole_batch(["CC(C)(C)c1ccc(cc1)C(C)(C)C", "C1CC1", "OCC(O)CO"])
    mask = ExpanderEdges()(batch, complete(batch))
    for seed in range(5):
        other, order = renumbered(batch, seed)
        graph = complete(other)
        assert torch.equal(ExpanderEdges()(other, graph), mask[graph.pair_of(order[graph.pair_index])])


def complete(batch: Batch) -> CompleteGraph:
    return CompleteGraph.from_batch(batch.batch, batch.num_graphs)


def test_bad_settings_are_named() -> None:
    for degree in (0, 3, -2):
        with pytest.raises(ValueError, match=f"expected an even degree of at least 2, got {degree}"):
            ExpanderEdges(degree)
    with pytest.raises(ValueError, match="expected a radius of 0 or more bonds, got -1"):
        ExpanderEdges(radius=-1)
