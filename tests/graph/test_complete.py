"""The complete graph says which pairs there are; fewer edges, virtual nodes, constant shapes, two sets of nodes."""

import pytest
import torch
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.attention import AdditiveScore, GATv2Score, Hardmax, HeadGate, Sigmoid
from gtx.graph import BipartiteGraph, CompleteGraph, add_virtual_nodes
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph, ShapeNotConstantError
from gtx.nn import EdgeAttention

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


# --- A bipartite graph is its edge list: pairs, packings, and attention over them with every gradient.


SOURCE = torch.tensor([0, 2, 2, 5, 45, 45, 46, 49])  # two graphs without senders
TARGET = torch.tensor([0, 1, 3, 3, 33, 33, 40, 43])  # two without receivers, one of them empty
H = 2


def cross() -> BipartiteGraph:
    return BipartiteGraph.between(SOURCE, TARGET)


def test_edges_of_two_sets_are_the_cross_edges() -> None:
    made, ranges = cross(), [(range(*SOURCE[b : b + 2]), range(*TARGET[b : b + 2])) for b in range(7)]
    assert made.edge_index.T.tolist() == [[s, r] for senders, receivers in ranges for r in receivers for s in senders]
    assert made.num_pairs == made.edge_index.shape[1]
    assert made.pair_ptr.diff().equal(SOURCE.diff() * TARGET.diff()) and made.num_nodes == 43
    moved = made.masked(made.pair_index[0] > 3).to("cpu")
    assert moved.edge_index.equal(made.edge_index[:, made.edge_index[0] > 3]) and moved.num_senders == 49


def test_of_one_set_with_itself_it_is_the_complete_graph() -> None:
    made, complete = BipartiteGraph.between(SOURCE, SOURCE), CompleteGraph.from_ptr(SOURCE)
    assert made.edge_index.equal(complete.edge_index) and made.pair_ptr.equal(complete.pair_ptr)


LAYERS = {
    "dot": {},
    "dropout off": {"dropout": 0.5},
    "hardmax": {"normaliser": Hardmax()},
    "sigmoid": {"normaliser": Sigmoid()},
    "key width": {"key_channels": 5},
    "additive": {"score": GATv2Score(H, 4)},
    "concat": {"score": AdditiveScore(H, 4)},
    "gate": {"gate": HeadGate((7, 6), H, 5)},
    "edges": {"edge_dim": 3, "edge_key": True, "edge_value": True},
}


def outcome(layer: EdgeAttention, edges: Tensor | CompleteGraph, weights: bool, e: Tensor | None) -> list[Tensor]:
    torch.manual_seed(1)
    source = torch.randn(49, 7, dtype=torch.float64, requires_grad=True)
    target = torch.randn(43, 6, dtype=torch.float64, requires_grad=True)
    out = layer((source, target), edges, e, return_attention_weights=weights)
    out, alpha = (out[0], out[1][1]) if weights else (out, None)
    loss = (out * torch.randn_like(out)).sum()
    wanted = [source, target, *layer.parameters()]
    grads = torch.autograd.grad(loss, wanted, allow_unused=True)
    return [out, *([alpha] if weights else []), *(torch.zeros(()) if g is None else g for g in grads)]


@pytest.mark.parametrize(("weights", "masked"), [(False, False), (True, True)])
@pytest.mark.parametrize("name", LAYERS)
def test_attention_over_it_is_attention_over_its_edge_list(name: str, weights: bool, masked: bool) -> None:
    torch.manual_seed(0)
    layer = EdgeAttention((7, 6), 4, H, project=True, **LAYERS[name]).double().eval()
    for p in layer.parameters():
        nn.init.normal_(p, std=0.5)
    made = cross()
    if masked:
        made = made.masked(torch.rand(made.num_pairs) < 0.6)
    e = torch.randn(made.num_pairs, 3, dtype=torch.float64) if layer.edge_dim else None
    dense = outcome(layer, made, weights, e)
    if weights:
        dense[1] = made.select(dense[1])
    listed = outcome(layer, made.edge_index, weights, None if e is None else made.select(e))
    for one, other in zip(dense, listed, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    assert dense[0][1:3].eq(layer.lin_out.bias).all()  # receivers without senders collect nothing


def test_a_gate_over_one_set_that_is_grouped_in_two_ways() -> None:
    """The nodes are senders and receivers, in other graphs."""
    layer, x = EdgeAttention(7, 4, H, gate=HeadGate(7, H, 5)), torch.randn(5, 7)
    made = BipartiteGraph.between(torch.tensor([0, 3, 5]), torch.tensor([0, 1, 5]))
    torch.testing.assert_close(layer((x, x), made), layer((x, x), made.edge_index))


def test_two_sets_that_do_not_fit_are_refused() -> None:
    layer, made = EdgeAttention((7, 6), 4, H), cross()
    with pytest.raises(ValueError, match=r"as many graphs, got \[3\] and \[2\]"):
        BipartiteGraph.between(torch.tensor([0, 1, 2]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"starts at 0 and never descends, got \[0, 3, 2\]"):
        BipartiteGraph.between(torch.tensor([0, 3, 2]), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="expected 49 senders and 43 receivers"):
        layer((torch.randn(49, 7), torch.randn(49, 6)), made)
    assert repr(made).startswith("BipartiteGraph(num_graphs=7, 49 to 43 nodes, num_edges=1")
