"""Layers are their equations, in both layouts: the usual one, EGT, TGT, GRIT, GPS, that of vectors; readouts."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.attention import ClippedDotScore, GatedSoftmax, GRITScore
from gtx.encodings import ExpNormDistance, PairUnitVector
from gtx.graph import CompleteGraph
from gtx.nn import (
    BondMessagePassing,
    EdgeAttention,
    EdgeStateUpdate,
    EquivariantAttentionLayer,
    GPSLayer,
    GraphTransformerLayer,
    LearnedDegreeScaling,
    Readout,
    TripletAttention,
)
from gtx.nn.blocks import GELU
from tests.attention.by_hand import close, complete, inputs, linear
from tests.training.distributed import processes

C, H, D, K = 8, 2, 4, 6
GRAPH = complete([3, 1, 0, 5])
BONDS = torch.tensor([[0, 1, 1, 2, 4, 5, 5, 6], [1, 0, 2, 1, 5, 4, 6, 5]])


def norm(module: nn.LayerNorm, x: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], module.weight, module.bias)


def mlp(module: nn.Sequential, x: Tensor) -> Tensor:
    return linear(module[-1], F.gelu(linear(module[0], x)))


def shaken(layer: nn.Module) -> nn.Module:
    """No weight at its start, so that every one of them counts."""
    torch.manual_seed(1)
    layer = layer.double().eval()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return layer


def usual(**options: object) -> GraphTransformerLayer:
    attention = EdgeAttention(C, D, H, edge_dim=K, project=True)
    return shaken(GraphTransformerLayer(attention, BondMessagePassing(C), C, **options))


@pytest.mark.parametrize("norm_first", [True, False])
def test_the_usual_layer_is_the_equation_in_its_docstring(norm_first: bool) -> None:
    layer, (x, e), b = usual(norm_first=norm_first), inputs(C, K, GRAPH), torch.randn(BONDS.shape[1], C).double()

    def mix(v: Tensor) -> Tensor:
        return layer.attention(v, GRAPH, e) + layer.local(v, BONDS, b)

    one, two = layer.norm_attention, layer.norm_mlp
    if norm_first:
        v = x + mix(norm(one, x))
        expected = v + mlp(layer.mlp, norm(two, v))
    else:
        v = norm(one, x + mix(x))
        expected = norm(two, v + mlp(layer.mlp, v))
    close(layer(x, GRAPH, e, BONDS, b)[0], expected)


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
    pairs = e + linear(update.lin_state, states)
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
    pairs = norm(update.norm, e + linear(update.lin_state, states))
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
def test_triplet_attention_is_the_equation_in_both_layouts() -> None:
    """Its gradients agree in those of TGT."""
    layer, (_, e), graph = shaken(TripletAttention(K, H)), inputs(C, K, GRAPH), masked()
    expected = triplets_by_hand(layer, graph.select(e), graph)
    assert expected.std() > 0.05
    spoilt = torch.where(graph.mask[:, None], e, torch.nan)
    for out in (layer(graph.select(e), graph.edge_index), graph.select(layer(spoilt, graph))):
        close(out, expected)


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


# --- The equivariant layer, whose vectors turn with the molecule.


R, CUTOFF = 5, 4.0


def space(pos: Tensor) -> Tensor:
    """Radial functions, direction and nearness of all pairs."""
    data = Data(pos=pos)
    return torch.cat(
        [ExpNormDistance(R, CUTOFF).double()(data, GRAPH)[1][:, :-1], PairUnitVector(CUTOFF)(data, GRAPH)[1]], -1
    )


@pytest.fixture
def pos() -> Tensor:
    return 2.0 * torch.randn(9, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def node_rows(vectors: bool) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(9, 4 * C if vectors else C, dtype=torch.float64, generator=generator)


def equivariant(last: bool = False) -> EquivariantAttentionLayer:
    torch.manual_seed(0)
    return EquivariantAttentionLayer(C, H, R, last).double()


@pytest.mark.parametrize("vectors", [False, True])
def test_vectors_are_the_equation_atom_by_atom(vectors: bool, pos: Tensor) -> None:
    layer, rows, e = equivariant(), node_rows(vectors), space(pos)
    x = rows[:, :C]
    v = rows[:, C:].view(9, 3, C) if vectors else torch.zeros(9, 3, C, dtype=torch.float64)
    q, k, value = (linear(part, norm(layer.norm, x)) for part in (layer.lin_query, layer.lin_key, layer.lin_value))
    expected = []
    for r in range(9):
        collected, w = torch.zeros(C, dtype=torch.float64), torch.zeros(3, C, dtype=torch.float64)
        for p in (GRAPH.pair_index[1] == r).nonzero().flatten().tolist():
            s = int(GRAPH.pair_index[0, p])
            apart = (pos[s] - pos[r]).norm()
            near = 1 - 10 * (apart / CUTOFF) ** 3 + 15 * (apart / CUTOFF) ** 4 - 6 * (apart / CUTOFF) ** 5
            near = near if apart < CUTOFF else torch.zeros(())
            along = (pos[s] - pos[r]) / apart if r != s else torch.zeros(3, dtype=torch.float64)
            key = k[s] * F.silu(linear(layer.score.lin_edge, e[p, :R]))
            a = F.silu((q[r] * key).view(H, -1).sum(-1)) * near
            s1, s2, s3 = (value[s] * F.silu(linear(layer.lin_edge_value, e[p, :R]))).split(C)
            collected = collected + a.repeat_interleave(C // H) * s3
            w = w + near * (s1 * v[s] + s2 * along[:, None])
        y1, y2, y3 = linear(layer.lin_out, collected).split(C)
        u1, u2, u3 = linear(layer.lin_vector, v[r]).split(C, -1)
        expected.append(torch.cat([x[r] + y1 + y2 * (u1 * u2).sum(0), (v[r] + w + y3 * u3).flatten()]))
    for edges in (GRAPH, GRAPH.edge_index):
        close(layer(rows, edges, e)[0], torch.stack(expected))
        close(equivariant(last=True)(rows, edges, e)[0], torch.stack(expected)[:, :C])


def test_layouts_of_vectors_agree_under_a_mask_even_where_an_absent_pair_is_not_a_number(pos: Tensor) -> None:
    graph, e = masked(), space(pos)
    spoilt = torch.where(graph.mask[:, None], e, torch.nan)
    results = []
    for edges, features in ((graph, spoilt), (graph.edge_index, graph.select(e))):
        layer, weights = equivariant(), []
        out = layer(node_rows(True), edges, features, weights=weights)[0]
        alpha = weights[0][graph.mask] if edges is graph else weights[0]
        results.append([out, alpha, *torch.autograd.grad(out.sin().sum(), list(layer.parameters()))])
    for one, other in zip(*results, strict=True):
        close(one, other)


def test_heads_that_do_not_divide_the_channels_are_refused() -> None:
    with pytest.raises(ValueError, match="got 4 heads and 6 channels"):
        EquivariantAttentionLayer(6, 4, R)
    with pytest.raises(ValueError, match=r"expected edge features \[35, 9\], got \[35, 5\]"):
        equivariant()(node_rows(False), GRAPH, torch.zeros(35, R))


# --- Edge states are updated by residuals.


@pytest.mark.parametrize("hidden", [0, 7])
@pytest.mark.parametrize("norm_first", [True, False])
def test_edge_update_is_the_equation_in_its_docstring(hidden: int, norm_first: bool) -> None:
    update = shaken(EdgeStateUpdate(K, 7, hidden, norm_first=norm_first))
    e, states = torch.randn(9, K, dtype=torch.float64), torch.randn(9, 7, dtype=torch.float64)
    expected = e + linear(update.lin_state, states)
    if norm_first:
        expected = expected + mlp(update.mlp, norm(update.norm, expected)) if hidden else expected
    else:
        expected = norm(update.norm, expected)
        expected = norm(update.norm_mlp, expected + mlp(update.mlp, expected)) if hidden else expected
    close(update(e, states), expected)


def test_dropout_acts_in_training_only() -> None:
    (x, e), b = inputs(C, K, GRAPH), torch.randn(BONDS.shape[1], C).double()
    cases = [(usual(dropout=0.5), (x, GRAPH, e, BONDS, b)), (EdgeStateUpdate(K, K, 7, 0.5), torch.randn(2, 9, K))]
    cases += [(EdgeAttention(C, D, H, dropout=0.5).double(), (x, edges)) for edges in (GRAPH, GRAPH.edge_index)]
    for module, given in cases:
        for training in (True, False):
            one, other = (module.train(training)(*given) for _ in range(2))
            assert torch.equal(one[0], other[0]) is not training


def test_a_degree_scaler_starts_as_nothing() -> None:
    """Its equation is that of GRIT."""
    scaler, x = LearnedDegreeScaling(3), torch.randn(4, 3)
    assert torch.equal(scaler(x, torch.tensor([0.0, 1.0, 2.0, 4.0])), x)
    assert repr(scaler) == "LearnedDegreeScaling(3)"


# --- Readouts pool each molecule by itself; one without atoms gives zeros.


BATCH = torch.tensor([0, 0, 0, 2])


@pytest.mark.parametrize(
    ("kind", "of"), [("sum", lambda x: x.sum(0)), ("mean", lambda x: x.mean(0)), ("max", lambda x: x.max(0).values)]
)
def test_pools_each_molecule(kind: str, of: object) -> None:
    x = torch.randn(4, 5) - 3.0
    expected = torch.stack([of(x[:3]), torch.zeros(5), of(x[3:])])
    torch.testing.assert_close(Readout(5, [kind])(x, BATCH, 3), expected)


def test_attention_pooling_is_one_learned_query_for_all() -> None:
    """softmax_i(w·v_i + b) v_i, summed: attention whose receiver asks the same of every molecule."""
    readout = Readout(5, ["attention"]).double()
    x = torch.randn(4, 5, dtype=torch.float64)
    gate = readout.parts[0].gate_nn
    expected = torch.zeros(3, 5, dtype=torch.float64)  # the second molecule has no atoms
    for molecule in (0, 2):
        nodes = [i for i in range(4) if BATCH[i] == molecule]
        scores = torch.stack([(gate.weight[0] * x[i]).sum() + gate.bias[0] for i in nodes])
        for weight, i in zip(scores.exp() / scores.exp().sum(), nodes, strict=True):
            expected[molecule] = expected[molecule] + weight * x[i]
    torch.testing.assert_close(readout(x, BATCH, 3), expected, atol=1e-10, rtol=0)


# --- The GELU of MLPs takes batches of ever new shapes without growing.


def print_growth() -> None:
    """By how many MiB 300 batches of new shapes let this process grow, after 100 others."""
    torch.set_num_threads(1)
    sizes = []
    for count in range(1, 401):
        GELU()(torch.ones(count, 16, requires_grad=True)).sum().backward()
        sizes.append(int(Path("/proc/self/statm").read_text().split()[1]) * 4096)  # resident
    print((sizes[-1] - sizes[99]) / 2**20)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_shapes(tmp_path) -> None:
    ((status, said),) = processes(tmp_path, print_growth)
    assert status == 0 and float(said) < 10  # MiB
