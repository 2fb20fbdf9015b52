"""Virtual nodes join every node of their molecule; what was there before stays as it was."""

from __future__ import annotations

import pytest
import torch

from gtx.graph import CompleteGraph, add_virtual_nodes

SIZES = [3, 0, 1, 5]
GRAPH = CompleteGraph.from_ptr(torch.tensor([0, *SIZES]).cumsum(0))
COUNTS = pytest.mark.parametrize("count", [1, 2])


def pairs(index: torch.Tensor) -> set[tuple[int, int]]:
    return set(map(tuple, index.T.tolist()))


@COUNTS
def test_each_molecule_grows_by_its_virtual_nodes_which_come_last(count: int) -> None:
    larger, nodes, virtual, _ = add_virtual_nodes(GRAPH, count)
    assert larger.ptr.diff().tolist() == [size + count for size in SIZES]
    assert nodes.tolist() + virtual.tolist() != sorted(nodes.tolist() + virtual.tolist())  # they are interleaved
    assert sorted(nodes.tolist() + virtual.tolist()) == list(range(sum(SIZES) + count * len(SIZES)))
    assert larger.batch[nodes].equal(GRAPH.batch)
    assert larger.batch[virtual].tolist() == [b for b in range(len(SIZES)) for _ in range(count)]
    for b in range(len(SIZES)):
        of_b = larger.batch[virtual] == b
        assert virtual[of_b].tolist() == list(range(int(larger.ptr[b + 1]) - count, int(larger.ptr[b + 1])))
    assert larger.mask is None


@COUNTS
def test_old_pairs_keep_their_ends(count: int) -> None:
    larger, nodes, _, old = add_virtual_nodes(GRAPH, count)
    assert larger.pair_index[:, old].equal(nodes[GRAPH.pair_index])
    assert len(old.unique()) == GRAPH.num_pairs


@COUNTS
def test_masked_pairs_stay_masked_and_virtual_nodes_join_all_others(count: int) -> None:
    mask = torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(0)) < 0.4
    lonely = [1, 3]  # no edge in, none out; node 3 is a molecule by itself
    mask &= ~torch.isin(GRAPH.pair_index, torch.tensor(lonely)).any(0)
    graph = GRAPH.masked(mask)
    larger, nodes, virtual, _ = add_virtual_nodes(graph, count)
    joined = set(graph.edge_index.flatten().tolist())
    assert 1 not in joined and len(joined) == sum(SIZES) - 2
    expected = pairs(nodes[graph.edge_index])
    for v in virtual.tolist():
        mates = [int(nodes[i]) for i in joined if GRAPH.batch[i] == larger.batch[v]]
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
        add_virtual_nodes(GRAPH, 0)
