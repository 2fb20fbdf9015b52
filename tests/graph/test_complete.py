"""The complete graph says which pairs there are; fewer edges, virtual nodes, constant shapes."""

import pytest
import torch
import torch.utils._pytree as pytree
from torch_geometric.data import Data

from gtx.graph import CompleteGraph, add_virtual_nodes
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph, ShapeNotConstantError

SIZES = [3, 0, 1, 5, 30, 3]


@pytest.fixture(params=[1, 4])
def graph(request) -> CompleteGraph:
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


def test_no_nodes_at_all() -> None:
    graph = CompleteGraph.from_batch(torch.zeros(0, dtype=torch.long))
    assert (graph.num_graphs, graph.num_nodes, graph.num_edges) == (0, 0, 0)
    assert graph.edge_index.shape == (2, 0)


def test_numbers_of_another_type_or_stride_are_the_same_graph() -> None:
    """Compiled loops read offsets and masks where they lie."""
    expected, wide = GRAPH.masked(MASK), torch.stack([GRAPH.ptr, GRAPH.ptr + 7], 1)[:, 0]
    for ptr in (GRAPH.ptr.int(), wide):
        graph = CompleteGraph.from_ptr(ptr).masked(torch.stack([MASK, ~MASK], 1)[:, 0])
        for found, given in ((graph.ptr, expected.ptr), (graph.mask, MASK)):
            assert found.equal(given) and found.is_contiguous() and found.dtype == given.dtype
        assert graph.edge_index.equal(expected.edge_index)
    assert CompleteGraph.from_batch(GRAPH.batch.int()).ptr.equal(GRAPH.ptr[[0, 1, 2, 3, 4]])


def test_unsorted_batch_vector_is_named() -> None:
    with pytest.raises(ValueError, match=r"from 0 on, but node 0 is of graph -1$"):
        CompleteGraph.from_batch(torch.tensor([-1, 0]))
    with pytest.raises(ValueError, match=r"expected nodes of 2 graphs, but the last is of graph 2"):
        CompleteGraph.from_batch(torch.tensor([0, 1, 2]), 2)
    with pytest.raises(ValueError, match=r"expected ptr of integers \[B \+ 1\], got torch.float32 \[2\]"):
        CompleteGraph.from_ptr(torch.tensor([0.0, 2.0]))
    with pytest.raises(
        ValueError, match=r"sorted batch vector from 0 on, but node 2 is of graph 0 after a node of graph 1"
    ):
        CompleteGraph.from_batch(torch.tensor([0, 1, 0]))
    with pytest.raises(ValueError, match=r"expected a batch vector of integers \[N\], got torch.int64 \[2, 3\]"):
        CompleteGraph.from_batch(torch.zeros(2, 3, dtype=torch.long))
    with pytest.raises(ValueError, match=r"expected a batch vector of integers \[N\], got torch.float32 \[3\]"):
        CompleteGraph.from_batch(torch.zeros(3))
    with pytest.raises(ValueError, match="never descends"):
        CompleteGraph.from_ptr(torch.tensor([0, 3, 2]))
    with pytest.raises(TypeError, match=r"expected a tensor ptr of integers \[B \+ 1\], got list"):
        CompleteGraph.from_ptr([0, 3])
    with pytest.raises(TypeError, match=r"got NoneType; for one graph of N nodes use from_ptr\(torch.tensor"):
        CompleteGraph.from_batch(None)
    with pytest.raises(TypeError, match=r"such as batch\.batch of a Batch, got Data"):
        CompleteGraph.from_batch(Data(x=torch.zeros(2, 3)))


# --- With fewer edges: the pairs stay, some of them are no edges.


GRAPH = CompleteGraph.from_ptr(torch.tensor([0, 3, 3, 4, 9]))
MASK = torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(0)) < 0.5


def test_edges_are_the_pairs_that_the_mask_keeps() -> None:
    graph = GRAPH.masked(MASK)
    kept = [pair for pair, keep in zip(GRAPH.edge_index.T.tolist(), MASK.tolist(), strict=True) if keep]
    assert graph.edge_index.T.tolist() == kept
    assert graph.num_edges == len(kept) == int(MASK.sum())
    assert graph.num_pairs == GRAPH.num_pairs == 35 and graph.pair_index.equal(GRAPH.pair_index)
    assert graph.select(GRAPH.pair_index.T).equal(graph.edge_index.T) and GRAPH.select(MASK) is MASK
    assert repr(graph) == f"CompleteGraph(num_graphs=4, num_nodes=9, num_edges={len(kept)} of 35)"


def test_masks_add_up_and_the_first_graph_keeps_its_edges() -> None:
    other = GRAPH.pair_index[0] <= GRAPH.pair_index[1]
    assert GRAPH.masked(MASK).masked(other).mask.equal(MASK & other)
    assert GRAPH.masked(MASK).masked(None).mask.equal(MASK)
    assert GRAPH.mask is None and GRAPH.num_edges == GRAPH.num_pairs


def test_a_mask_of_another_length_or_kind_is_named() -> None:
    with pytest.raises(ValueError, match=r"expected a mask bool \[35\], got torch.bool \[34\]"):
        GRAPH.masked(MASK[1:])
    with pytest.raises(ValueError, match=r"expected a mask bool \[35\], got torch.float32 \[35\]"):
        GRAPH.masked(MASK.float())
    with pytest.raises(ValueError, match=r"expected a mask bool \[35\], got torch.bool \[35, 1\]"):
        GRAPH.masked(MASK[:, None])


def test_travels_as_a_pytree_with_its_mask() -> None:
    graph = GRAPH.masked(MASK)
    again = pytree.tree_unflatten(*reversed(pytree.tree_flatten(graph)))
    assert again.mask.equal(MASK) and again.edge_index.equal(graph.edge_index)
    assert graph.to("cpu").mask.equal(MASK)
    assert GRAPH.to("cpu").mask is None
    assert CompleteGraph.from_ptr(GRAPH.ptr, max_buckets=1).to("cpu").grown(2).max_buckets == 1


# --- A graph of constant shape, which holds the complete graphs of its molecules and a ghost: what its models say of
# outputs and gradients is in `tests/models/test_constant_shape.py`, that nothing is read back from the device in
# `tests/training/test_capture.py`.


BATCH_SHAPE = BatchShape(23, 120, 0, ((1, 8), (2, 5), (3, 2)))


def test_what_has_no_constant_shape_is_refused() -> None:
    graph = ConstantShapeGraph.from_sizes(torch.tensor([7, 4, 4, 2, 1, 0]), BATCH_SHAPE)
    assert graph.edge_index.shape == (2, 120) and graph.select(torch.ones(120)).shape == (120,)
    masked = graph.masked(torch.ones(120, dtype=torch.bool))
    for ask in (lambda: masked.edge_index, lambda: masked.select(torch.ones(120))):
        with pytest.raises(ShapeNotConstantError, match="under a mask"):
            ask()
    moved = masked.to("meta")
    assert moved.mask.device.type == "meta" and moved.batch_shape == BATCH_SHAPE


# --- Virtual nodes join every node of their molecule; what was there before stays as it was.


FEW = [3, 0, 1, 5]
SMALL = CompleteGraph.from_ptr(torch.tensor([0, *FEW]).cumsum(0))
COUNTS = pytest.mark.parametrize("count", [1, 2])


def pairs(index: torch.Tensor) -> set[tuple[int, int]]:
    return set(map(tuple, index.T.tolist()))


@COUNTS
def test_each_molecule_grows_by_its_virtual_nodes_which_come_last(count: int) -> None:
    larger, nodes, virtual, _ = add_virtual_nodes(SMALL, count)
    assert larger.ptr.diff().tolist() == [size + count for size in FEW]
    assert nodes.tolist() + virtual.tolist() != sorted(nodes.tolist() + virtual.tolist())  # they are interleaved
    assert sorted(nodes.tolist() + virtual.tolist()) == list(range(sum(FEW) + count * len(FEW)))
    assert larger.batch[nodes].equal(SMALL.batch)
    assert virtual.view(len(FEW), count).equal(larger.ptr[1:, None] - count + torch.arange(count))
    assert larger.mask is None


@COUNTS
def test_masked_pairs_stay_masked_and_virtual_nodes_join_all_others(count: int) -> None:
    mask = torch.rand(SMALL.num_pairs, generator=torch.Generator().manual_seed(0)) < 0.4
    lonely = [1, 3]  # no edge in, none out; node 3 is a molecule by itself
    mask &= ~torch.isin(SMALL.pair_index, torch.tensor(lonely)).any(0)
    graph = SMALL.masked(mask)
    larger, nodes, virtual, _ = add_virtual_nodes(graph, count)
    joined = set(graph.edge_index.flatten().tolist())
    assert 1 not in joined and len(joined) == sum(FEW) - 2
    expected = pairs(nodes[graph.edge_index])
    for v in virtual.tolist():
        mates = [int(nodes[i]) for i in joined if SMALL.batch[i] == larger.batch[v]]
        mates += [w for w in virtual.tolist() if larger.batch[w] == larger.batch[v]]
        expected |= {(v, mate) for mate in mates} | {(mate, v) for mate in mates}
    assert pairs(larger.edge_index) == expected


def test_a_sender_alone_counts_as_joined() -> None:
    """Node 0 sends and receives nothing, as the first step of a strict order."""
    graph = CompleteGraph.from_ptr(torch.tensor([0, 2])).masked(torch.tensor([False, False, True, False]))
    assert pairs(graph.edge_index) == {(0, 1)}
    larger = add_virtual_nodes(graph).graph
    assert pairs(larger.edge_index) == {(0, 1), (0, 2), (1, 2), (2, 0), (2, 1), (2, 2)}


def test_no_virtual_node_is_named() -> None:
    with pytest.raises(ValueError, match="expected at least one virtual node, got 0"):
        add_virtual_nodes(SMALL, 0)
