"""A mask is absent edges: the complete graph with a mask is the edge list without those edges, for every attention."""

import pytest
import torch
from torch import Tensor

from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, close
from tests.attention.family import CASES, make

EVERY = pytest.mark.parametrize("name", CASES)
LONELY = [4, 10, 24]  # receivers without any edge; node 10 is in a molecule that has none at all


def masked() -> CompleteGraph:
    """Not symmetric; molecule 2 (nodes 4 to 10) keeps a few edges, molecule 3 (nodes 11, 12) none."""
    mask = torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(4)) < 0.6
    mask &= ~torch.isin(GRAPH.pair_index[1], torch.tensor([*LONELY, 11, 12]))
    return GRAPH.masked(mask)


def without_edges(layer: EdgeAttention) -> Tensor | float:
    """What a sum over nothing becomes: zero, or the bias that comes after."""
    return 0.0 if layer.lin_out is None or layer.lin_out.bias is None else layer.lin_out.bias


@EVERY
def test_a_masked_graph_is_the_edge_list_that_is_left(name: str) -> None:
    """A receiver without edges yields zeros, features of no edge do not matter, and all gradients are finite."""
    graph, layer = masked(), make(name)
    x, e = CASES[name].inputs()
    assert 0 < graph.num_edges < GRAPH.num_pairs
    used = [t for t in (x, e, *layer.parameters()) if t is not None]
    torch.manual_seed(0)
    target = torch.randn(len(x), layer.width, dtype=x.dtype)
    results = []
    spoilt, of_edges = (None, None) if e is None else (torch.where(graph.mask[:, None], e, torch.nan), graph.select(e))
    for edges, given in ((graph, spoilt), (graph.edge_index, of_edges)):
        out, weights, states = layer.attend(x, edges, given, weights=True, states=True)
        assert out[[*LONELY, 11, 12]].eq(without_edges(layer)).all()
        if edges is graph:
            assert weights[~graph.mask].eq(0).all()
            weights, states = graph.select(weights), graph.select(states)
        of_states = torch.linspace(-1, 1, states.numel()).view_as(states).to(x.dtype)
        total = (out * target).sum() + (states * of_states).sum()
        results.append([out, weights, states, *torch.autograd.grad(total, used, allow_unused=True)])
    for one, other in zip(*results, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.isfinite().all()
            close(one, other)
