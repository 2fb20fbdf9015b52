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
from tests.attention.by_hand import (
    GRAPH,
    SIZES,
    attention,
    by_equation,
    close,
    in_both_layouts,
    inputs,
    linear,
    project,
    scaled_dot,
)


@pytest.mark.parametrize("heads", [1, 3])
def test_without_any_weights_it_is_softmax_of_the_gram_matrix(heads: int) -> None:
    """softmax(X Xᵀ) X, molecule by molecule, as matrices; each head sees its own channels."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, 6 // heads, heads, projections="none", score=ScaledDotScore(1.0)).double()
    assert list(layer.parameters()) == []
    each = [[(h @ h.T).softmax(-1) @ h for h in m.chunk(heads, 1)] for m in x.split(SIZES)]
    in_both_layouts(layer, torch.cat([torch.cat(of_heads, 1) for of_heads in each]), x)


def test_one_projection_shared_by_query_key_and_value() -> None:
    """softmax(X U Uᵀ Xᵀ) X U."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, 4, projections="shared", bias=False, score=ScaledDotScore(1.0)).double()
    U = layer.lin_query.weight.T
    in_both_layouts(layer, torch.cat([(m @ U @ U.T @ m.T).softmax(-1) @ m @ U for m in x.split(SIZES)]), x)


@pytest.mark.parametrize("scale", [None, 1.0, 0.3], ids=["over the root of d_k", "plain", "own factor"])
def test_query_key_value_with_unlike_widths(scale: float | None) -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, 5, heads=2, key_channels=3, score=ScaledDotScore(scale)).double()
    factor = 3**-0.5 if scale is None else scale
    in_both_layouts(layer, by_equation(layer, x, lambda q, k, _: factor * (q * k).sum(-1)), x)


def test_key_and_value_may_be_one() -> None:
    x, _ = inputs(6)
    layer = EdgeAttention(6, 4, heads=2, projections="key_value").double()
    assert layer.lin_value is None
    in_both_layouts(layer, by_equation(layer, x, scaled_dot), x)


def test_luong_general() -> None:
    """Luong et al. 2015, eq. 8: h_tᵀ W_a h_s."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, 6, projections="none", score=BilinearScore(1, 6)).double()
    W = torch.randn(6, 6, dtype=torch.float64)
    with torch.no_grad():
        layer.score.weight.copy_(W)
    expected = attention(lambda r, s, _: (x[r] @ W @ x[s])[None], lambda r, s, _: x[s][None])
    in_both_layouts(layer, expected.flatten(1), x)


def test_luong_concat() -> None:
    """Luong et al. 2015, eq. 8: v_a·tanh(W_a [h_t; h_s])."""
    x, _ = inputs(6)
    layer = EdgeAttention(6, 4, bias=False, score=AdditiveScore(1, 4)).double()
    W_a = torch.cat([layer.lin_query.weight, layer.lin_key.weight], 1)  # [4, 12]
    v = linear(layer.lin_value, x)
    expected = attention(
        lambda r, s, _: (layer.score.vector[0] @ (W_a @ torch.cat([x[r], x[s]])).tanh())[None],
        lambda r, s, _: v[s][None],
    )
    in_both_layouts(layer, expected.flatten(1), x)


def test_general_starts_as_the_scaled_dot_product() -> None:
    query, key = torch.randn(2, 10, 3, 4)
    torch.testing.assert_close(BilinearScore(3, 4)(query, key), (query * key).sum(-1) / 2)


# --- Published attentions are choices of parts: each against its paper's equation, or PyG's layer with its weights.


H, D, K = 2, 4, 5


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


def test_gaan() -> None:
    """Zhang et al. 2018, eq. 2: unscaled dot products, values behind a LeakyReLU, a gate per head.

    The gate, eq. 3, is written out in `tests/nn/test_edge_attention.py`.
    """
    x, _ = inputs(6)
    layer = EdgeAttention(
        6, D, H, key_channels=3, score=ScaledDotScore(1.0), value_activation=nn.LeakyReLU(0.1), gate=HeadGate(6, H, 7)
    ).double()
    gate = layer.gate(x, x, GRAPH.edge_index)
    assert gate.min() < 0.45 and gate.max() > 0.55
    summed = by_equation(layer, x, lambda q, k, _: (q * k).sum(-1), lambda v, _: torch.where(v > 0, v, 0.1 * v))
    in_both_layouts(layer, (gate.unsqueeze(-1) * summed.view(-1, H, D)).flatten(1), x)


def test_relative_molecule_attention() -> None:
    """Maziarka et al. 2021: (q·k + q·b + k·b) / √d + u·k + w·b, and b' beside the value."""
    x, e = inputs(6, K)
    layer = EdgeAttention(
        6, D, H, edge_dim=K, score=RMATScore(H, D, K), edge_bias=False, edge_value=True, project=True
    ).double()
    b = torch.stack([e @ layer.score.edge[h].T for h in range(H)], 1)  # [pairs, H, D]
    b_value = project(layer.lin_edge_value, e, H)
    u, w = layer.score.content, layer.score.position

    def score(q: Tensor, k: Tensor, p: int) -> Tensor:
        scaled = (q * k).sum(-1) + (q * b[p]).sum(-1) + (k * b[p]).sum(-1)
        return scaled / D**0.5 + (u * k).sum(-1) + (w * b[p]).sum(-1)

    in_both_layouts(layer, by_equation(layer, x, score, lambda v, p: v + b_value[p]), x, e)


def test_graphormer_adds_a_ready_bias() -> None:
    """Ying et al. 2021, eq. 6 and 7: Q Kᵀ / √d + b_φ + c, the bias one number per pair and head."""
    x, e = inputs(6, H)
    layer = EdgeAttention(6, D, H, edge_dim=H, edge_bias=nn.Identity(), project=True).double()
    in_both_layouts(layer, by_equation(layer, x, lambda q, k, p: scaled_dot(q, k) + e[p]), x, e)


@pytest.mark.parametrize("clip", [None, 0.2])
def test_exphormer_multiplies_query_and_key_by_the_edge(clip: float | None) -> None:
    """Shirzad et al. 2023: softmax((W_E e ⊙ W_K x_s)ᵀ W_Q x_r / √d); the authors' code clips the score."""
    x, e = inputs(6, K)
    layer = EdgeAttention(
        6, D, H, edge_dim=K, edge_bias=False, score=EdgeModulatedDotScore(H, D, K, clip=clip)
    ).double()
    factor = project(layer.score.lin_edge, e, H)

    def score(q: Tensor, k: Tensor, p: int) -> Tensor:
        dot = scaled_dot(q * factor[p], k)
        return dot if clip is None else dot.clamp(-clip, clip)

    in_both_layouts(layer, by_equation(layer, x, score), x, e)


# --- EGT and GRIT: what the score was made of is there for the value and for the edge.


@pytest.mark.parametrize("scale", [True, False])
def test_egt(scale: bool) -> None:
    """Hussain et al. 2022: H = clip(Q Kᵀ / √d) + E, then (softmax(H) ⊙ σ(G)) V log(1 + Σ σ(G)); the states are H."""
    torch.manual_seed(0)
    x, e = inputs(6, K)
    parts = {"score": ClippedDotScore(H, K, 0.5), "normaliser": GatedSoftmax(H, K, scale)}
    layer = EdgeAttention(6, D, H, edge_dim=K, edge_bias=False, project=True, **parts).double()
    bias, gate = linear(layer.score.lin_edge, e), linear(layer.normaliser.lin_gate, e).sigmoid()
    states, clipped = torch.zeros(len(e), H, dtype=x.dtype), []

    def score(q: Tensor, k: Tensor, p: int) -> Tensor:
        dot = scaled_dot(q, k)
        clipped.append(dot.abs().max() > 0.5)
        states[p] = dot.clamp(-0.5, 0.5) + bias[p]
        return states[p].clone()

    def weigh(scores: Tensor, pairs: list[int]) -> Tensor:
        soft = scores.exp() / scores.exp().sum(0) * gate[pairs]
        return soft * torch.log(1 + gate[pairs].sum(0)) if scale else soft

    with torch.no_grad():
        in_both_layouts(layer, by_equation(layer, x, score, weigh=weigh), x, e)
        close(layer.attend(x, GRAPH, e, states=True)[2], states)
    assert any(clipped)


@pytest.mark.parametrize("clip", [5.0, 0.1], ids=["wide", "tight"])
@pytest.mark.parametrize(("epsilon", "tolerance"), [(1e-6, 1e-10), (0.0, 5e-3)], ids=["as computed", "in the paper"])
def test_grit(clip: float, epsilon: float, tolerance: float) -> None:
    """Ma et al. 2023, eq. 2: ê = σ(ρ((W_Q x_i + W_K x_j) ⊙ W_Ew e) + W_Eb e), scores W_A ê, values W_V x_j + W_Ev ê.

    ρ is √ReLU(x) - √ReLU(-x) in the paper, epsilon = 0; the score is clipped as in the authors' code.
    """
    torch.manual_seed(0)
    x, e = inputs(6, K)
    parts = {"score": GRITScore(H, 3, K, clip), "edge_value": "state", "key_channels": 3}
    layer = EdgeAttention(6, D, H, edge_dim=K, edge_bias=False, project=True, **parts).double()
    weight, bias = (project(part, e, H) for part in (layer.score.lin_weight, layer.score.lin_bias))
    states = torch.zeros(len(e), H, 3, dtype=x.dtype)

    def score(q: Tensor, k: Tensor, p: int) -> Tensor:
        product = (q + k) * weight[p]
        root = (product.relu() + epsilon).sqrt() - ((-product).relu() + epsilon).sqrt()
        states[p] = (root + bias[p]).relu()
        return (layer.score.vector * states[p]).sum(-1).clamp(-clip, clip)

    def value(v: Tensor, p: int) -> Tensor:
        return v + torch.stack([layer.state_value[h] @ states[p, h] for h in range(H)])

    with torch.no_grad():
        layer.score.vector.mul_(2.0)
        expected = by_equation(layer, x, score, value)
        found, _, of_edges = layer.attend(x, GRAPH, e, states=True)
        close(found, expected, tolerance)
        close(of_edges, states.flatten(1), tolerance)
        close(layer(x, GRAPH.edge_index, e), expected, tolerance)


def test_scores_may_enter_the_values_of_any_attention() -> None:
    """`edge_value="state"` with a score that is a number: v_s + W s_rs."""
    x, e = inputs(6, K)
    layer = EdgeAttention(6, D, H, edge_dim=K, edge_value="state").double()
    q, k, v = (project(part, x, H) for part in (layer.lin_query, layer.lin_key, layer.lin_value))
    bias, W = linear(layer.lin_edge_bias, e), layer.state_value[..., 0]
    expected = attention(
        lambda r, s, p: scaled_dot(q[r], k[s]) + bias[p],
        lambda r, s, p: v[s] + W * scaled_dot(q[r], k[s])[:, None],
    )
    in_both_layouts(layer, expected.flatten(1), x, e)
