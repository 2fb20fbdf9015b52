"""Gaussians of the distance in space."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.encodings.distance import RadialBasis, check_basis
from gtx.graph import CompleteGraph


class GaussianDistance(RadialBasis):
    r"""Gaussians of the distance between two nodes.

    \[ \exp\left(-\frac{(a_{t_r t_s} d_{rs} + b_{t_r t_s} - \mu_k)^2}{2\sigma_k^2}\right) \]

    The K centres \(\mu_k\) are spread evenly from 0 to `cutoff` and \(\sigma_k\) is their spacing; both stay so unless
    they are learned. Scale a and shift b are 1 and 0 unless `pair_types` lets them be learned for each ordered pair of
    atom types. The distance itself does not enter otherwise, so all pairs far above the cutoff have the same features.

    Sources: fixed, Schütt et al. 2017, SchNet (arXiv:1706.08566), eq. 3; learned, with pair types, Shi et al.
    2022, Graphormer-3D (arXiv:2203.04810), and Zhou et al. 2023, Uni-Mol (ICLR 2023), there with the factor
    \(1/\sqrt{2\pi}\sigma_k\), here without.

    Args:
        channels: K.
        cutoff: the last centre, Å.
        learned: learn centres and widths.
        pair_types: learn scale and shift for so many atom types, the codes of the first column of `x`.

    Reads `pos` `[N, 3]`, Å, NaN where unknown, and with `pair_types` the first column of `x`, int64 `[N, F]`. Yields
    pair values `[num_pairs, K + 1]`, the last 1 where the distance is known; where it is not, all are 0.

    Raises:
        ValueError: fewer than 2 channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    def __init__(
        self, channels: int = 32, cutoff: float = 10.0, learned: bool = False, pair_types: int | None = None
    ) -> None:
        check_basis(channels, cutoff, least=2)
        super().__init__(channels)
        self.cutoff, self.learned, self.pair_types = cutoff, learned, pair_types
        self._constant("centres", torch.linspace(0.0, cutoff, channels), learned)
        self._constant("log_widths", torch.full((channels,), cutoff / (channels - 1)).log(), learned)
        if pair_types is not None:
            self.scale = nn.Parameter(torch.ones(pair_types, pair_types))
            self.shift = nn.Parameter(torch.zeros(pair_types, pair_types))

    def adjusted(self, distance: Tensor, data: Data, graph: CompleteGraph) -> Tensor:
        if self.pair_types is None:
            return distance
        sender, receiver = data.x[:, 0][graph.pair_index]
        return self.scale[receiver, sender] * distance + self.shift[receiver, sender]

    def basis(self, distance: Tensor) -> Tensor:
        return torch.exp(-0.5 * ((distance[:, None] - self.centres) / self.log_widths.exp()).square())

    def __repr__(self) -> str:
        options = (", learned=True" if self.learned else "") + (
            "" if self.pair_types is None else f", pair_types={self.pair_types}"
        )
        return f"GaussianDistance({self.channels}, cutoff={self.cutoff}{options})"
