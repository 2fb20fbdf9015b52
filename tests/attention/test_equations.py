"""Each attention is its equation, written out in loops: from softmax(X Xᵀ) X to the published ones."""

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv

from gtx.attention import (
    AdditiveScore,
    BilinearScore,
    ClippedDotScore,
    EdgeModulatedDotScore,
    GatedSoftmax,
    GATScore,
    GATv2Score,
    GRITScore,
    HeadGate,
    RMATScore,
    ScaledDotScore,
)
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, SIZES, attention, close, in_both_layouts, inputs, pairs_into, project


@pytest.mark.parametrize("heads", [1, 3])
def test_without_any_weights_it_is_softmax_of_the_gram_matrix(heads: int) -> None:
    """softmax(X Xᵀ) X, molecule by molecule, as matrices; each head sees its own channels."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, 6 // heads, heads, projections="none", score=ScaledDotScore(1.0)).double()
    assert list(layer.parameters()) == []
    each = [[(h @ h.T).softmax(-1) @ h for h in m.chunk(heads, 1)] for m in x.split(SIZES)]
    in_both_layouts(layer, torch.cat([torch.cat(of_heads, 1) for of_heads in each]), x)


def shared() -> EdgeAttention:
    torch.manual_seed(0)
    return EdgeAttention(6, 4, projections="shared", bias=False, score=ScaledDotScore(1.0)).double()


def test_one_projection_shared_by_query_key_and_value() -> None:
    """softmax(X U Uᵀ Xᵀ) X U."""
    x, _ = inputs(6)
    layer = shared()
    U = layer.lin_query.weight.T
    in_both_layouts(layer, torch.cat([(m @ U @ U.T @ m.T).softmax(-1) @ m @ U for m in x.split(SIZES)]), x)


@pytest.mark.parametrize("scale", [None, 1.0, 0.3], ids=["over the root of d_k", "plain", "own factor"])
def test_query_key_value_with_unlike_widths(scale: float | None) -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, 5, heads=2, key_channels=3, score=ScaledDotScore(scale)).double()
    q, k, v = (project(linear, x, 2) for linear in (layer.lin_query, layer.lin_key, layer.lin_value))
    factor = 3**-0.5 if scale is None else scale
    expected = attention(lambda r, s, _: factor * (q[r] * k[s]).sum(-1), lambda r, s, _: v[s])
    assert expected.shape == (sum(SIZES), 2, 5)
    in_both_layouts(layer, expected.flatten(1), x)


def test_key_and_value_may_be_one() -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, 4, heads=2, projections="key_value").double()
    q, k = project(layer.lin_query, x, 2), project(layer.lin_key, x, 2)
    assert layer.lin_value is None
    expected = attention(lambda r, s, _: (q[r] * k[s]).sum(-1) / 2, lambda r, s, _: k[s])
    in_both_layouts(layer, expected.flatten(1), x)


@pytest.mark.parametrize("kind", ["general", "concat"])
def test_luong(kind: str) -> None:
    """Luong et al. 2015, eq. 8: h_tᵀ W_a h_s, v_a·tanh(W_a [h_t; h_s])."""
    torch.manual_seed(0)
    x, _ = inputs(6)
    score = {"general": lambda: BilinearScore(1, 6), "concat": lambda: AdditiveScore(1, 4)}[kind]()
    raw = kind != "concat"
    layer = EdgeAttention(6, 6 if raw else 4, projections="none" if raw else "separate", bias=False, score=score)
    layer = layer.double()
    if kind == "general":
        W = torch.randn(6, 6, dtype=torch.float64)
        with torch.no_grad():
            score.weight.copy_(W)
    if kind == "concat":
        W_a = torch.cat([layer.lin_query.weight, layer.lin_key.weight], 1)  # [4, 12]
        v = x @ layer.lin_value.weight.T
    ways = {
        "general": lambda r, s, _: (x[r] @ W @ x[s])[None],
        "concat": lambda r, s, _: (score.vector[0] @ (W_a @ torch.cat([x[r], x[s]])).tanh())[None],
    }
    expected = attention(ways[kind], lambda r, s, _: (x if raw else v)[s][None])
    in_both_layouts(layer, expected.flatten(1), x)


def test_general_starts_as_the_scaled_dot_product() -> None:
    query, key = torch.randn(2, 10, 3, 4)
    torch.testing.assert_close(BilinearScore(3, 4)(query, key), (query * key).sum(-1) / 2)


# --- Published attentions are choices of parts: each against its paper's equation, or PyG's layer with its weights.


H, D, K = 2, 4, 5


def qkv(layer: EdgeAttention, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(project(linear, x, H) for linear in (layer.lin_query, layer.lin_key, layer.lin_value))


@pytest.mark.parametrize("concat", [True, False])
def test_gat_is_pyg_gat_conv(concat: bool) -> None:
    """Veličković et al. 2018, eq. 1 to 6."""
    x, _ = inputs(6)
    conv = GATConv(6, D, H, concat, add_self_loops=False, bias=False).double()
    layer = EdgeAttention(6, D, H, concat, projections="shared", bias=False, score=GATScore(H, D)).double()
    with torch.no_grad():
        layer.lin_query.weight.copy_(conv.lin.weight)
        layer.score.sender.copy_(conv.att_src[0])
        layer.score.receiver.copy_(conv.att_dst[0])
    in_both_layouts(layer, conv(x, GRAPH.edge_index), x)


@pytest.mark.parametrize("edges", [False, True], ids=["plain", "edges"])
@pytest.mark.parametrize("share", [False, True], ids=["own", "shared"])
def test_gatv2_is_pyg_gatv2_conv(edges: bool, share: bool) -> None:
    """Brody et al. 2022, eq. 7; PyG's bias at the end is zero."""
    x, e = inputs(6, K if edges else None)
    options = {"edge_dim": K} if edges else {}
    conv = GATv2Conv(6, D, H, add_self_loops=False, share_weights=share, **options).double()
    projections = "shared" if share else "key_value"
    layer = EdgeAttention(
        6, D, H, projections=projections, score=GATv2Score(H, D), edge_bias=False, edge_key=edges, **options
    ).double()
    layer.lin_query.load_state_dict(conv.lin_r.state_dict())
    if not share:
        layer.lin_key.load_state_dict(conv.lin_l.state_dict())
    if edges:
        layer.lin_edge_key.load_state_dict(conv.lin_edge.state_dict())
    with torch.no_grad():
        layer.score.vector.copy_(conv.att[0])
    in_both_layouts(layer, conv(x, GRAPH.edge_index, e), x, e)


def gaan_gate(gate: HeadGate, x: Tensor) -> Tensor:
    """Zhang et al. 2018, eq. 3: σ(W_g [x_i ‖ max_j W_m x_j ‖ mean_j x_j])."""
    rows = []
    for r in range(len(x)):
        senders = x[[s for s, _ in pairs_into(r)]]
        largest = (senders @ gate.lin_max.weight.T + gate.lin_max.bias).max(0).values
        rows.append(torch.cat([x[r], largest, senders.mean(0)]) @ gate.lin_gate.weight.T + gate.lin_gate.bias)
    return 1 / (1 + (-torch.stack(rows)).exp())


def test_gaan() -> None:
    """Zhang et al. 2018, eq. 2 and 3: unscaled dot products, values behind a LeakyReLU, a gate per head."""
    x, _ = inputs(6)
    layer = EdgeAttention(
        6, D, H, key_channels=3, score=ScaledDotScore(1.0), value_activation=nn.LeakyReLU(0.1), gate=HeadGate(6, H, 7)
    ).double()
    q, k, v = qkv(layer, x)
    v = torch.where(v > 0, v, 0.1 * v)
    summed = attention(lambda r, s, _: (q[r] * k[s]).sum(-1), lambda r, s, _: v[s])
    gate = gaan_gate(layer.gate, x)
    assert gate.min() < 0.45 and gate.max() > 0.55
    in_both_layouts(layer, (gate.unsqueeze(-1) * summed).flatten(1), x)


def relative_layer() -> EdgeAttention:
    torch.manual_seed(0)
    return EdgeAttention(
        6, D, H, edge_dim=K, score=RMATScore(H, D, K), edge_bias=False, edge_value=True, project=True
    ).double()


def test_relative_molecule_attention() -> None:
    """Maziarka et al. 2021: (q·k + q·b + k·b) / √d + u·k + w·b, and b' beside the value."""
    x, e = inputs(6, K)
    layer = relative_layer()
    score = layer.score
    q, k, v = qkv(layer, x)
    b = torch.stack([e @ score.edge[h].T for h in range(H)], 1)  # [pairs, H, D]
    b_value = (e @ layer.lin_edge_value.weight.T).view(-1, H, D)
    u, w = score.content, score.position

    def scores(r: int, s: int, p: int) -> Tensor:
        scaled = (q[r] * k[s]).sum(-1) + (q[r] * b[p]).sum(-1) + (k[s] * b[p]).sum(-1)
        return scaled / D**0.5 + (u * k[s]).sum(-1) + (w * b[p]).sum(-1)

    summed = attention(scores, lambda r, s, p: v[s] + b_value[p])
    in_both_layouts(layer, summed.flatten(1) @ layer.lin_out.weight.T + layer.lin_out.bias, x, e)


def test_graphormer_adds_a_ready_bias() -> None:
    """Ying et al. 2021, eq. 6 and 7: Q Kᵀ / √d + b_φ + c, the bias one number per pair and head."""
    x, e = inputs(6, H)
    layer = EdgeAttention(6, D, H, edge_dim=H, edge_bias=nn.Identity(), project=True).double()
    q, k, v = qkv(layer, x)
    summed = attention(lambda r, s, p: (q[r] * k[s]).sum(-1) / D**0.5 + e[p], lambda r, s, _: v[s])
    in_both_layouts(layer, summed.flatten(1) @ layer.lin_out.weight.T + layer.lin_out.bias, x, e)


@pytest.mark.parametrize("clip", [None, 0.2])
def test_exphormer_multiplies_query_and_key_by_the_edge(clip: float | None) -> None:
    """Shirzad et al. 2023: softmax((W_E e ⊙ W_K x_s)ᵀ W_Q x_r / √d); the authors' code clips the score."""
    x, e = inputs(6, K)
    layer = EdgeAttention(
        6, D, H, edge_dim=K, edge_bias=False, score=EdgeModulatedDotScore(H, D, K, clip=clip)
    ).double()
    q, k, v = qkv(layer, x)
    factor = project(layer.score.lin_edge, e, H)

    def score(r: int, s: int, p: int) -> Tensor:
        dot = (q[r] * k[s] * factor[p]).sum(-1) / D**0.5
        return dot if clip is None else dot.clamp(-clip, clip)

    in_both_layouts(layer, attention(score, lambda r, s, _: v[s]).flatten(1), x, e)


# --- EGT and GRIT: what the score was made of is there for the value and for the edge.


def linear(module: torch.nn.Module, x: Tensor) -> Tensor:
    return x @ module.weight.T + module.bias


def egt(clip: float = 0.5, scale: bool = True) -> EdgeAttention:
    torch.manual_seed(0)
    return EdgeAttention(
        6,
        D,
        H,
        edge_dim=K,
        edge_bias=False,
        score=ClippedDotScore(H, K, clip),
        normaliser=GatedSoftmax(H, K, scale),
        project=True,
    ).double()


def egt_by_hand(layer: EdgeAttention, x: Tensor, e: Tensor) -> tuple[Tensor, Tensor]:
    """Hussain et al. 2022: H = clip(Q Kᵀ / √d) + E, then (softmax(H) ⊙ σ(G)) V log(1 + Σ σ(G)); and H."""
    q, k, v = (project(lin, x, H) for lin in (layer.lin_query, layer.lin_key, layer.lin_value))
    bias, gate = linear(layer.score.lin_edge, e), linear(layer.normaliser.lin_gate, e).sigmoid()
    clip = layer.score.clip
    seen = torch.zeros(len(e), H, dtype=x.dtype)

    def score(r: int, s: int, p: int) -> Tensor:
        seen[p] = ((q[r] * k[s]).sum(-1) / D**0.5).clamp(-clip, clip) + bias[p]
        return seen[p].clone()

    def weigh(scores: Tensor, pairs: list[int]) -> Tensor:
        soft = scores.exp() / scores.exp().sum(0) * gate[pairs]
        return soft * torch.log(1 + gate[pairs].sum(0)) if layer.normaliser.scale else soft

    return linear(layer.lin_out, attention(score, lambda r, s, _: v[s], weigh).flatten(1)), seen


@pytest.mark.parametrize("scale", [True, False])
def test_egt(scale: bool) -> None:
    x, e = inputs(6, K)
    layer = egt(scale=scale)
    with torch.no_grad():
        expected, states = egt_by_hand(layer, x, e)
        close(layer.attend(x, GRAPH, e, states=True)[2], states)
    in_both_layouts(layer, expected, x, e)
    assert (layer(x, GRAPH, e) - egt(5.0, scale)(x, GRAPH, e)).abs().max() > 1e-3  # the clip did something


def grit(clip: float = 5.0) -> EdgeAttention:
    torch.manual_seed(0)
    layer = EdgeAttention(
        6,
        D,
        H,
        edge_dim=K,
        edge_bias=False,
        key_channels=3,
        score=GRITScore(H, 3, K, clip),
        edge_value="state",
        project=True,
    ).double()
    with torch.no_grad():
        layer.score.vector.mul_(2.0)
    return layer


def grit_by_hand(layer: EdgeAttention, x: Tensor, e: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """Ma et al. 2023, eq. 2: ê = σ(ρ((W_Q x_i + W_K x_j) ⊙ W_Ew e) + W_Eb e), scores W_A ê, values W_V x_j + W_Ev ê.

    ρ is √ReLU(x) - √ReLU(-x) in the paper, epsilon = 0; the score is clipped as in the authors' code.
    """
    q, k, v = (project(lin, x, H) for lin in (layer.lin_query, layer.lin_key, layer.lin_value))
    weight, bias = (linear(lin, e).view(len(e), H, 3) for lin in (layer.score.lin_weight, layer.score.lin_bias))
    seen = torch.zeros(len(e), H, 3, dtype=x.dtype)
    a, clip, W = layer.score.vector, layer.score.clip, layer.state_value

    def score(r: int, s: int, p: int) -> Tensor:
        product = (q[r] + k[s]) * weight[p]
        root = (product.relu() + epsilon).sqrt() - ((-product).relu() + epsilon).sqrt()
        seen[p] = (root + bias[p]).relu()
        return (a * seen[p]).sum(-1).clamp(-clip, clip)

    def value(r: int, s: int, p: int) -> Tensor:
        return v[s] + torch.stack([W[h] @ seen[p, h] for h in range(H)])

    return linear(layer.lin_out, attention(score, value).flatten(1)), seen.flatten(1)


@pytest.mark.parametrize("clip", [5.0, 0.1], ids=["wide", "tight"])
def test_grit(clip: float) -> None:
    x, e = inputs(6, K)
    layer = grit(clip)
    with torch.no_grad():
        expected, states = grit_by_hand(layer, x, e, epsilon=1e-6)
        found = layer.attend(x, GRAPH, e, states=True)[2]
        assert found.shape == (GRAPH.num_pairs, layer.state_width)
        close(found, states)
        in_both_layouts(layer, expected, x, e)
        paper, _ = grit_by_hand(layer, x, e, epsilon=0.0)
        close(layer(x, GRAPH, e), paper, 5e-3)  # the root's ε


def test_scores_may_enter_the_values_of_any_attention() -> None:
    """`edge_value="state"` with a score that is a number: v_s + W s_rs."""
    x, e = inputs(6, K)
    layer = EdgeAttention(6, D, H, edge_dim=K, edge_value="state").double()
    q, k, v = (project(lin, x, H) for lin in (layer.lin_query, layer.lin_key, layer.lin_value))
    bias, W = e @ layer.lin_edge_bias.weight.T, layer.state_value[..., 0]

    def dot(r: int, s: int) -> Tensor:
        return (q[r] * k[s]).sum(-1) / D**0.5

    expected = attention(lambda r, s, p: dot(r, s) + bias[p], lambda r, s, p: v[s] + W * dot(r, s)[:, None])
    in_both_layouts(layer, expected.flatten(1), x, e)
