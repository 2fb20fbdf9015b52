"""Pair features in keys and values, and edge states that the attention updates."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import glorot

from gtx.attention.scores import Score, dots, required


class ProjectedEdgeFeatures(NamedTuple):
    r"""Edge features e of an attention, with the linear maps that project them onto keys, values and scores.

    Attributes:
        features: e, `[num_pairs, K]`, or None.
        bias: b, `[num_pairs, H]`, added to the score.
        score: \(w_b\), `[H, K]`: \(w_b \cdot e_{rs}\) is added to the score.
        key: \(W_K\), `[H, C, K]`: \(k_s + W_K e_{rs}\).
        value: \(W_V\), `[H, D, K]`: \(v_s + W_V e_{rs}\).
        state_value: \(W_S\), `[H, D, S]`: \(v_s + W_S \hat e_{rs}\), with the score's state \(\hat e\).
    """

    features: Tensor | None = None
    bias: Tensor | None = None
    score: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None
    state_value: Tensor | None = None

    @property
    def used_channels(self) -> int:
        """Number K of channels, or 0 if the features are used only as a bias."""
        return 0 if all(w is None for w in (self.score, self.key, self.value)) else required(self.features).shape[1]

    @property
    def in_key_or_value(self) -> bool:
        """True if the features enter keys or values, and not the scores alone."""
        return self.key is not None or self.value is not None

    @property
    def whole_bias(self) -> Tensor | None:
        r"""Sum of all terms added to the scores, \(w_b \cdot e_{rs} + b_{rs}\), `[num_pairs, H]`."""
        if self.score is None:
            return self.bias
        linear = F.linear(required(self.features), self.score)
        return linear if self.bias is None else self.bias + linear


# --- Scores with an edge state: the edge enters the score, and what the score was made from goes back into the edge.


class ClippedDotScore(Score):
    r"""EGT's score (Edge-augmented Graph Transformer): the clipped scaled dot product plus a bias from the edge state.

    \[ s_{rs} = \mathrm{clip}(q_r \cdot k_s / \sqrt{C},\, -c,\, c) + W_e e_{rs} \]

    The edge state is updated from the score itself.

    Source: Hussain et al. 2022, "Global self-attention as a replacement for graph convolution", eq. 4
    (arXiv:2108.03348).

    Args:
        heads: number H of attention heads.
        edge_dim: channels K of the edge states.
        clip: bound c of the score; the paper uses 5.
    """

    def __init__(self, heads: int, edge_dim: int, clip: float = 5.0) -> None:
        super().__init__()
        self.heads: int = heads
        self.clip = clip
        self.lin_edge: Linear = Linear(edge_dim, heads)

    def reset_parameters(self) -> None:
        self.lin_edge.reset_parameters()

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self._bounded((query * key).sum(-1), query, edge)

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self._bounded(dots(query, key), query, edge)

    def _bounded(self, dot: Tensor, query: Tensor, edge: Tensor | None) -> Tensor:
        return (dot * query.shape[-1] ** -0.5).clamp(-self.clip, self.clip) + self.lin_edge(required(edge))

    def __repr__(self) -> str:
        return f"ClippedDotScore({self.lin_edge.out_channels}, {self.lin_edge.in_channels}, clip={self.clip})"


class GRITScore(Score):
    r"""Score of GRIT (Graph Inductive bias Transformer), from a vector per head that also becomes the new edge state.

    The vector is computed from query, key and edge state.

    \[ \hat e_{rs} = \mathrm{ReLU}\bigl( \rho\bigl( (q_r + k_s) \odot W_w e_{rs} \bigr) + W_b e_{rs} \bigr), \qquad
       s_{rs} = a \cdot \hat e_{rs} \]

    with the signed square root \(\rho(x) = \mathrm{sign}(x) \sqrt{|x|}\), here
    \(\mathrm{sign}(x) (\sqrt{|x| + \epsilon} - \sqrt{\epsilon})\), \(\epsilon = 10^{-6}\), whose slope is finite.
    The score is clipped to \(\pm c\) as in the authors' code. `edge_value="state"` adds \(W_{ev} \hat e_{rs}\) to the
    value.

    Source: Ma et al. 2023, "Graph inductive biases in transformers without message passing" (arXiv:2305.17589), eq. 2.

    Args:
        heads: number H of attention heads.
        channels: channels C of query and key, per head.
        edge_dim: channels K of the edge states.
        clip: bound c of the score.
    """

    def __init__(self, heads: int, channels: int, edge_dim: int, clip: float = 5.0) -> None:
        super().__init__()
        self.heads: int = heads
        self.channels: int = channels
        self.clip = clip
        self.state_channels = channels
        self.lin_weight: Linear = Linear(edge_dim, heads * channels)
        self.lin_bias: Linear = Linear(edge_dim, heads * channels)
        self.vector: nn.Parameter = nn.Parameter(torch.empty(heads, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.lin_weight.reset_parameters()
        self.lin_bias.reset_parameters()
        glorot(self.vector)

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self.weigh(self.state(query, key, edge))

    def state(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        edge, per_head = required(edge), self.vector.shape
        weight, bias = (lin(edge).unflatten(-1, per_head) for lin in (self.lin_weight, self.lin_bias))
        return (signed_root((query + key) * weight) + bias).relu()

    def weigh(self, state: Tensor) -> Tensor:
        return (state * self.vector).sum(-1).clamp(-self.clip, self.clip)

    def __repr__(self) -> str:
        return f"GRITScore({', '.join(map(str, self.vector.shape))}, {self.lin_weight.in_channels})"


def signed_root(x: Tensor, epsilon: float = 1e-6) -> Tensor:
    r"""\(\mathrm{sign}(x) (\sqrt{|x| + \epsilon} - \sqrt{\epsilon})\)."""
    return x.sign() * ((x.abs() + epsilon).sqrt() - epsilon**0.5)
