"""Distance in space, in a radial basis."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Encoding, Values
from gtx.graph import CompleteGraph


class GaussianDistance(Encoding):
    r"""Gaussians of the distance between two nodes, \(\exp(-(d_{rs} - \mu_k)^2 / 2\sigma^2)\).

    The K centres \(\mu_k\) are spread evenly from 0 to `cutoff` and \(\sigma\) is their spacing. The distance itself
    does not enter otherwise, so two nodes far beyond the cutoff look alike.

    Source: Schütt et al. 2017, SchNet (arXiv:1706.08566), eq. 3.

    Args:
        channels: K.
        cutoff: the last centre, Å.

    Reads `pos` `[N, 3]`, Å. Yields pair values `[num_pairs, K]`; rotating or moving a molecule changes nothing.

    Raises:
        ValueError: if there are no coordinates.
    """

    def __init__(self, channels: int = 32, cutoff: float = 10.0) -> None:
        super().__init__()
        if channels < 2 or cutoff <= 0:
            raise ValueError(f"expected at least 2 channels and a positive cutoff, got {channels} and {cutoff}")
        self.cutoff = cutoff
        self.register_buffer("centres", torch.linspace(0.0, cutoff, channels), persistent=False)
        self.pair = Values(channels)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        if data.pos is None:
            raise ValueError("this encoding needs coordinates: expected pos [N, 3] in Å, got None")
        sender, receiver = graph.pair_index
        distance = (data.pos[sender] - data.pos[receiver]).norm(dim=-1)
        spacing = self.centres[1] - self.centres[0]
        return None, torch.exp(-0.5 * ((distance[:, None] - self.centres) / spacing).square())

    def __repr__(self) -> str:
        return f"GaussianDistance({len(self.centres)}, cutoff={self.cutoff})"
