"""The types of the atoms around each atom: the sum over its neighbours, and no others."""

from __future__ import annotations

import torch
from torch_geometric.data import Batch

from gtx.encodings import ExpNormDistance, NeighbourAtomTypes
from gtx.graph import CompleteGraph


def test_is_its_equation_atom_by_atom_and_keeps_to_the_edges(batch: Batch, graph: CompleteGraph) -> None:
    torch.manual_seed(0)
    distance = ExpNormDistance(6, 2.5)
    encoding = NeighbourAtomTypes(distance, 128, 5)
    near = torch.rand(graph.num_pairs, generator=torch.Generator().manual_seed(0)) < 0.7
    for edges in (graph, graph.masked(near)):
        found, _ = encoding(batch, edges)
        expected = torch.zeros_like(found)
        for sender, receiver in edges.edge_index.T.tolist():
            d = (batch.pos[sender] - batch.pos[receiver]).norm()
            if sender != receiver and d < 2.5:  # never of unknown coordinates
                filtered = encoding.filter.weight @ distance.basis(d[None])[0]
                expected[receiver] += encoding.types.weight[batch.x[sender, 0]] * filtered
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        assert found.abs().max() > 0.1


def test_unknown_coordinates_say_nothing(batch: Batch, graph: CompleteGraph) -> None:
    found, _ = NeighbourAtomTypes(ExpNormDistance(6, 2.5), 128, 5)(batch, graph)
    assert found[batch.pos.isnan().any(-1)].eq(0).all() and found.isfinite().all()
