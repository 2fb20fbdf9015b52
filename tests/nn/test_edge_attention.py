"""Both layouts are one equation; known attentions are special cases; guarantees hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import GATConv, TransformerConv
from torch_geometric.utils import to_edge_index, to_torch_coo_tensor

from gtx.attention import GATScore
from gtx.graph import CompleteGraph
from gtx.nn import EdgeAttention

SIZES = [3, 1, 7, 2, 12, 0]


@pytest.fixture
def graph() -> CompleteGraph:
    return CompleteGraph.from_ptr(torch.tensor([0, *SIZES]).cumsum(0))


def inputs(graph: CompleteGraph, channels: int = 8, edge_dim: int = 5, dtype: torch.dtype = torch.float64) -> tuple:
    torch.manual_seed(0)
    x = torch.randn(graph.num_nodes, channels, dtype=dtype, requires_grad=True)
    e = torch.randn(graph.num_edges, edge_dim, dtype=dtype, requires_grad=True)
    return x, e


@pytest.mark.parametrize("concat", [True, False])
def test_is_pyg_transformer_conv(graph: CompleteGraph, concat: bool) -> None:
    """With edge features in key and value and its weights copied in."""
    conv = TransformerConv(8, 4, heads=3, concat=concat, edge_dim=5, root_weight=False).double()
    layer = EdgeAttention(8, 4, 3, concat, edge_dim=5, edge_bias=False, edge_key=True, edge_value=True).double()
    for name in ("lin_query", "lin_key", "lin_value"):
        getattr(layer, name).load_state_dict(getattr(conv, name).state_dict())
    for name in ("lin_edge_key", "lin_edge_value"):  # PyG shares one projection between key and value
        getattr(layer, name).load_state_dict(conv.lin_edge.state_dict())
    x, e = inputs(graph)
    expected = conv(x, graph.edge_index, e)
    for edges in (graph, graph.edge_index):
        torch.testing.assert_close(layer(x, edges, e), expected, atol=1e-10, rtol=0)


def test_widths_may_be_left_to_the_first_batch() -> None:
    layer, source, target = EdgeAttention((-1, -1), 4, heads=2), torch.randn(5, 7), torch.randn(3, 6)
    assert layer((source, target), torch.tensor([[0, 4, 2, 3], [0, 0, 2, 2]])).shape == (3, 8)
    assert layer.lin_key.in_channels == 7 and layer.lin_query.in_channels == 6
    assert EdgeAttention(-1, 4)(source, torch.tensor([[0], [1]])).shape == (5, 4)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = EdgeAttention(8, 4, heads=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.attention(x, edge_index).sum(-1, keepdim=True)


def test_attention_explainer_reads_the_weights() -> None:
    graph = CompleteGraph.from_ptr(torch.tensor([0, 4]))
    net = Net().eval()
    x = torch.randn(4, 8)
    explainer = Explainer(
        net,
        AttentionExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "regression", "task_level": "node"},
    )
    explanation = explainer(x, graph.edge_index)
    _, (_, alpha) = net.attention(x, graph.edge_index, return_attention_weights=True)
    torch.testing.assert_close(explanation.edge_mask, alpha.max(-1).values)
    with pytest.raises(ValueError, match=r"graph\.edge_index"):
        explainer(x, graph)


@pytest.mark.filterwarnings("ignore")  # torch calls the compressed layout beta
@pytest.mark.parametrize("nodes", [2, 5])
def test_a_sparse_adjacency_is_named(nodes: int) -> None:
    layer, x = EdgeAttention(8, 4, heads=2), torch.randn(nodes, 8)
    edge_index = torch.tensor([[0, 1], [1, 0]])
    adjacency = to_torch_coo_tensor(edge_index, size=nodes)
    for sparse in (adjacency, adjacency.to_sparse_csr()):
        with pytest.raises(ValueError, match=rf"sparse adjacency \[{nodes}, {nodes}\]: pass .*to_edge_index"):
            layer(x, sparse)
        torch.testing.assert_close(layer(x, to_edge_index(sparse)[0]), layer(x, edge_index))


@pytest.mark.filterwarnings("ignore")
def test_exports_with_dynamic_nodes_and_edges() -> None:
    layer = EdgeAttention(8, 4, heads=2, edge_dim=5, edge_key=True).eval()
    N, E = torch.export.Dim("N", min=2, max=5000), torch.export.Dim("E", min=2, max=50000)
    edge_index = torch.randint(0, 9, (2, 30))
    program = torch.export.export(
        layer,
        (torch.randn(9, 8), edge_index, torch.randn(30, 5)),
        dynamic_shapes={"x": {0: N}, "edge_index": {1: E}, "edge_attr": {0: E}},
    )
    x, edge_index, e = torch.randn(40, 8), torch.randint(0, 40, (2, 77)), torch.randn(77, 5)
    torch.testing.assert_close(program.module()(x, edge_index, e), layer(x, edge_index, e))


def test_dropout_acts_on_the_weights_in_training_only(graph: CompleteGraph) -> None:
    layer = EdgeAttention(8, 4, heads=2, dropout=0.5)
    x, _ = inputs(graph, dtype=torch.float32)
    for edges in (graph, graph.edge_index):
        assert not torch.equal(layer.train()(x, edges), layer(x, edges))
        assert torch.equal(layer.eval()(x, edges), layer(x, edges))


def test_targets_without_features_are_pygs() -> None:
    """`(x, None)` and `size`, as PyG's GATConv takes them, and edge features `[E]`."""
    conv = GATConv(8, 4, heads=2, add_self_loops=False, bias=False).double()
    layer = EdgeAttention(8, 4, 2, bias=False, projections="shared", score=GATScore(2, 4)).double()
    layer.lin_query.load_state_dict(conv.lin.state_dict())
    with torch.no_grad():
        layer.score.sender.copy_(conv.att_src[0])
        layer.score.receiver.copy_(conv.att_dst[0])
    x, edge_index = torch.randn(5, 8).double(), torch.tensor([[0, 4, 2, 3], [0, 0, 2, 2]])
    for size, receivers in (((5, 6), 6), (None, 5)):
        out = layer((x, None), edge_index, size=size)
        assert out.shape == (receivers, 8)
        torch.testing.assert_close(out, conv((x, None), edge_index, size=size), atol=1e-12, rtol=0)
    with pytest.raises(ValueError, match="expected x of 4 senders and 6 receivers, got 5 and 6"):
        layer((x, None), edge_index, size=(4, 6))
    with pytest.raises(ValueError, match="a target of None has no width"):
        EdgeAttention((-1, -1), 4)((x.float(), None), edge_index)
    layer, e = EdgeAttention(8, 4, 2, edge_dim=1, edge_key=True).double(), torch.randn(4).double()
    assert layer(x, edge_index, e).equal(layer(x, edge_index, e[:, None]))


def test_nodes_of_another_width_or_type_are_named(graph: CompleteGraph) -> None:
    layer = EdgeAttention(8, 4, heads=2, edge_dim=5)
    x, e = inputs(graph, dtype=torch.float32)
    for edges in (graph, graph.edge_index):
        with pytest.raises(ValueError, match=r"expected x \[N, 8\], got \[25, 7\]"):
            layer(x[:, 1:], edges, e)
        with pytest.raises(ValueError, match=r"expected x of torch.float32, as the weights are, got torch.float64"):
            layer(x.double(), edges, e)
        with pytest.raises(ValueError, match=r"got torch.int64"):
            layer(x.long(), edges, e)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            layer(x.bfloat16(), edges, e)
