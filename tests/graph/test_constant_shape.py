"""A graph of constant shape holds the complete graphs of its molecules, and a ghost that none of them sees."""

from __future__ import annotations

import pytest
import torch

from gtx.graph import CompleteGraph, add_virtual_nodes
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph, ShapeNotConstantError

SIZES = torch.tensor([7, 4, 4, 2, 1, 0])
BATCH_SHAPE = BatchShape(23, 120, 0, ((1, 8), (2, 5), (3, 2)))
N, P = int(SIZES.sum()), int(SIZES.square().sum())


def graphs() -> tuple[ConstantShapeGraph, CompleteGraph]:
    plain = CompleteGraph.from_ptr(torch.cat([SIZES.new_zeros(1), SIZES.cumsum(0)]))
    return ConstantShapeGraph.from_sizes(SIZES, BATCH_SHAPE), plain


def test_the_pairs_of_the_molecules_are_those_of_complete_graphs() -> None:
    graph, plain = graphs()
    assert (graph.num_graphs, graph.num_nodes, graph.num_pairs) == (7, 23, 120)
    assert graph.pair_index[:, :P].equal(plain.pair_index) and graph.pair_index[:, P:].eq(22).all()
    assert graph.pair_of(plain.pair_index).equal(torch.arange(P))
    assert graph.diagonal[:N].equal(plain.diagonal) and graph.diagonal[N:].ge(P).all()
    assert graph.batch[:N].equal(plain.batch) and graph.batch[N:].eq(6).all()


def test_rows_go_into_slots_and_come_back() -> None:
    graph, _ = graphs()
    for packing, count, real in ((graph.nodes, 23, N), (graph.pairs, 120, P)):
        rows = torch.arange(1, count + 1, dtype=torch.float64)[:, None].requires_grad_()
        slots = packing.pack(rows, -1.0)
        assert packing.unpack(slots)[:real].equal(rows[:real])
        filled = slots[slots > 0]
        assert set(range(1, real + 1)) <= set(filled.tolist())
        (gradient,) = torch.autograd.grad(packing.unpack(slots * 2.0)[:real].sum(), rows)
        assert gradient[:real].eq(2.0).all() and gradient[real:].eq(0.0).all()
    assert sum(count * size for count, size, _ in graph.packed.shapes) == len(graph.nodes.row_of_slot)


def test_nothing_is_read_back_from_the_device() -> None:
    sizes = SIZES.to("meta")
    graph = ConstantShapeGraph.from_sizes(sizes, BATCH_SHAPE)
    grown = add_virtual_nodes(graph.masked(torch.ones(120, dtype=torch.bool, device="meta")), 2)
    assert grown.graph.num_nodes == 23 + 2 * 7 and grown.graph.nodes.row_of_slot.device.type == "meta"


def test_virtual_nodes_are_those_of_the_plain_graph() -> None:
    graph, plain = graphs()
    mask = torch.rand(120, generator=torch.Generator().manual_seed(0)) < 0.4
    larger, expected = add_virtual_nodes(graph.masked(mask), 2), add_virtual_nodes(plain.masked(mask[:P]), 2)
    here, pairs = expected.graph.num_nodes, expected.graph.num_pairs
    assert larger.nodes[:N].equal(expected.nodes) and larger.virtual[:12].equal(expected.virtual)
    assert larger.pairs[:P].equal(expected.pairs)
    assert larger.graph.batch[:here].equal(expected.graph.batch)
    assert larger.graph.mask[:pairs].equal(expected.graph.mask)


def test_what_has_no_constant_shape_is_refused() -> None:
    graph, _ = graphs()
    assert graph.edge_index.shape == (2, 120) and graph.select(torch.ones(120)).shape == (120,)
    masked = graph.masked(torch.ones(120, dtype=torch.bool))
    for ask in (lambda: masked.edge_index, lambda: masked.select(torch.ones(120))):
        with pytest.raises(ShapeNotConstantError, match="under a mask"):
            ask()
    moved = masked.to("meta")
    assert moved.mask.device.type == "meta" and moved.batch_shape == BATCH_SHAPE
