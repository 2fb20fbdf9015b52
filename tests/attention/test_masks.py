"""A mask is absent edges: the complete graph with a mask is the edge list without those edges, for every attention."""

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.graph import CausalEdges, CompleteGraph
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, close, complete
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
    """A receiver without edges yields zeros, and all gradients are finite."""
    graph, layer = masked(), make(name)
    x, e = CASES[name].inputs()
    assert 0 < graph.num_edges < GRAPH.num_pairs
    used = [t for t in (x, e, *layer.parameters()) if t is not None]
    torch.manual_seed(0)
    target = torch.randn(len(x), layer.width, dtype=x.dtype)
    results = []
    for edges in (graph, graph.edge_index):
        given = e if e is None or edges is graph else graph.select(e)
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


@EVERY
def test_nothing_later_reaches_a_causal_step(name: str) -> None:
    """The gradient of step t in all later nodes, and in all pairs with them, is exactly zero."""
    sizes = [6, 3]
    graph = complete(sizes)
    graph = graph.masked(CausalEdges()(Data(), graph))
    layer = make(name)
    x, e = CASES[name].inputs(graph)
    out = layer(x, graph, e)
    sender, receiver = graph.pair_index
    t, last = 3, 5
    used = [x] if e is None else [x, e]
    weight = torch.arange(1.0, 1 + layer.width, dtype=torch.float64)
    grads = torch.autograd.grad((out[t] * weight).sum(), used, allow_unused=True, retain_graph=True)
    assert grads[0][t + 1 :].eq(0).all()
    assert grads[0][0].ne(0).any()
    if e is not None:
        assert grads[1][(sender > t) | (receiver > t)].eq(0).all()
    of_last = torch.autograd.grad((out[last] * weight).sum(), x)[0]
    assert of_last[: last + 1].ne(0).any(1).all() or (not CASES[name].smooth and of_last[last].ne(0).any())
    assert of_last[last + 1 :].eq(0).all()  # the other sequence


def test_features_of_a_pair_that_is_no_edge_do_not_matter_not_even_nan() -> None:
    torch.manual_seed(0)
    graph = CompleteGraph.from_ptr(torch.tensor([0, 4, 9]))
    layer = EdgeAttention(6, 3, heads=2, edge_dim=5, edge_key=True, edge_value=True).double()
    x, e = torch.randn(9, 6, dtype=torch.float64), torch.randn(graph.num_pairs, 5, dtype=torch.float64)
    mask = torch.rand(graph.num_pairs) < 0.6
    expected = layer(x, graph.masked(mask), e)
    out = layer(x, graph.masked(mask), e.masked_fill(~mask[:, None], torch.nan))
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in layer.parameters())
