"""Attention over triplets: the paper's equations, whatever the layout, the mask and the blocks."""

import pytest
import torch
from torch import Tensor

from gtx.graph import CompleteGraph
from gtx.nn import EdgeStateUpdate, TripletAttention
from tests.attention.by_hand import close, complete

K, H = 6, 2
GRAPH = complete([4, 1, 3, 0, 2])


def make() -> TripletAttention:
    torch.manual_seed(0)
    layer = TripletAttention(K, H).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return layer


def states(graph: CompleteGraph = GRAPH) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(graph.num_pairs, K, dtype=torch.float64, generator=generator).requires_grad_()


def masked() -> CompleteGraph:
    return GRAPH.masked(torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(2)) < 0.6)


def by_hand(layer: TripletAttention, e: Tensor, graph: CompleteGraph) -> Tensor:
    """o_ij and o'_ij, pair by pair, third node by third node; i receives, j sends."""
    number = {(r, s): p for p, (s, r) in enumerate(graph.edge_index.T.tolist())}
    out = []
    for i, j in number:
        both = []
        for way in range(2):

            def of(pair: tuple[int, int], way: int = way) -> tuple[Tensor, ...]:
                row = e[number[pair]]
                q, p, v = layer.lin_states[way](row).view(3, H, K // H)
                return q, p, v, *layer.lin_bias_gate[way](row).view(2, H)

            scores, gated = [], []
            for k in range(graph.num_nodes):
                to, beside = ((j, k), (i, k)) if way == 0 else ((k, j), (k, i))
                if to in number and beside in number:
                    _, p, v, _, _ = of(to)
                    *_, b, g = of(beside)
                    scores.append((of((i, j))[0] * p).sum(-1) / (K // H) ** 0.5 + b)
                    gated.append(v / (1 + (-g).exp())[:, None])
            if scores:
                weights = torch.stack(scores).exp() / torch.stack(scores).exp().sum(0)
                both.append((weights[..., None] * torch.stack(gated)).sum(0).flatten())
            else:
                both.append(torch.zeros(K, dtype=torch.float64))
        out.append(layer.lin_out(torch.cat(both)))
    return torch.stack(out)


@pytest.mark.slow
def test_is_the_equation_in_both_layouts_and_its_gradients_agree() -> None:
    layer, e, graph = make(), states(), masked()
    expected = by_hand(layer, graph.select(e), graph)
    assert expected.std() > 0.1
    spoilt = torch.where(graph.mask[:, None], e, torch.nan)
    results = []
    for out in (layer(graph.select(e), graph.edge_index), graph.select(layer(spoilt, graph))):
        close(out, expected)
        results.append(torch.autograd.grad(out.sin().sum(), [e, *layer.parameters()]))
    for one, other in zip(*results, strict=True):
        close(one, other)


def test_blocks_change_nothing(monkeypatch) -> None:
    layer, e, graph = make(), states(), masked()
    outs = []
    for block in (1 << 22, 1):
        monkeypatch.setattr("gtx.nn.edge_states._BLOCK", block)
        out = layer(e, graph)
        outs.append([out, *torch.autograd.grad(out.sin().sum(), [e, *layer.parameters()])])
    for one, other in zip(*outs, strict=True):
        close(one, other, 1e-12)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ValueError, match="triplet heads that divide the pair channels, got 4 and 6"):
        TripletAttention(6, 4)
    update = EdgeStateUpdate(K, 3, triplets=TripletAttention(K, H))
    with pytest.raises(ValueError, match="expected an edge list or a complete graph, got None"):
        update(torch.zeros(4, K), torch.zeros(4, 3))
    assert repr(update.triplets) == "TripletAttention(6, heads=2)"
