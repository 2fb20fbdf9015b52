"""Scores: a number per edge and head, from query, key and pair features."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import glorot, reset

# --- Scores: how well the query of a receiver fits the key of a sender (phi^e, first half).
#
# Read next: `gtx/attention/normalisers.py`, from scores to weights.


class Score(nn.Module):
    """Base class of scores, each an equation of a query, a key and edge features, written once for all layouts.

    A score that is bilinear in query and key defines `prepare`. Any other defines `forward`, which is then computed
    pair by pair for groups of receivers, and may also define

    * `pairs`: a faster, matrix form over all pairs, which tests compare with `forward`;
    * `state` and `weigh`, with `forward(q, k, e) = weigh(state(q, k, e))` and `state_channels`: a vector behind the
      score, from which an edge state can be updated. For other scores the state is the score itself.

    A subclass that overrides `forward`, `state` or `weigh` inherits no matrix form of its base class.

    Args:
        heads: number H of heads for which the score has weights; None for any number.
        channels: number C of channels of query and key per head for which the score has weights; None for any number.
        edge_dim: number K of channels of the edge features that the score reads; None for any number, or none.

    Attributes:
        bilinear: whether score(query, key) = prepare(query) · key; determined from the methods of the class.
        matrix_form: whether the class has a method `pairs` that is faster than `forward`; determined from the methods
            of the class.
        state_channels: number of channels of the edge state per head.
        fixed_sizes: sizes that an attention must share, of "heads", "channels" and "edge_dim"; None for any size. A
            normaliser, gate or merge may have this attribute too; the channels of a merge are those of a value.

    Raises:
        TypeError: where a subclass is defined, if it overrides `forward` of a score whose state is a vector, but
            neither `state` nor `weigh`: these are what an attention calls.
    """

    bilinear: bool = False
    matrix_form: bool = False
    state_channels: int = 1

    def __init__(self, heads: int | None = None, channels: int | None = None, edge_dim: int | None = None) -> None:
        super().__init__()
        self.heads = heads
        self.channels = channels
        self.edge_dim = edge_dim
        self.fixed_sizes: dict[str, int | None] = {"heads": heads, "channels": channels}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        order = {  # how far up the inheritance each is defined: 0 for the class itself
            name: next(i for i, base in enumerate(cls.__mro__) if name in vars(base))
            for name in ("forward", "prepare", "pairs", "state", "weigh")
        }
        last = cls.__mro__.index(Score)  # methods of this class are of no equation
        equation = min(order["forward"], order["state"], order["weigh"])
        cls.bilinear = order["prepare"] <= equation and order["prepare"] < last
        cls.matrix_form = cls.bilinear or order["pairs"] <= equation < last
        if order["forward"] < min(order["state"], order["weigh"]) < last:
            raise TypeError(
                f"{cls.__name__} overrides forward, but inherits state and weigh, which attention calls: expected a "
                "state or weigh of its own, or Score as its base"
            )

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        """Score queries `[..., H, C]` and keys `[..., H, C]` with edge features `[..., K]`: `[..., H]`, by
        broadcasting.
        """
        return (self.prepare(query) * key).sum(-1)

    def state(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        """Compute the values from which an edge state is updated, `[..., H, state_channels]`."""
        return self(query, key, edge).unsqueeze(-1)

    def weigh(self, state: Tensor) -> Tensor:
        """Map states `[..., H, state_channels]` to scores `[..., H]`."""
        return state.squeeze(-1)

    def prepare(self, query: Tensor) -> Tensor:
        """Map the query to query' `[..., H, C]` with score(query, key) = query' · key, for a bilinear score."""
        raise TypeError(f"{type(self).__name__} does not say how to score: expected forward, or prepare if bilinear")

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        """Score all pairs at once: `[b, r, H, C]`, `[b, s, H, C]` and `[b, r, s, K]` to `[b, r, s, H]`."""
        return dots(self.prepare(query), key)

    def reset_parameters(self) -> None:
        """Draw new initial weights."""

    def __repr__(self) -> str:
        sizes = {"heads": self.heads, "channels": self.channels, "edge_dim": self.edge_dim}
        return f"{type(self).__name__}({', '.join(f'{name}={size}' for name, size in sizes.items() if size)})"


def require(edge: Tensor | None) -> Tensor:
    """Return the edge features, without which the caller cannot compute.

    Raises:
        ValueError: there are none.
    """
    if edge is None:
        raise ValueError("this attention needs edge features: expected [E, edge_dim], got None")
    return edge


def dots(query: Tensor, key: Tensor) -> Tensor:
    """Multiply every query `[b, r, H, C]` with every key `[b, s, H, C]`: dot products `[b, r, s, H]`."""
    return (query.transpose(1, 2) @ key.permute(0, 2, 3, 1)).permute(0, 2, 3, 1)


class ScaledDotScore(Score):
    r"""Scaled dot product of query and key, \(q \cdot k / \sqrt{d_k}\).

    Source: Vaswani et al. 2017, "Attention is all you need", eq. 1 (arXiv:1706.03762).

    Args:
        scale: factor of the dot product; default \(1/\sqrt{d_k}\). The value 1.0 gives the plain dot product ("dot" in
            Luong et al. 2015, arXiv:1508.04025).
    """

    def __init__(self, scale: float | None = None) -> None:
        super().__init__()
        self.scale = scale

    def prepare(self, query: Tensor) -> Tensor:
        return query * (query.shape[-1] ** -0.5 if self.scale is None else self.scale)

    def __repr__(self) -> str:
        return f"ScaledDotScore({'' if self.scale is None else self.scale})"


class BilinearScore(Score):
    r"""Bilinear score \(q^\top W k\) with a learned matrix W per head, initialised to the scaled dot product \(W = I /
    \sqrt{C}\).

    Source: Luong et al. 2015, "general" (arXiv:1508.04025, eq. 8).

    Args:
        heads: number H of attention heads.
        channels: channels C of query and key, per head.
    """

    def __init__(self, heads: int, channels: int) -> None:
        super().__init__(heads, channels)
        self.weight: nn.Parameter = nn.Parameter(torch.empty(heads, channels, channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        channels = self.weight.shape[-1]
        with torch.no_grad():
            self.weight.copy_(torch.eye(channels) * channels**-0.5)

    def prepare(self, query: Tensor) -> Tensor:
        return torch.einsum("...hc,hcd->...hd", query, self.weight)


class _LearnedScore(Score):
    """Score with weights, drawn by Glorot's rule, and linear maps."""

    def __init__(self, heads: int | None = None, channels: int | None = None, edge_dim: int | None = None) -> None:
        super().__init__(heads, channels, edge_dim)
        self.fixed_sizes["edge_dim"] = edge_dim

    def reset_parameters(self) -> None:
        for module in self.children():
            reset(module)
        for parameter in self.parameters(recurse=False):
            glorot(parameter)


def _check_clip(clip: float) -> float:
    """Return the bound of a score, or refuse one that would make all scores the same."""
    if not clip > 0:
        raise ValueError(f"expected a bound of the score above 0, got clip={clip}")
    return clip


# --- Additive scores: query and key are added, not multiplied, and one learned vector reads the sum.


class _Additive(_LearnedScore):
    """A learned vector a per head, `[H, C]`."""

    def __init__(self, heads: int, channels: int) -> None:
        super().__init__(heads, channels)
        self.vector: nn.Parameter = nn.Parameter(torch.empty(heads, channels))
        self.reset_parameters()


class AdditiveScore(_Additive):
    r"""Additive score \(a \cdot \tanh(q + k)\); with the projections in q and k, it equals \(a \cdot \tanh(W [v_r
    \,\|\, v_s])\).

    Sources: Bahdanau et al. 2015 (arXiv:1409.0473); Luong et al. 2015, "concat" (arXiv:1508.04025, eq. 8).

    Args:
        heads: number H of attention heads.
        channels: channels C of query and key, per head.
    """

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return ((query + key).tanh() * self.vector).sum(-1)


class GATv2Score(_Additive):
    r"""Score of GATv2, \(a \cdot \mathrm{LeakyReLU}(q + k)\): which sender scores highest depends on the receiver.

    With the projections in q and k, and edge features in the key, the score equals
    \(a \cdot \mathrm{LeakyReLU}(W [v_r \,\|\, v_s \,\|\, e_{rs}])\).

    Source: Brody et al. 2022, eq. 7 (arXiv:2105.14491).

    Args:
        heads: number H of attention heads.
        channels: channels C of query and key, per head.
        slope: slope of the LeakyReLU for negative inputs.
    """

    def __init__(self, heads: int, channels: int, slope: float = 0.2) -> None:
        super().__init__(heads, channels)
        self.slope = slope

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return (F.leaky_relu(query + key, self.slope) * self.vector).sum(-1)


class GATScore(_LearnedScore):
    r"""Score of graph attention networks (GAT), \(\mathrm{LeakyReLU}(a_r \cdot q + a_s \cdot k)\).

    With one projection shared by query, key and value, \(q = W v_r\) and \(k = W v_s\), the score equals
    \(\mathrm{LeakyReLU}(a \cdot [W v_r \,\|\, W v_s])\). The senders have the same order of scores for every receiver;
    `GATv2Score` does not have this limitation.

    Source: Veličković et al. 2018, eq. 3 (arXiv:1710.10903).

    Args:
        heads: number H of attention heads.
        channels: channels C of query and key, per head.
        slope: slope of the LeakyReLU for negative inputs.
    """

    def __init__(self, heads: int, channels: int, slope: float = 0.2) -> None:
        super().__init__(heads, channels)
        self.receiver: nn.Parameter = nn.Parameter(torch.empty(heads, channels))
        self.sender: nn.Parameter = nn.Parameter(torch.empty(heads, channels))
        self.slope = slope
        self.reset_parameters()

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        of_receiver, of_sender = (query * self.receiver).sum(-1), (key * self.sender).sum(-1)
        return F.leaky_relu(of_receiver + of_sender, self.slope)

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self(query[:, :, None], key[:, None])  # one number each: nothing of width C per pair


# --- R-MAT's score: relative embeddings of a pair beside query and key.


class RMATScore(_LearnedScore):
    r"""Score of R-MAT (Relative Molecule Attention Transformer), with a relative embedding of each pair of atoms.

    The score sums dot products of query, key and the embedding \(b_{rs} = W e_{rs}\), and two global terms.

    \[ s_{rs} = \frac{q_r \cdot k_s + (q_r + k_s) \cdot b_{rs}}{\sqrt{C}} + u \cdot k_s + w \cdot b_{rs} \]

    The global content term \(u \cdot k_s\) uses the SENDER, because the softmax would cancel a term of the receiver.
    With `edge_value=True`, the embedding is also added to the values.

    Source: Maziarka et al. 2021, "Relative molecule self-attention transformer" (arXiv:2110.05841), after Dai et al.
    2019, Transformer-XL (arXiv:1901.02860).

    Args:
        heads: number H of attention heads.
        channels: channels C of query and key, per head.
        edge_dim: channels K of the edge features.

    Raises:
        ValueError: edge features are missing.
    """

    def __init__(self, heads: int, channels: int, edge_dim: int) -> None:
        super().__init__(heads, channels, edge_dim)
        self.edge: nn.Parameter = nn.Parameter(torch.empty(heads, channels, edge_dim))  # W
        self.content: nn.Parameter = nn.Parameter(torch.empty(heads, channels))  # u
        self.position: nn.Parameter = nn.Parameter(torch.empty(heads, channels))  # w
        self.reset_parameters()

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        relative = torch.einsum("...k,hck->...hc", require(edge), self.edge)
        scaled = (query * key).sum(-1) + ((query + key) * relative).sum(-1)
        return scaled * query.shape[-1] ** -0.5 + (self.content * key).sum(-1) + (self.position * relative).sum(-1)

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        edge, root = require(edge), query.shape[-1] ** 0.5
        # (q/√C + w)·W e = ((q/√C + w) W)·e, and the same for k/√C: vectors [., n, H, K]
        by_receiver = torch.einsum("brhc,hck->brhk", query / root + self.position, self.edge)
        by_sender = torch.einsum("bshc,hck->bshk", key / root, self.edge)
        of_receiver = edge @ by_receiver.transpose(2, 3)  # [b, r, s, H]
        of_sender = (edge.transpose(1, 2) @ by_sender.transpose(2, 3)).transpose(1, 2)
        return dots(query / root + self.content, key) + of_receiver + of_sender


# --- A score in which the edge scales every channel of query and key.


class EdgeModulatedDotScore(_LearnedScore):
    r"""Dot product of query and key in which each channel is multiplied by a projection of the edge features.

    \[ s_{rs} = \sum_c q_{rc}\, k_{sc}\, a(W_e e_{rs})_c \cdot f \]

    Sources: Shirzad et al. 2023, Exphormer (arXiv:2303.06147), a the identity and \(f = 1/\sqrt{C}\), as in
    Dwivedi & Bresson 2020 (arXiv:2012.09699); Thölke & De Fabritiis 2022, TorchMD-NET (arXiv:2202.02541), a the SiLU
    and f = 1.

    Args:
        heads: number H of attention heads.
        channels: channels C of query and key, per head.
        edge_dim: channels K of the edge features.
        scale: factor f; default \(1/\sqrt{C}\).
        activation: function a; default: none.
        clip: largest absolute value of the score, or None; a published setting is 5.
    """

    def __init__(
        self,
        heads: int,
        channels: int,
        edge_dim: int,
        scale: float | None = None,
        activation: nn.Module | None = None,
        clip: float | None = None,
    ) -> None:
        super().__init__(heads, channels, edge_dim)
        self.clip = None if clip is None else _check_clip(clip)
        self.scale: float = channels**-0.5 if scale is None else scale
        self.lin_edge: Linear = Linear(edge_dim, heads * channels)
        self.activation = activation

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        factor = self.lin_edge(require(edge)).unflatten(-1, (self.heads, self.channels))
        factor = factor if self.activation is None else self.activation(factor)
        score = self.scale * (query * key * factor).sum(-1)
        return score if self.clip is None else score.clamp(-self.clip, self.clip)


# --- Scores with an edge state: the edge enters the score, and what the score was made from goes back into the edge.


class ClippedDotScore(_LearnedScore):
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
        super().__init__(heads, edge_dim=edge_dim)
        self.clip = _check_clip(clip)
        self.lin_edge: Linear = Linear(edge_dim, heads)

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self._bounded((query * key).sum(-1), query, edge)

    def pairs(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self._bounded(dots(query, key), query, edge)

    def _bounded(self, dot: Tensor, query: Tensor, edge: Tensor | None) -> Tensor:
        return (dot * query.shape[-1] ** -0.5).clamp(-self.clip, self.clip) + self.lin_edge(require(edge))


class GRITScore(_LearnedScore):
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
        super().__init__(heads, channels, edge_dim)
        self.clip = _check_clip(clip)
        self.state_channels = channels
        self.lin_weight: Linear = Linear(edge_dim, heads * channels)
        self.lin_bias: Linear = Linear(edge_dim, heads * channels)
        self.vector: nn.Parameter = nn.Parameter(torch.empty(heads, channels))
        self.reset_parameters()

    def forward(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        return self.weigh(self.state(query, key, edge))

    def state(self, query: Tensor, key: Tensor, edge: Tensor | None = None) -> Tensor:
        edge, per_head = require(edge), self.vector.shape
        weight, bias = (lin(edge).unflatten(-1, per_head) for lin in (self.lin_weight, self.lin_bias))
        return (signed_root((query + key) * weight) + bias).relu()

    def weigh(self, state: Tensor) -> Tensor:
        return (state * self.vector).sum(-1).clamp(-self.clip, self.clip)


def signed_root(x: Tensor, epsilon: float = 1e-6) -> Tensor:
    r"""\(\mathrm{sign}(x) (\sqrt{|x| + \epsilon} - \sqrt{\epsilon})\)."""
    return x.sign() * ((x.abs() + epsilon).sqrt() - epsilon**0.5)
