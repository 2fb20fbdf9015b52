"""A bipartite graph is its edge list: pairs, packings, and attention over them with every gradient."""

import pytest
import torch
from torch import Tensor, nn

from gtx.attention import AdditiveScore, GATv2Score, Hardmax, HeadGate, Sigmoid
from gtx.graph import BipartiteGraph, CompleteGraph
from gtx.nn import EdgeAttention

SOURCE = torch.tensor([0, 2, 2, 5, 45, 45, 46, 49])  # two graphs without senders
TARGET = torch.tensor([0, 1, 3, 3, 33, 33, 40, 43])  # two without receivers, one of them empty
H = 2


def graph(max_buckets: int = 4) -> BipartiteGraph:
    return BipartiteGraph.between(SOURCE, TARGET, max_buckets)


def test_its_edges_are_the_cross_edges() -> None:
    made, ranges = graph(), [(range(*SOURCE[b : b + 2]), range(*TARGET[b : b + 2])) for b in range(7)]
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
    made = graph()
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


def test_what_does_not_fit_is_refused() -> None:
    layer, made = EdgeAttention((7, 6), 4, H), graph()
    with pytest.raises(ValueError, match=r"as many graphs, got \[3\] and \[2\]"):
        BipartiteGraph.between(torch.tensor([0, 1, 2]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"starts at 0 and never descends, got \[0, 3, 2\]"):
        BipartiteGraph.between(torch.tensor([0, 3, 2]), torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="expected 49 senders and 43 receivers"):
        layer((torch.randn(49, 7), torch.randn(49, 6)), made)
    assert repr(made).startswith("BipartiteGraph(num_graphs=7, 49 to 43 nodes, num_edges=1")
