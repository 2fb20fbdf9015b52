"""A layer is attention, local messages and an MLP as residuals; it compiles whole."""

from __future__ import annotations

import pytest
import torch

from gtx.graph import CompleteGraph
from gtx.nn import BondMessagePassing, EdgeAttention, GraphTransformerLayer

GRAPH = CompleteGraph.from_ptr(torch.tensor([0, 3, 8]))
BONDS = torch.tensor([[0, 1, 3, 4], [1, 0, 4, 3]])


def make(local: bool = True, **options: object) -> GraphTransformerLayer:
    torch.manual_seed(0)
    attention = EdgeAttention(8, 4, heads=2, edge_dim=3, project=True)
    return GraphTransformerLayer(attention, BondMessagePassing(8) if local else None, 8, **options)


def inputs() -> tuple:
    torch.manual_seed(1)
    return torch.randn(8, 8), torch.randn(GRAPH.num_edges, 3), torch.randn(4, 8)


@pytest.mark.parametrize("norm_first", [True, False])
def test_is_the_equation_in_its_docstring(norm_first: bool) -> None:
    layer = make(norm_first=norm_first).eval()
    x, e, b = inputs()

    def mix(v: torch.Tensor) -> torch.Tensor:
        return layer.attention(v, GRAPH, e) + layer.local(v, BONDS, b)

    one, two = layer.norm_attention, layer.norm_mlp
    if norm_first:
        v = x + mix(one(x))
        expected = v + layer.mlp(two(v))
    else:
        v = one(x + mix(x))
        expected = two(v + layer.mlp(v))
    torch.testing.assert_close(layer(x, GRAPH, e, BONDS, b)[0], expected)


def test_residual_dropout_acts_in_training_only() -> None:
    layer = make(dropout=0.5)
    x, e, b = inputs()
    assert not torch.equal(layer(x, GRAPH, e, BONDS, b)[0], layer(x, GRAPH, e, BONDS, b)[0])
    layer.eval()
    assert torch.equal(layer(x, GRAPH, e, BONDS, b)[0], layer(x, GRAPH, e, BONDS, b)[0])


def test_attention_of_another_width_is_refused() -> None:
    with pytest.raises(ValueError, match="attention that gives 16 channels, got 8"):
        GraphTransformerLayer(EdgeAttention(16, 4, heads=2), None, 16)
