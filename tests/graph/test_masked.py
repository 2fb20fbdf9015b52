"""A graph with fewer edges: the pairs stay, some of them are no edges."""

from __future__ import annotations

import pytest
import torch
import torch.utils._pytree as pytree

from gtx.graph import CompleteGraph

GRAPH = CompleteGraph.from_ptr(torch.tensor([0, 3, 3, 4, 9]))
MASK = torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(0)) < 0.5


def test_edges_are_the_pairs_that_the_mask_keeps() -> None:
    graph = GRAPH.masked(MASK)
    kept = [pair for pair, keep in zip(GRAPH.edge_index.T.tolist(), MASK.tolist(), strict=True) if keep]
    assert graph.edge_index.T.tolist() == kept
    assert graph.num_edges == len(kept) == int(MASK.sum())
    assert graph.num_pairs == GRAPH.num_pairs == 35 and graph.pair_index.equal(GRAPH.pair_index)
    assert repr(graph) == f"CompleteGraph(num_graphs=4, num_nodes=9, num_edges={len(kept)} of 35)"


def test_features_of_pairs_become_features_of_edges_in_order() -> None:
    sender, receiver = GRAPH.pair_index
    graph = GRAPH.masked(MASK)
    chosen = graph.select(100 * receiver + sender)
    assert chosen.equal(100 * graph.edge_index[1] + graph.edge_index[0])
    assert GRAPH.select(sender) is sender


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
