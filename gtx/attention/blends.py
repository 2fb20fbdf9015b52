"""Normalisers that let edge features into the weights themselves: MAT's blend, EGT's gates, TorchMD-NET's cutoff."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import silu
from torch_geometric.nn.dense.linear import Linear

from gtx.attention.normalisers import Normaliser
from gtx.attention.receivers import Receivers


class MoleculeBlend(Normaliser):
    r"""MAT's blend of attention with a distance and an adjacency matrix, after the softmax.

    \[ w_{rs} = \lambda_a \operatorname{softmax}_s(s_{rs}) + \lambda_d\, g_{rs} + \lambda_g A_{rs}, \qquad
       g_{rs} = \operatorname{softmax}_s(-d_{rs}) \ \text{or}\ \exp(-d_{rs}) \]

    The edge features are \([d_{rs}, A_{rs}, m_{rs}]\), as `gtx.encodings.PairDistance` yields them: distance in Å,
    1 where there is a bond, 1 where the distance is known. Where it is not, \(g_{rs} = 0\).

    Source: Maziarka et al. 2020, "Molecule attention transformer", eq. 2 (arXiv:2002.08264).

    Args:
        weights: \(\lambda_a, \lambda_d, \lambda_g\).
        learned: learn them, kept positive with sum 1 (a softmax of their logarithms); else they are fixed.
        kernel: g, "softmax" or "exp".
    """

    def __init__(
        self, weights: Sequence[float] = (1 / 3, 1 / 3, 1 / 3), learned: bool = False, kernel: str = "softmax"
    ) -> None:
        super().__init__()
        if kernel not in ("softmax", "exp"):
            raise ValueError(f"expected the kernel softmax or exp, got {kernel}")
        if len(weights) != 3 or (learned and min(weights) <= 0):
            raise ValueError(f"expected three weights, above 0 if learned, got {list(weights)}")
        self.kernel, self.learned = kernel, learned
        self.initial = tuple(weights)
        start = torch.tensor(self.initial, dtype=torch.get_default_dtype())
        if learned:
            self.logits = nn.Parameter(start.log())
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

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        if edge is None or edge.shape[-1] != 3:
            came = "None" if edge is None else f"{edge.shape[-1]} channels"
            raise ValueError(f"expected edge features [distance, adjacency, known], 3 channels, got {came}")
        distance, adjacent, known = edge.split(1, -1)  # [..., 1] each, the same for every head
        if self.kernel == "exp":
            near = (-distance).exp() * known
        else:
            unknown = torch.zeros_like(distance).masked_fill(known == 0, -1e4)  # known pairs share all the weight
            near = into.softmax(unknown - distance) * known
        attention, by_distance, by_bond = self.weights.to(score.dtype)
        return into.only(attention * into.softmax(score) + by_distance * near + by_bond * adjacent)

    def __repr__(self) -> str:
        return f"MoleculeBlend({', '.join(f'{w:.3g}' for w in self.initial)}, {self.kernel})"


class GatedSoftmax(Normaliser):
    r"""EGT's weights: a softmax times a sigmoid gate from the edge state, and a scaler of the logarithm of the degree.

    \[ w_{rs} = \operatorname{softmax}_s(s_{rs})\, g_{rs} \, \log\Bigl(1 + \sum_{s'} g_{rs'}\Bigr), \qquad
       g_{rs} = \sigma(W_g e_{rs}) \]

    The scaler is one factor for all edges into a receiver, so it may stand on the weights or on their sum.

    Source: Hussain et al. 2022 (arXiv:2108.03348), eq. 3 and 5.

    Args:
        heads: H.
        edge_dim: channels K of the edge states.
        scale: whether the logarithm of the degree scales.
    """

    def __init__(self, heads: int, edge_dim: int, scale: bool = True) -> None:
        super().__init__()
        self.heads, self.scale = heads, scale
        self.lin_gate = Linear(edge_dim, heads)

    def reset_parameters(self) -> None:
        self.lin_gate.reset_parameters()

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        if edge is None:
            raise ValueError("these gates need edge states: expected [E, edge_dim], got None")
        gate = into.only(self.lin_gate(edge).sigmoid())
        weights = into.softmax(score) * gate
        return weights * torch.log1p(into.sum(gate)) if self.scale else weights

    def __repr__(self) -> str:
        return f"GatedSoftmax({self.lin_gate.out_channels}, {self.lin_gate.in_channels})"


class CutoffSiLU(Normaliser):
    r"""Weights that end at a cutoff in space, \(b_k = \mathrm{SiLU}(s_k)\, \phi_k\).

    \(\phi_k\) is the last channel of the edge features, as `gtx.encodings.Direction` yields it: from 1 at a distance of
    0 to 0 at the cutoff. The weights into a receiver sum to anything.

    Source: Thölke & De Fabritiis 2022, TorchMD-NET (arXiv:2202.02541).
    """

    def forward(self, score: Tensor, edge: Tensor | None, into: Receivers) -> Tensor:
        if edge is None:
            raise ValueError("the last edge feature is to say how near an edge is: expected [E, edge_dim], got None")
        return into.only(silu(score) * edge[..., -1:])

    def __repr__(self) -> str:
        return "CutoffSiLU()"
