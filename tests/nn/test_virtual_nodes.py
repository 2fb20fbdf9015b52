"""Learned virtual nodes: features of their own, for themselves and for their pairs."""

from __future__ import annotations

import torch

from gtx.graph import CompleteGraph
from gtx.nn import AddVirtualNodes, EdgeAttention

SIZES = [3, 0, 1, 5]
GRAPH = CompleteGraph.from_ptr(torch.tensor([0, *SIZES]).cumsum(0))


def inputs() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    x = torch.randn(GRAPH.num_nodes, 6, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(GRAPH.num_pairs, 4, dtype=torch.float64, requires_grad=True)


def test_atoms_and_their_pairs_keep_their_features_and_the_new_ones_are_learned() -> None:
    layer = AddVirtualNodes(2, 6, 4).double()
    x, e = inputs()
    larger, nodes, everything, pairs = layer(GRAPH, x, e)
    assert everything.shape == (sum(SIZES) + 2 * len(SIZES), 6) and pairs.shape == (larger.num_pairs, 4)
    assert everything[nodes.atoms].equal(x)
    assert everything[nodes.virtual].view(len(SIZES), 2, 6).eq(layer.node).all()
    old = torch.zeros(larger.num_pairs, dtype=torch.bool)
    for number, (sender, receiver) in enumerate(GRAPH.pair_index.T.tolist()):
        ends = torch.stack([nodes.atoms[sender], nodes.atoms[receiver]])
        same = (larger.pair_index == ends[:, None]).all(0)
        assert int(same.sum()) == 1 and pairs[same][0].equal(e[number])
        old |= same
    assert pairs[~old].eq(layer.pair).all() and int((~old).sum()) == larger.num_pairs - GRAPH.num_pairs


def test_what_concerns_the_whole_passes_through_them_alone() -> None:
    """Two atoms without a bond: through the virtual node, two layers carry one's features to the other."""
    graph = CompleteGraph.from_ptr(torch.tensor([0, 2])).masked(torch.tensor([True, False, False, True]))
    virtual, layer = AddVirtualNodes(1, 6, None).double(), EdgeAttention(6, 6).double()
    x = torch.randn(2, 6, dtype=torch.float64, requires_grad=True)

    def reach(joined: bool) -> torch.Tensor:
        larger, nodes, v, _ = virtual(graph, x, None) if joined else (graph, None, x, None)
        out = layer(layer(v, larger), larger)
        return torch.autograd.grad(out[nodes.atoms[0] if joined else 0].sum(), x)[0][1]

    assert reach(joined=False).eq(0).all() and reach(joined=True).ne(0).all()
