"""Published layers are choices of parts: EGT, TGT, GRIT and GPS, each by its equations, in both layouts."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gtx.attention import ClippedDotScore, GatedSoftmax, GRITScore
from gtx.graph import CompleteGraph
from gtx.nn import (
    BondMessagePassing,
    EdgeAttention,
    EdgeStateUpdate,
    GPSLayer,
    GraphTransformerLayer,
    LearnedDegreeScaling,
    TripletAttention,
)
from tests.attention.by_hand import close, complete, inputs

C, H, D, K = 8, 2, 4, 6
GRAPH = complete([3, 1, 0, 5])
BONDS = torch.tensor([[0, 1, 1, 2, 4, 5, 5, 6], [1, 0, 2, 1, 5, 4, 6, 5]])


def norm(module: nn.LayerNorm, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], module.weight, module.bias)


def mlp(module: nn.Sequential, x: Tensor) -> Tensor:
    first, last = module[0], module[-1]
    return F.gelu(x @ first.weight.T + first.bias) @ last.weight.T + last.bias


def shaken(layer: nn.Module) -> nn.Module:
    """No weight at its start, so that every one of them counts."""
    torch.manual_seed(1)
    layer = layer.double().eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return layer


def egt(triplets: TripletAttention | None = None) -> GraphTransformerLayer:
    parts = {"score": ClippedDotScore(H, K, 1.0), "normaliser": GatedSoftmax(H, K)}
    attention = EdgeAttention(C, D, H, edge_dim=K, edge_bias=False, project=True, **parts)
    update = EdgeStateUpdate(K, attention.state_width, 9, triplets=triplets)
    return shaken(GraphTransformerLayer(attention, None, C, edge_update=update))


def tgt() -> GraphTransformerLayer:
    return egt(TripletAttention(K, 2))


@pytest.mark.parametrize("make", [egt, tgt])
def test_egt_and_tgt(make: Callable[[], GraphTransformerLayer]) -> None:
    """Hussain et al. 2022, eq. 2 to 9: norms first, on nodes and edges, and an MLP on each.

    Hussain et al. 2024: triplet attention between the update from the score and the MLP of the edges.
    """
    layer, (x, e) = make(), inputs(C, K, GRAPH)
    v, update = norm(layer.norm_attention, x), layer.edge_update
    attended, _, states = layer.attention.attend(v, GRAPH.edge_index, norm(layer.norm_edge, e), states=True)
    nodes = x + attended
    nodes = nodes + mlp(layer.mlp, norm(layer.norm_mlp, nodes))
    pairs = e + states @ update.lin_state.weight.T + update.lin_state.bias
    if update.triplets is not None:
        pairs = pairs + update.triplets(norm(update.norm_triplets, pairs), GRAPH.edge_index)
    pairs = pairs + mlp(update.mlp, norm(update.norm, pairs))
    for one, other in zip(layer(x, GRAPH, e), (nodes, pairs), strict=True):
        close(one, other)


def grit() -> GraphTransformerLayer:
    attention = EdgeAttention(
        C, D, H, edge_dim=K, edge_bias=False, project=True, score=GRITScore(H, D, K), edge_value="state"
    )
    update = EdgeStateUpdate(K, attention.state_width, norm_first=False)
    return shaken(
        GraphTransformerLayer(attention, None, C, norm_first=False, edge_update=update, scaler=LearnedDegreeScaling(C))
    )


def test_grit() -> None:
    """Ma et al. 2023, eq. 2 to 4: norms last, the degree scaled in, the edge e + W_o ê and normed, no MLP on it."""
    layer, (x, e) = grit(), inputs(C, K, GRAPH)
    attended, _, states = layer.attention.attend(x, GRAPH.edge_index, e, states=True)
    degree = torch.tensor([sum(r == i for r in BONDS[1].tolist()) for i in range(len(x))], dtype=torch.float64)
    assert degree.unique().tolist() == [0.0, 1.0, 2.0]
    one, two = layer.scaler.weight
    scaled = attended * one + torch.log(1 + degree)[:, None] * (attended * two)
    nodes = norm(layer.norm_attention, x + scaled)
    nodes = norm(layer.norm_mlp, nodes + mlp(layer.mlp, nodes))
    update = layer.edge_update
    pairs = norm(update.norm, e + states @ update.lin_state.weight.T + update.lin_state.bias)
    for found, expected in zip(layer(x, GRAPH, e, BONDS), (nodes, pairs), strict=True):
        close(found, expected)


def gps() -> GPSLayer:
    return shaken(GPSLayer(EdgeAttention(C, D, H, edge_dim=K, project=True), BondMessagePassing(C), C))


def test_gps() -> None:
    """Rampášek et al. 2022, eq. 2 to 5: X_M = norm(X + MPNN(X)), X_T = norm(X + Attn(X)), X' from X_M + X_T."""
    layer, (x, e) = gps(), inputs(C, K, GRAPH)
    bonds = torch.randn(BONDS.shape[1], C, dtype=torch.float64)
    local, global_ = layer.local(x, BONDS, bonds), layer.attention(x, GRAPH.edge_index, e)
    both = norm(layer.norm_local, x + local) + norm(layer.norm_attention, x + global_)
    expected = norm(layer.norm_mlp, both + mlp(layer.mlp, both))
    nodes, pairs = layer(x, GRAPH, e, BONDS, bonds)
    close(nodes, expected)
    assert pairs is e


def masked() -> CompleteGraph:
    return GRAPH.masked(torch.rand(GRAPH.num_pairs, generator=torch.Generator().manual_seed(2)) < 0.6)


LAYERS: dict[str, Callable[[], nn.Module]] = {"EGT": egt, "TGT": tgt, "GRIT": grit, "GPS": gps}


@pytest.mark.parametrize("name", LAYERS)
def test_layouts_agree_over_two_layers_and_a_mask(name: str) -> None:
    """Output, edge states, weights and every gradient; the second layer sees the edge states of the first."""
    first, second = LAYERS[name](), LAYERS[name]()
    graph, (x, e) = masked(), inputs(C, K, GRAPH)
    bonds = torch.zeros(BONDS.shape[1], C, dtype=torch.float64)
    parameters = [*first.parameters(), *second.parameters()]
    results = []
    for at in (graph, graph.edge_index):
        weights: list[Tensor] = []
        nodes, pairs = x, e if at is graph else graph.select(e)
        for layer in (first, second):
            nodes, pairs = layer(nodes, at, pairs, BONDS, bonds, weights)
        if at is graph:
            pairs, weights = graph.select(pairs), [graph.select(w) for w in weights]
        grads = torch.autograd.grad(nodes.sin().sum() + pairs.cos().sum(), [x, e, *parameters], allow_unused=True)
        results.append([nodes, pairs, *weights, *grads])
    for one, other in zip(*results, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.isfinite().all()
            close(one, other)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "edges"), [("TGT", GRAPH), ("GPS", GRAPH.edge_index)], ids=["TGT", "GPS, a list"])
def test_compiles_without_graph_breaks(name: str, edges: CompleteGraph | Tensor) -> None:
    """TGT is EGT and more."""
    layer, (x, e) = LAYERS[name](), inputs(C, K, GRAPH)
    bonds = torch.zeros(BONDS.shape[1], C, dtype=torch.float64)
    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    outs = [each(x, edges, e, BONDS, bonds) for each in (compiled, layer)]
    for one, other in zip(*outs, strict=True):
        close(one, other, 1e-9)
    close(*(torch.autograd.grad(nodes.square().sum(), x)[0] for nodes, _ in outs), 1e-9)


# --- Attention over triplets: the paper's equations, whatever the layout, the mask and the blocks.


def triplets_by_hand(layer: TripletAttention, e: Tensor, graph: CompleteGraph) -> Tensor:
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
def test_triplet_attention_is_the_equation_in_both_layouts_and_its_gradients_agree() -> None:
    layer, (_, e), graph = shaken(TripletAttention(K, H)), inputs(C, K, GRAPH), masked()
    expected = triplets_by_hand(layer, graph.select(e), graph)
    assert expected.std() > 0.05
    spoilt = torch.where(graph.mask[:, None], e, torch.nan)
    results = []
    for out in (layer(graph.select(e), graph.edge_index), graph.select(layer(spoilt, graph))):
        close(out, expected)
        results.append(torch.autograd.grad(out.sin().sum(), [e, *layer.parameters()]))
    for one, other in zip(*results, strict=True):
        close(one, other)


def test_blocks_of_triplets_change_nothing(monkeypatch) -> None:
    layer, (_, e) = shaken(TripletAttention(K, H)), inputs(C, K, GRAPH)
    outs = []
    for block in (1 << 22, 1):
        monkeypatch.setattr("gtx.nn.edge_states._BLOCK", block)
        out = layer(e, masked())
        outs.append([out, *torch.autograd.grad(out.sin().sum(), [e, *layer.parameters()])])
    for one, other in zip(*outs, strict=True):
        close(one, other, 1e-12)


def test_triplets_that_do_not_fit_are_named() -> None:
    with pytest.raises(ValueError, match="triplet heads that divide the pair channels, got 4 and 6"):
        TripletAttention(6, 4)
    update = EdgeStateUpdate(K, 3, triplets=TripletAttention(K, H))
    with pytest.raises(ValueError, match="expected an edge list or a complete graph, got None"):
        update(torch.zeros(4, K), torch.zeros(4, 3))
    assert repr(update.triplets) == "TripletAttention(6, heads=2)"
