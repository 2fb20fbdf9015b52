"""The complete graph says which pairs there are, in which order, and packs them without loss."""

from __future__ import annotations

import pytest
import torch
import torch.utils._pytree as pytree
from torch_geometric.data import Data

from gtx.graph import CompleteGraph

SIZES = [3, 0, 1, 5, 30, 3]


@pytest.fixture(params=[1, 4])
def graph(request: pytest.FixtureRequest) -> CompleteGraph:
    return CompleteGraph.from_ptr(torch.tensor([0, *SIZES]).cumsum(0), max_buckets=request.param)


def test_edge_index_lists_every_ordered_pair_receiver_major(graph: CompleteGraph) -> None:
    expected, start = [], 0
    for size in SIZES:
        expected += [(start + s, start + r) for r in range(size) for s in range(size)]
        start += size
    assert graph.edge_index.T.tolist() == [list(pair) for pair in expected]
    assert graph.num_edges == sum(n * n for n in SIZES) == len(expected)
    assert graph.num_nodes == sum(SIZES)
    assert graph.num_graphs == len(SIZES)


def test_pair_of_inverts_edge_index(graph: CompleteGraph) -> None:
    assert graph.pair_of(graph.edge_index).equal(torch.arange(graph.num_edges))
    sender, receiver = graph.edge_index[:, graph.diagonal]
    assert sender.equal(receiver) and sender.equal(torch.arange(graph.num_nodes))


def test_buckets_hold_receiver_before_sender(graph: CompleteGraph) -> None:
    """An asymmetric pair feature, since a symmetric one would hide a transpose."""
    sender, receiver = graph.edge_index
    packed = graph.packed.cut_pairs(graph.pairs.pack((100 * receiver + sender).float(), fill=-1.0))
    nodes = graph.packed.cut_nodes(graph.nodes.pack(torch.arange(graph.num_nodes).float(), fill=-1.0))
    for pairs, node in zip(packed, nodes, strict=True):
        both = (node[:, :, None] >= 0) & (node[:, None, :] >= 0)
        expected = torch.where(both, 100 * node[:, :, None] + node[:, None, :], -1.0)
        assert pairs.equal(expected)


def test_packing_is_lossless_and_differentiable(graph: CompleteGraph) -> None:
    x = torch.randn(graph.num_nodes, 2, dtype=torch.float64, requires_grad=True)
    assert graph.nodes.unpack(graph.nodes.pack(x, -torch.inf)).equal(x)
    torch.autograd.gradcheck(graph.nodes.pack, x)
    slots = torch.randn(len(graph.nodes.row_of_slot), 2, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(graph.nodes.unpack, slots)
    torch.autograd.gradgradcheck(graph.nodes.unpack, slots)


def test_no_nodes_at_all() -> None:
    graph = CompleteGraph.from_batch(torch.zeros(0, dtype=torch.long))
    assert (graph.num_graphs, graph.num_nodes, graph.num_edges) == (0, 0, 0)
    assert graph.edge_index.shape == (2, 0)


def test_unsorted_batch_vector_is_named() -> None:
    with pytest.raises(ValueError, match=r"sorted batch vector, but node 2 is of graph 0 after a node of graph 1"):
        CompleteGraph.from_batch(torch.tensor([0, 1, 0]))
    with pytest.raises(ValueError, match=r"expected a batch vector \[N\], got \[2, 3\]"):
        CompleteGraph.from_batch(torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(ValueError, match="never descends"):
        CompleteGraph.from_ptr(torch.tensor([0, 3, 2]))
    with pytest.raises(TypeError, match=r"such as batch\.batch of a Batch, got Data"):
        CompleteGraph.from_batch(Data(x=torch.zeros(2, 3)))


def test_is_a_pytree(graph: CompleteGraph) -> None:
    leaves, spec = pytree.tree_flatten(graph)
    again = pytree.tree_unflatten(leaves, spec)
    assert again.edge_index.equal(graph.edge_index) and again.packed.shapes == graph.packed.shapes
    assert repr(graph.to("cpu")) == f"CompleteGraph(num_graphs=6, num_nodes=42, num_edges={graph.num_edges})"
