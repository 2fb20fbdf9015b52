"""EGT and GRIT: what the score was made of is there for the value and for the edge."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from gtx.attention import ClippedDotScore, GatedSoftmax, GRITScore
from gtx.nn import EdgeAttention
from tests.attention.by_hand import GRAPH, attention, close, in_both_layouts, inputs, project

H, D, K = 2, 4, 5


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
