"""A learned function of eigenvectors that does not depend on their signs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import GINConv

from gtx.gelu import GELU


class SignInvariant(nn.Module):
    r"""One learned function of each eigenvector and its eigenvalue, the same for both signs.

    \[ \phi(v_l, \lambda_l) + \phi(-v_l, \lambda_l) \]

    where \(\phi\) is a graph isomorphism network of one round over the bonds,
    \(\phi(v, \lambda)_i = \mathrm{MLP}(h_i + \sum_{j \sim i} h_j)\) with \(h_i = \mathrm{MLP}(v_i, \lambda)\), so that
    it sees where neighbours differ in sign. An eigenvector that is not there, of eigenvalue 0, yields zeros. The
    linear map that models apply to node values takes the place of \(\rho\) over all l.

    Source: SignNet, Lim et al. 2022 (arXiv:2202.13013), eq. 3.

    Args:
        channels: C, of the result.
        hidden: width within.

    Shapes:
        entries and eigenvalues `[N, k]`, `edge_index` `[2, E]` to `[N, k, C]`.
    """

    def __init__(self, channels: int, hidden: int = 32) -> None:
        super().__init__()
        self.channels = channels
        self.before = nn.Sequential(nn.Linear(2, hidden), GELU(), nn.Linear(hidden, hidden), GELU())
        self.round = GINConv(nn.Sequential(nn.Linear(hidden, hidden), GELU(), nn.Linear(hidden, channels)))

    def forward(self, vectors: Tensor, values: Tensor, edge_index: Tensor) -> Tensor:
        both = torch.stack([torch.stack([v, values], -1) for v in (vectors, -vectors)])  # [2, N, k, 2]
        both = both.to(self.before[0].weight.dtype).transpose(1, 2)  # nodes last but one, as messages want them
        result = self.round(self.before(both), edge_index).sum(0).transpose(0, 1)
        return result * (values > 0)[..., None]

    def __repr__(self) -> str:
        return f"SignInvariant({self.channels})"
