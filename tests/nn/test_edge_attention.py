"""Both layouts are one equation; known attentions are special cases; what does not fit is refused in one line."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import functional_call
from torch_geometric.explain import AttentionExplainer, Explainer
from torch_geometric.nn import GATConv, TransformerConv
from torch_geometric.utils import to_edge_index, to_torch_coo_tensor

from gtx.attention import (
    ClippedDotScore,
    DistanceAdjacencyBlend,
    EdgeModulatedDotScore,
    GatedSoftmax,
    GATScore,
    GATv2Score,
    GRITScore,
    HeadGate,
    HeadMerge,
    LearnedSumOverHeads,
    LinearHeadMerge,
    RMATScore,
    ScaledDotScore,
    Score,
)
from gtx.encodings import CategoricalFeatureSpec, ContinuousFeatureSpec
from gtx.graph import CompleteGraph
from gtx.nn import (
    EdgeAttention,
    EdgeStateUpdate,
    GPSLayer,
    GraphTransformerLayer,
    LearnedDegreeScaling,
    PairEmbedding,
    Readout,
)
from tests.attention.by_hand import GRAPH as MOLECULES
from tests.attention.by_hand import close, in_both_layouts, inputs


def as_transformer_conv(conv: TransformerConv, concat: bool = True) -> EdgeAttention:
    """The layer with the weights of PyG's, which shares one projection of edge features between key and value."""
    width = conv.in_channels
    layer = EdgeAttention(width, 4, 3, concat, edge_dim=5, edge_bias=False, edge_key=True, edge_value=True).double()
    for name in ("lin_query", "lin_key", "lin_value"):
        getattr(layer, name).load_state_dict(getattr(conv, name).state_dict())
    for name in ("lin_edge_key", "lin_edge_value"):
        getattr(layer, name).load_state_dict(conv.lin_edge.state_dict())
    return layer


@pytest.mark.parametrize("concat", [True, False])
def test_is_pyg_transformer_conv(concat: bool) -> None:
    conv = TransformerConv(8, 4, heads=3, concat=concat, edge_dim=5, root_weight=False).double()
    x, e = inputs(8, 5)
    in_both_layouts(as_transformer_conv(conv, concat), conv(x, MOLECULES.edge_index, e), x, e)


def test_widths_may_be_left_to_the_first_batch() -> None:
    layer, source, target = EdgeAttention((-1, -1), 4, heads=2), torch.randn(5, 7), torch.randn(3, 6)
    assert layer((source, target), torch.tensor([[0, 4, 2, 3], [0, 0, 2, 2]])).shape == (3, 8)
    assert layer.lin_key.in_channels == 7 and layer.lin_query.in_channels == 6
    assert EdgeAttention(-1, 4)(source, torch.tensor([[0], [1]])).shape == (5, 4)
    assert EdgeAttention([7, 6], 4)([source, target], torch.tensor([[4], [1]])).shape == (3, 4)
    layer = EdgeAttention(7, 4, 2, edge_dim=-1, edge_key=True, edge_value=True)
    with refused(r"expected edge features \[2, -1\], got None"):
        layer(source, torch.tensor([[0, 4], [1, 1]]))
    graph, e = CompleteGraph.from_ptr(torch.tensor([0, 2, 5])), torch.randn(13, 6)
    torch.testing.assert_close(layer(source, graph, e), layer(source, graph.edge_index, e))
    others = {name: 2 * weight.detach() for name, weight in layer.named_parameters()}  # no parameters themselves
    torch.testing.assert_close(*(functional_call(layer, others, (source, g, e)) for g in (graph, graph.edge_index)))
    assert layer.edge_dim == layer.lin_edge_key.in_channels == 6
    other = EdgeAttention(7, 4, 2, edge_dim=-1, edge_key=True, edge_value=True)
    other.load_state_dict(layer.state_dict())
    with pytest.raises(RuntimeError, match="cannot be multiplied"):  # and is not learned
        other(source, graph, e[:, :5])
    torch.testing.assert_close(other(source, graph, e), layer(source, graph, e))
    meta = torch.device("meta")  # shapes alone
    assert EdgeAttention(7, 4).to(meta)(source.to(meta), torch.tensor([[0], [1]]).to(meta)).shape == (5, 4)


def test_attention_explainer_reads_the_weights() -> None:
    graph = CompleteGraph.from_ptr(torch.tensor([0, 4]))
    layer, x = EdgeAttention(8, 4, heads=2).eval(), torch.randn(4, 8)
    explainer = Explainer(
        layer,
        AttentionExplainer(),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "regression", "task_level": "node"},
    )
    explanation = explainer(x, graph.edge_index)
    _, (_, alpha) = layer(x, graph.edge_index, return_attention_weights=True)
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


def test_nodes_of_another_width_or_type_are_named() -> None:
    layer = EdgeAttention(8, 4, heads=2, edge_dim=5)
    x, e = inputs(8, 5, dtype=torch.float32)
    for edges in (MOLECULES, MOLECULES.edge_index):
        with pytest.raises(ValueError, match=r"expected x \[N, 8\], got \[25, 7\]"):
            layer(x[:, 1:], edges, e)
        with pytest.raises(ValueError, match=r"expected x of torch.float32, as the weights are, got torch.float64"):
            layer(x.double(), edges, e)
        with pytest.raises(ValueError, match=r"got torch.int64"):
            layer(x.long(), edges, e)
        with pytest.raises(
            ValueError, match=r"edge features of torch.float32, .*, got torch.int64: .*CategoricalEmbedding"
        ):
            layer(x, edges, e.long())
        with torch.autocast("cpu", dtype=torch.bfloat16):
            layer(x.bfloat16(), edges, e)


# --- From one set of nodes to another: source and target of unlike widths, on an edge list.


EDGES = torch.tensor([[0, 4, 2, 3, 1, 4], [0, 0, 2, 2, 3, 3]])  # receiver 1 has none


def two_sets() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return tuple(torch.randn(shape, dtype=torch.float64) for shape in ((5, 7), (4, 6), (6, 5)))


def test_query_of_the_target_key_and_value_of_the_source() -> None:
    source, target, e = two_sets()
    conv = TransformerConv((7, 6), 4, heads=3, edge_dim=5, root_weight=False).double()
    out, (_, alpha) = as_transformer_conv(conv)((source, target), EDGES, e, return_attention_weights=True)
    assert out.shape == (4, 12) and alpha.shape == (6, 3) and out[1].eq(0).all()
    close(out, conv((source, target), EDGES, e))


def test_a_gate_sees_both_sides() -> None:
    """Zhang et al. 2018, eq. 3: σ(W_g [x_i ‖ max_j W_m x_j ‖ mean_j x_j])."""
    source, target, _ = two_sets()
    gate = HeadGate((7, 6), 2, 5)
    layer = EdgeAttention((7, 6), 4, 2, gate=gate).double()
    for r in range(4):
        senders = source[EDGES[0, EDGES[1] == r]]
        largest, mean = torch.zeros(5).double(), torch.zeros(7).double()  # of no sender
        if len(senders):
            largest, mean = (senders @ gate.lin_max.weight.T + gate.lin_max.bias).amax(0), senders.mean(0)
        expected = (gate.lin_gate.weight @ torch.cat([target[r], largest, mean]) + gate.lin_gate.bias).sigmoid()
        close(gate(target, source, EDGES)[r], expected)
    gated, layer.gate = layer((source, target), EDGES), None
    close(gated, layer((source, target), EDGES) * gate(target, source, EDGES).repeat_interleave(4, 1))


def test_one_width_may_share_a_projection_or_have_none() -> None:
    source, target = torch.randn(5, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    raw = EdgeAttention((4, 4), 4, projections="none", score=ScaledDotScore(1.0)).double()
    shared = EdgeAttention((4, 4), 3, projections="shared", bias=False, score=ScaledDotScore(1.0)).double()
    U = shared.lin_query.weight.T
    s = source[[0, 4]]
    close(raw((source, target), EDGES)[0], F.softmax(target[0] @ s.T, -1) @ s)
    close(shared((source, target), EDGES)[0], F.softmax(target[0] @ U @ (s @ U).T, -1) @ s @ U)


def test_a_complete_graph_joins_one_set_only() -> None:
    source, target, _ = two_sets()
    with pytest.raises(ValueError, match=r"joins one set of nodes; for \(source, target\) pass a BipartiteGraph"):
        EdgeAttention((7, 6), 4, 2).double()((source, target), CompleteGraph.from_ptr(torch.tensor([0, 4])))


# --- What does not fit is refused in one line that says what was expected and what came.


GRAPH = CompleteGraph.from_ptr(torch.tensor([0, 3, 5]))  # 13 pairs
X = torch.randn(5, 8)


def refused(match: str) -> object:
    return pytest.raises(ValueError, match=match)


@pytest.mark.parametrize(
    "edges", [GRAPH, GRAPH.edge_index, GRAPH.masked(torch.arange(13) != 2)], ids=["complete", "edge list", "masked"]
)
def test_pair_features_of_the_wrong_length_or_none(edges: object) -> None:
    layer = EdgeAttention(8, 4, 2, edge_dim=5)
    with refused(r"expected edge features \[13, 5\], got \[12, 5\]"):
        layer(X, edges, torch.randn(12, 5))
    with refused(r"expected edge features \[13, 5\], got \[13, 4\]"):
        layer(X, edges, torch.randn(13, 4))
    with refused(r"expected edge features \[13, 5\], got \[13\]"):
        layer(X, edges, torch.randn(13))
    with refused(r"expected edge features \[13, 5\], got None"):
        layer(X, edges)
    with refused(r"edge features \[13, 5\] came, but this layer has edge_dim=None"):
        EdgeAttention(8, 4, 2)(X, edges, torch.randn(13, 5))


@pytest.mark.parametrize("edges", [GRAPH, GRAPH.edge_index], ids=["complete", "edge list"])
@pytest.mark.parametrize(
    "parts",
    [
        {"score": RMATScore(2, 4, 5)},
        {"score": ClippedDotScore(2, 5)},
        {"score": GRITScore(2, 4, 5)},
        {"score": EdgeModulatedDotScore(2, 4, 5)},
        {"normaliser": GatedSoftmax(2, 5)},
        {"normaliser": DistanceAdjacencyBlend()},
    ],
    ids=lambda parts: repr(next(iter(parts.values()))),
)
def test_parts_that_need_edge_features(parts: dict, edges: object) -> None:
    with refused("edge (features|states).*expected|expected edge features.*got None"):
        EdgeAttention(8, 4, 2, **parts)(X, edges)


class OwnScore(Score):
    """The dot product, and the first two edge features as a bias."""

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (query * key).sum(-1) + edge[..., :2]


class OwnHeadGate(HeadGate):
    """A gate of gtx, whose sizes it shares."""


class OwnGate(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels, self.linear = channels, torch.nn.Linear(channels, 2)

    def forward(self, target: Tensor, source: Tensor, edge_index: object) -> Tensor:
        return self.linear(target).sigmoid()


class OwnMerge(HeadMerge):
    channels = 7

    def width(self, heads: int, channels: int) -> int:
        return self.channels

    def forward(self, heads: Tensor) -> Tensor:
        return heads.flatten(1)[:, : self.channels]


ONE = "make key and value one: expected key_channels 4, got 3"
REFUSED = [
    ({"projections": "query"}, "projections out of separate, key_value, shared, none, got query"),
    *(({"projections": p, "key_channels": 3}, f"projections '{p}' {ONE}") for p in ("key_value", "shared", "none")),
    ({"projections": "none", "heads": 3}, "without projections the nodes are the heads: expected 12 channels, got 8"),
    ({"projections": "shared", "in_channels": (7, 6)}, "channels of one width, got 7 and 6"),
    *(({name: 0}, f"expected a positive {name}, got 0") for name in ("out_channels", "heads", "key_channels")),
    *(({"dropout": p}, f"expected 0 <= dropout < 1, got {p}") for p in (1.0, -0.1, float("nan"))),
    ({"edge_key": True}, "features are to enter the attention: expected their channels edge_dim, got None"),
    ({"edge_bias": torch.nn.Identity(), "edge_dim": 5}, "one channel per head: expected edge_dim 2, got 5"),
    *(({"edge_value": v, "edge_dim": 5}, f"edge_value True, False or 'state', got {v!r}") for v in ("states", 1)),
    ({"score": GATv2Score(4, 4)}, r"expected modules for heads 2, got GATv2Score\(heads=4, channels=4\)"),
    ({"score": OwnScore(3)}, r"for heads 2, got OwnScore\(heads=3\)"),
    ({"score": GATScore(2, 16)}, r"expected modules for channels 4, got GATScore\(heads=2, channels=16\)"),
    ({"score": RMATScore(2, 4, 3), "edge_dim": 5}, r"for edge_dim 5, got RMATScore\(heads=2, channels=4, edge_dim=3\)"),
    ({"normaliser": GatedSoftmax(2, 3), "edge_dim": 5}, r"for edge_dim 5, got GatedSoftmax\(2, 3\)"),
    ({"gate": HeadGate([8, 8], 3)}, "for heads 2, got HeadGate"),
    ({"gate": OwnHeadGate(8, 3)}, "for heads 2, got HeadGate"),
    ({"merge": LearnedSumOverHeads(3)}, "for heads 2, got LearnedSumOverHeads"),
    ({"merge": LinearHeadMerge(2, 3, 8)}, "for channels 4, got LinearHeadMerge"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_settings_that_contradict_each_other(options: dict, message: str) -> None:
    with refused(message):
        EdgeAttention(**({"in_channels": 8, "out_channels": 4, "heads": 2} | options))


@pytest.mark.parametrize("parts", [{"score": OwnScore(edge_dim=2)}, {"gate": OwnGate(8)}, {"merge": OwnMerge()}])
def test_parts_of_ones_own_have_names_of_their_own(parts: dict) -> None:
    layer = EdgeAttention(8, 4, 2, edge_dim=5, **parts)
    assert layer(X, GRAPH, torch.randn(13, 5)).shape == (5, layer.width)


def test_layers_whose_parts_miss_something() -> None:
    attention = EdgeAttention(8, 4, 2)
    for make in (GraphTransformerLayer, GPSLayer):
        with refused("attention that gives 16 channels, got 8"):
            make(attention, None, 16)
    with refused("expected attention with an edge_dim, got None"):
        GraphTransformerLayer(attention, None, 8, edge_update=EdgeStateUpdate(5, attention.state_width))
    with refused(r"counts bonds: expected bond_index \[2, E\], got None"):
        GraphTransformerLayer(attention, None, 8, scaler=LearnedDegreeScaling(8))(X, GRAPH)
    attention = EdgeAttention(8, 4, 2, edge_dim=5)
    with refused(r"expected edge features \[13, 5\], got None"):
        GraphTransformerLayer(attention, None, 8, edge_update=EdgeStateUpdate(5, attention.state_width))(X, GRAPH)


def test_edges_of_another_shape() -> None:
    with refused(r"expected edge_index \[2, E\] or a CompleteGraph, got \[3, 4\]"):
        EdgeAttention(8, 4)(X, torch.zeros(3, 4, dtype=torch.long))


def test_codes_are_embedded_and_values_may_stand_as_they_are() -> None:
    with refused("codes must be embedded: expected pair_channels, got None"):
        PairEmbedding([ContinuousFeatureSpec(3), CategoricalFeatureSpec((4,))], None)
    plain = PairEmbedding([ContinuousFeatureSpec(3), ContinuousFeatureSpec(2)], None)
    one, two = torch.randn(13, 3), torch.randn(13, 2)
    assert plain.width == 5 and torch.equal(plain([one, two]), torch.cat([one, two], 1))
    assert PairEmbedding([], 8).width is None and PairEmbedding([], 8)([]) is None


def test_readouts() -> None:
    with refused(r"readouts out of sum, mean, max, attention, got \['median'\]"):
        Readout(8, ["sum", "median"])
    with refused(r"readouts out of sum, mean, max, attention, got \[\]"):
        Readout(8, [])


def test_a_score_that_is_a_function_or_a_class_is_refused() -> None:
    for score in (lambda query, key, edge=None: (query * key).sum(-1), GATv2Score):
        with pytest.raises(TypeError, match=r"expected a score, an instance of a class derived from .*Score, got <"):
            EdgeAttention(32, 8, heads=4, score=score)


@pytest.mark.parametrize(
    ("name", "nothing", "value", "instead"),
    [
        ("beta", False, True, "add a torch.nn.Linear of x"),
        ("root_weight", False, True, "add a torch.nn.Linear of x"),
        ("residual", False, True, "add a torch.nn.Linear of x"),
        ("share_weights", False, True, 'projections="shared"'),
        ("add_self_loops", False, True, "add torch_geometric.utils.add_self_loops to the edges"),
        ("aggr", "add", "mean", "a normaliser makes the weights"),
        ("flow", "source_to_target", "target_to_source", r"edge_index\.flip\(0\)"),
    ],
)
def test_arguments_of_pyg_that_are_not_taken(name: str, nothing: object, value: object, instead: str) -> None:
    assert EdgeAttention(8, 4, **{name: nothing}).width == 4
    with pytest.raises(TypeError, match=f"has no {name}={value!r}, unlike attention layers of PyG.*{instead}"):
        EdgeAttention(8, 4, **{name: value})


def test_a_mistyped_argument_is_told_its_neighbour() -> None:
    with pytest.raises(TypeError, match="EdgeAttention has no argument 'head'; did you mean 'heads'"):
        EdgeAttention(8, 4, head=4)
    assert EdgeAttention(8, 4, decomposed_layers=1).width == 4  # of MessagePassing
