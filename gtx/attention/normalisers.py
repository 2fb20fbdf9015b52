"""Normalisers, from scores to weights; gates, factors on what a head yields; merges, from heads to one vector."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import silu
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import glorot
from torch_geometric.utils import scatter, softmax

from gtx.attention.scores import require
from gtx.graph import BipartiteGraph, CompleteGraph

# --- The edges of a graph grouped by the receiver they go into: what a normaliser works on, in either layout.


class EdgeListAggregator:
    """Sums, maxima and softmaxes over the edges into each node, for a graph given as an edge list.

    Args:
        receiver: receiver of each edge, int64 `[E]`.
        num_receivers: number of receivers.
    """

    def __init__(self, receiver: Tensor, num_receivers: int) -> None:
        self.receiver = receiver
        self.num_receivers = num_receivers

    def softmax(self, score: Tensor) -> Tensor:
        """Compute a softmax over the edges into each receiver; the result is exactly 0 for pairs without an edge."""
        return softmax(score, self.receiver, num_nodes=self.num_receivers)

    def sum(self, values: Tensor) -> Tensor:
        """Sum the values over all edges into the receiver of each edge."""
        return scatter(values, self.receiver, 0, self.num_receivers, "sum")[self.receiver]

    def max(self, values: Tensor) -> Tensor:
        """Take the largest value over all edges into the receiver of each edge."""
        return scatter(values, self.receiver, 0, self.num_receivers, "max")[self.receiver]

    def only(self, values: Tensor) -> Tensor:
        """Set the values of pairs without an edge to 0; an edge list has no such pairs."""
        return values


class CompleteGraphAggregator:
    """The same, by the same methods, for padded complete graphs of similar size.

    The softmax is in the memory order `[b, H, receivers, senders]`.

    Args:
        absent: bool `[b, receivers or 1, senders, 1]`, True where there is no edge: padding, or masked.
        padding_only: whether every receiver has an edge, as where only padding is absent.
    """

    def __init__(self, absent: Tensor, padding_only: bool) -> None:
        self.absent = absent
        self.padding_only = padding_only
        nothing = absent if padding_only else absent & ~absent.all(2, keepdim=True)  # a row without edges stays finite
        self.penalty: Tensor = torch.zeros_like(absent, dtype=torch.get_default_dtype()).masked_fill_(
            nothing, -torch.inf
        )

    def block(self, rows: slice) -> CompleteGraphAggregator:
        """Select some of the receivers."""
        if self.absent.shape[1] == 1:
            return self
        return CompleteGraphAggregator(self.absent[:, rows], self.padding_only)

    def softmax(self, score: Tensor) -> Tensor:
        score = score + self.penalty.to(score.dtype)
        weights = score.permute(0, 3, 1, 2).softmax(-1).permute(0, 2, 3, 1)
        return weights if self.padding_only else self.only(weights)

    def sum(self, values: Tensor) -> Tensor:
        return self.only(values).sum(2, keepdim=True)

    def max(self, values: Tensor) -> Tensor:
        return values.masked_fill(self.absent, -torch.inf).amax(2, keepdim=True)

    def only(self, values: Tensor) -> Tensor:
        return values.masked_fill(self.absent, 0.0)


ReceiverAggregator = EdgeListAggregator | CompleteGraphAggregator
"""Sums, maxima and softmaxes over the edges into each receiver.

Inputs and outputs have one entry per edge: `[E, H]` for an edge list, `[b, receivers, senders, H]` for a padded group
of complete graphs. A result for a receiver is returned for each of its edges (or broadcast), so that a normaliser is
one equation for both layouts.
"""


# --- Normalisers: from the scores of the edges into a receiver to their weights.


class Normaliser(nn.Module):
    """Base class of normalisers, which turn scores into attention weights, such as a softmax.

    Subclasses define `forward`. A pair that is not an edge must get a weight of exactly 0; the methods `into.softmax`
    and `into.only` ensure this.
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        """Compute the attention weights.

        Args:
            score: `[..., H]`, one per edge and head.
            edge: features of the edges, `[..., K]`, or None.
            into: the edges grouped by receiver.

        Returns:
            `[..., H]`.
        """
        raise TypeError(f"{type(self).__name__} does not say how to weigh scores")


class Softmax(Normaliser):
    r"""Softmax over the edges into each receiver r, \(b_k = \exp(s_k / T) / \sum_{k' \to r} \exp(s_{k'} / T)\).

    Source: Vaswani et al. 2017, eq. 1 (arXiv:1706.03762); the temperature, Hinton et al. 2015 (arXiv:1503.02531). The
    weights into a receiver sum to 1. A receiver without any edge has no weights, so its weighted sum is zero. As T goes
    to 0 the weights go to those of `Hardmax`; as T goes to infinity they become uniform.

    Args:
        temperature: temperature T > 0, in units of the score.
    """

    def __init__(self, temperature: float = 1.0) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"expected a temperature above 0 (for its limit take Hardmax), got {temperature}")
        self.temperature = temperature

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        return into.softmax(score if self.temperature == 1.0 else score / self.temperature)

    def __repr__(self) -> str:
        return f"Softmax({'' if self.temperature == 1.0 else self.temperature})"


class Hardmax(Normaliser):
    r"""Normaliser that gives all weight to the largest score (shared by ties): the softmax at temperature T = 0.

    In the backward pass, the gradient is that of the softmax at T = 1 (straight-through), because the maximum itself
    has no gradient.

    Sources: hard attention, Xu et al. 2015 (arXiv:1502.03044); the straight-through gradient, Bengio et al. 2013
    (arXiv:1308.3432).
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        largest = into.only((score == into.max(score)).to(score.dtype))
        hard = largest / into.sum(largest).clamp(min=1.0)
        soft = into.softmax(score)
        return hard.detach() + (soft - soft.detach())


class Sigmoid(Normaliser):
    r"""Normaliser that applies a sigmoid to each score, \(b_k = \sigma(s_k)\); the weights into a receiver need not sum
    to 1.

    Source: Ramapuram et al. 2024 (arXiv:2409.04431), without its bias of \(-\log n\).
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        return into.only(score.sigmoid())


class NoNormalisation(Normaliser):
    r"""Normaliser that uses the scores themselves as weights, \(b_k = s_k\).

    Source: linear attention, Katharopoulos et al. 2020 (arXiv:2006.16236), without its division.
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        return into.only(score)


# --- Normalisers that let edge features into the weights themselves: MAT's blend, EGT's gates, TorchMD-NET's cutoff.


class DistanceAdjacencyBlend(Normaliser):
    r"""Blend of attention weights with a distance and an adjacency matrix, as in MAT (Molecule Attention Transformer).

    \[ w_{rs} = \lambda_a \operatorname{softmax}_s(s_{rs}) + \lambda_d\, g_{rs} + \lambda_g A_{rs}, \qquad
       g_{rs} = \operatorname{softmax}_s(-d_{rs}) \ \text{or}\ \exp(-d_{rs}) \]

    The edge features \([d_{rs}, A_{rs}, m_{rs}]\) come from `gtx.encodings.MATDistanceAndAdjacency`: the distance in
    Å, 1 for a bond, and 1 for a known distance. If the distance is unknown, \(g_{rs} = 0\).

    Source: Maziarka et al. 2020, "Molecule attention transformer", eq. 2 (arXiv:2002.08264).

    Args:
        weights: the three weights \(\lambda_a, \lambda_d, \lambda_g\).
        learned: whether the three weights are learned, positive with sum 1 (a softmax of their logarithms), or fixed.
        kernel: kind of the function g, "softmax" or "exp".
    """

    fixed: Tensor

    def __init__(
        self, weights: Sequence[float] = (1 / 3, 1 / 3, 1 / 3), learned: bool = False, kernel: str = "softmax"
    ) -> None:
        super().__init__()
        if kernel not in ("softmax", "exp"):
            raise ValueError(f"expected the kernel softmax or exp, got {kernel}")
        if len(weights) != 3 or (learned and min(weights) <= 0):
            raise ValueError(f"expected three weights, above 0 if learned, got {list(weights)}")
        self.kernel = kernel
        self.learned = learned
        self.initial: tuple[float, ...] = tuple(weights)
        start = torch.tensor(self.initial, dtype=torch.get_default_dtype())
        if learned:
            self.logits: nn.Parameter = nn.Parameter(start.log())
        else:
            self.register_buffer("fixed", start, persistent=False)

    def reset_parameters(self) -> None:
        if self.learned:
            with torch.no_grad():
                self.logits.copy_(torch.tensor(self.initial).log())

    @property
    def weights(self) -> Tensor:
        r"""\(\lambda_a, \lambda_d, \lambda_g\), `[3]`."""
        return self.logits.softmax(0) if self.learned else self.fixed

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        if edge is None or edge.shape[-1] != 3:
            came = "None" if edge is None else f"{edge.shape[-1]} channels"
            raise ValueError(f"expected edge features [distance, adjacency, known], 3 channels, got {came}")
        distance, adjacent, known = edge.split(1, -1)  # [..., 1] each, the same for every head
        if self.kernel == "exp":
            closeness = (-distance).exp() * known
        else:
            unknown = torch.zeros_like(distance).masked_fill(known == 0, -1e4)  # known pairs share all the weight
            closeness = into.softmax(unknown - distance) * known
        attention, by_distance, by_bond = self.weights.to(score.dtype)
        return into.only(attention * into.softmax(score) + by_distance * closeness + by_bond * adjacent)

    def __repr__(self) -> str:
        return f"DistanceAdjacencyBlend({', '.join(f'{w:.3g}' for w in self.initial)}, {self.kernel})"


class GatedSoftmax(Normaliser):
    r"""Normaliser of EGT (Edge-augmented Graph Transformer): a softmax times a sigmoid gate from the edge state.

    The result is scaled by the logarithm of the degree.

    \[ w_{rs} = \operatorname{softmax}_s(s_{rs})\, g_{rs} \, \log\Bigl(1 + \sum_{s'} g_{rs'}\Bigr), \qquad
       g_{rs} = \sigma(W_g e_{rs}) \]

    The logarithm of the degree is one factor for all edges into a receiver, so scaling the weights equals scaling the
    sum.

    Source: Hussain et al. 2022 (arXiv:2108.03348), eq. 3 and 5.

    Args:
        heads: number H of attention heads.
        edge_dim: channels K of the edge states.
        scale: whether the weights are scaled by the logarithm of the degree.
    """

    def __init__(self, heads: int, edge_dim: int, scale: bool = True) -> None:
        super().__init__()
        self.fixed_sizes: dict[str, int] = {"heads": heads, "edge_dim": edge_dim}
        self.scale = scale
        self.lin_gate: Linear = Linear(edge_dim, heads)

    def reset_parameters(self) -> None:
        self.lin_gate.reset_parameters()

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        gate = into.only(self.lin_gate(require(edge)).sigmoid())
        weights = into.softmax(score) * gate
        return weights * torch.log1p(into.sum(gate)) if self.scale else weights

    def __repr__(self) -> str:
        return f"GatedSoftmax({self.lin_gate.out_channels}, {self.lin_gate.in_channels})"


class SiLUWithCutoff(Normaliser):
    r"""Normaliser of TorchMD-NET: \(b_k = \mathrm{SiLU}(s_k)\, \phi_k\), weights that fall to 0 at a cutoff distance.

    The factor \(\phi_k\) is the last channel of the edge features from `gtx.encodings.PairUnitVector`; it falls from 1
    at a distance of 0 to 0 at the cutoff. The weights into a receiver need not sum to 1.

    Source: Thölke & De Fabritiis 2022, TorchMD-NET (arXiv:2202.02541).
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: ReceiverAggregator) -> Tensor:
        return into.only(silu(score) * require(edge)[..., -1:])


# --- A gate on each head of each receiver.


class HeadGate(nn.Module):
    r"""Gate on each head of each receiver, as in GaAN (Gated Attention Network).

    \[ g_r = \sigma\Bigl( W_g \bigl[ v_r \,\|\, \max_{s \to r} W_m v_s \,\|\,
       \operatorname{mean}_{s \to r} v_s \bigr] \Bigr) \]

    For a receiver without senders, the maximum and the mean are zero.

    Source: Zhang et al. 2018, "GaAN: gated attention networks", eq. 3 (arXiv:1803.07294).

    Args:
        in_channels: channels of the nodes, or a pair for (source, target).
        heads: number H of attention heads.
        channels: width of the max-pooled projection.

    Shapes:
        target `[N, *]`, source `[M, *]`, an edge list or complete graph, to `[N, H]`.
    """

    def __init__(self, in_channels: int | Sequence[int], heads: int, channels: int = 64) -> None:
        super().__init__()
        source, target = in_channels if isinstance(in_channels, Sequence) else (in_channels, in_channels)
        self.fixed_sizes: dict[str, int] = {"heads": heads}
        self.lin_max: Linear = Linear(source, channels)
        self.lin_gate: Linear = Linear(target + channels + source, heads)

    def reset_parameters(self) -> None:
        self.lin_max.reset_parameters()
        self.lin_gate.reset_parameters()

    def forward(self, target: Tensor, source: Tensor, edge_index: Tensor | CompleteGraph) -> Tensor:
        projected = self.lin_max(source)
        if (
            isinstance(edge_index, CompleteGraph)
            and not isinstance(edge_index, BipartiteGraph)
            and edge_index.mask is None
        ):  # all receivers of a graph see the same
            graph, count = edge_index.batch, edge_index.num_graphs
            largest, mean = scatter(projected, graph, 0, count, "max"), scatter(source, graph, 0, count, "mean")
            pooled = torch.cat([largest, mean], -1)[graph]
        else:
            sender, receiver = edge_index.edge_index if isinstance(edge_index, CompleteGraph) else edge_index
            largest = scatter(projected[sender], receiver, 0, target.shape[0], "max")
            pooled = torch.cat([largest, scatter(source[sender], receiver, 0, target.shape[0], "mean")], -1)
        return self.lin_gate(torch.cat([target, pooled], -1)).sigmoid()

    def __repr__(self) -> str:
        return f"HeadGate({self.lin_gate.in_channels}, {self.lin_gate.out_channels})"


# --- How the heads become one vector.


class HeadMerge(nn.Module):
    """Base class of modules that merge the outputs of the heads, `[N, H, C]`, into `[N, width]`."""

    def width(self, heads: int, channels: int) -> int:
        """Channels of the output: by default those of one head."""
        return channels


class MaxOverHeads(HeadMerge):
    """Merge of the heads by their maximum, channel by channel."""

    def forward(self, heads: Tensor) -> Tensor:
        return heads.amax(1)


class LearnedSumOverHeads(HeadMerge):
    r"""Merge of the heads by a learned weight each, \(\bar e_{ij} = \sum_h w_h \bar e_{ihj}\), initialised to the mean.

    Args:
        heads: number H of attention heads.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.fixed_sizes: dict[str, int] = {"heads": heads}
        self.weight: nn.Parameter = nn.Parameter(torch.empty(heads))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.weight, 1 / len(self.weight))

    def forward(self, heads: Tensor) -> Tensor:
        return torch.einsum("nhj,h->nj", heads, self.weight)


class LinearHeadMerge(HeadMerge):
    r"""Merge of the heads by a learned weight tensor, \(\bar e_{il} = \sum_{jh} \bar e_{ihj}\, w_{jhl}\).

    The merge equals concatenation followed by the matrix \(W_o\): row \((h, j)\) of \(W_o\) is \(w_{jh\cdot}\).

    Args:
        heads: number H of attention heads.
        channels: number of channels of a head (index j).
        out_channels: number of output channels (index l).
    """

    def __init__(self, heads: int, channels: int, out_channels: int) -> None:
        super().__init__()
        self.fixed_sizes: dict[str, int] = {"heads": heads, "channels": channels}
        self.weight: nn.Parameter = nn.Parameter(torch.empty(channels, heads, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        glorot(self.weight)

    def width(self, heads: int, channels: int) -> int:
        return self.weight.shape[-1]

    def forward(self, heads: Tensor) -> Tensor:
        return torch.einsum("nhj,jhl->nl", heads, self.weight)
