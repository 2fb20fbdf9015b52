"""What holds for every attention: both layouts, any order of atoms, any batch-mates, any blocks, true gradients."""

import itertools

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention
from gtx.testing import check_attention
from tests.attention.by_hand import GRAPH, close, complete, matrix_features
from tests.attention.family import CASES, H, make

EVERY = pytest.mark.parametrize("name", CASES)


def everything(layer: EdgeAttention, x: Tensor, edges: object, e: Tensor | None, used: list) -> list[Tensor | None]:
    """Output, weights and states of the edges, and the gradient of a sum of output and states in all that is used."""
    out, weights, states = layer.attend(x, edges, e, weights=True, states=True)
    if isinstance(edges, CompleteGraph):
        assert edges.mask is None or weights[~edges.mask].eq(0).all()
        weights, states = edges.select(weights), edges.select(states)
    total = sum((t * torch.linspace(-1, 2, t.numel()).view_as(t).to(t)).sum() for t in (out, states))
    return [out, weights, states, *torch.autograd.grad(total, [u for u in used if u is not None], allow_unused=True)]


def assert_same(results: list[list[Tensor | None]], tolerance: float) -> None:
    """One after the other is finite and close, or absent in both."""
    for one, other in zip(*results, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.isfinite().all()
            close(one, other, tolerance)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, torch.float64) for name in CASES),
        *((name, torch.float32) for name in ("EGT", "GRIT", "edges everywhere")),
    ],
)
def test_the_guarantees(name: str, dtype: torch.dtype) -> None:
    case = CASES[name]
    check_attention(case.make(), matrix_features if case.edges == "matrix" else None, dtype, case.smooth)


@EVERY
def test_blocks_of_receivers_change_nothing(name: str, monkeypatch) -> None:
    layer, graph = make(name), complete([3, 5])
    x, e = CASES[name].inputs(graph)
    masked = graph.masked(torch.rand(graph.num_pairs, generator=torch.Generator().manual_seed(3)) < 0.7)
    for edges in (graph, masked):
        results = []
        for block in (1 << 22, 1):
            monkeypatch.setattr("gtx.attention.definition._BLOCK", block)
            results.append(everything(layer, x, edges, e, [x, e, *layer.parameters()]))
        assert_same(results, 1e-12)


@EVERY
def test_weights_are_before_dropout_and_sum_to_one_where_normalised(name: str) -> None:
    layer = make(name)
    x, e = CASES[name].inputs()
    for edges in (GRAPH, GRAPH.edge_index):
        layer.dropout = 0.0
        _, (given, alpha) = layer(x, edges, e, return_attention_weights=True)
        layer.dropout = 0.5
        _, (_, in_training) = layer(x, edges, e, return_attention_weights=True)
        assert given is edges and alpha.shape == (GRAPH.num_pairs, H)
        torch.testing.assert_close(alpha, in_training, atol=0, rtol=0)
    sums = torch.zeros(GRAPH.num_nodes, H, dtype=torch.float64).index_add(0, GRAPH.pair_index[1], alpha)
    assert torch.allclose(sums, torch.ones_like(sums), atol=1e-12, rtol=0) == CASES[name].sums_to_one


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_one_compilation_serves_every_batch() -> None:
    """All layouts compile in the layers of `tests/nn/test_transformer_layer.py`.

    With as many buckets: here one. The numbers of molecules and atoms are unlike those of channels and heads, since the
    compiler takes equal sizes for the same size.
    """
    name = "edges everywhere"
    layer, counter = make(name, torch.float32), CompileCounter()
    torch._dynamo.reset()
    compiled, made = torch.compile(layer, dynamic=True, fullgraph=True, backend=counter), []
    for sizes in ([3, 9, 2, 6, 2, 2, 2], [4, 4, 9, 2, 6, 9, 9, 9], [1, 1, 1, 4, 20, 3, 1, 1, 1]):
        graph = CompleteGraph.from_ptr(torch.tensor([0, *itertools.accumulate(sizes)]), max_buckets=1)
        graph = graph.masked(graph.pair_index[0] <= graph.pair_index[1])
        x, e = CASES[name].inputs(graph, torch.float32)
        out, expected = compiled(x, graph, e), layer(x, graph, e)
        close(out, expected, 1e-5)
        close(*(torch.autograd.grad(o.square().sum(), x)[0] for o in (out, expected)), 1e-4)
        made.append(counter.frame_count)
    assert made == [1, 1, 1]


# --- A mask is absent edges: the complete graph with a mask is the edge list without those edges, for every attention.


LONELY = [4, 10, 24]  # receivers without any edge; node 10 is in a molecule that has none at all


def masked() -> CompleteGraph:
    """Not symmetric; molecule 2 (nodes 4 to 10) keeps a few edges, molecule 3 (nodes 11, 12) none."""
    mask = torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(4)) < 0.6
    mask &= ~torch.isin(GRAPH.pair_index[1], torch.tensor([*LONELY, 11, 12]))
    return GRAPH.masked(mask)


@EVERY
def test_a_masked_graph_is_the_edge_list_that_is_left(name: str) -> None:
    """A receiver without edges yields zeros, features of no edge do not matter, and all gradients are finite."""
    graph, layer = masked(), make(name)
    x, e = CASES[name].inputs()
    assert 0 < graph.num_edges < GRAPH.num_pairs
    spoilt, of_edges = (None, None) if e is None else (torch.where(graph.mask[:, None], e, torch.nan), graph.select(e))
    results = [
        everything(layer, x, edges, given, [x, e, *layer.parameters()])
        for edges, given in ((graph, spoilt), (graph.edge_index, of_edges))
    ]
    assert_same(results, 1e-10)
    # a sum over nothing is zero, or the bias that comes after
    nothing = 0.0 if layer.lin_out is None or layer.lin_out.bias is None else layer.lin_out.bias
    for out, *_ in results:
        assert out[[*LONELY, 11, 12]].eq(nothing).all()
