"""Gaussians of the exponential of the distance in space."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gtx.encodings.distance import RadialBasis, check_basis
from gtx.encodings.envelope import envelope


class ExpNormDistance(RadialBasis):
    r"""Gaussians of \(e^{-d}\), narrow for near pairs and wide for far ones.

    \[ u(d_{rs} / c)\, \exp\left(-\beta_k (e^{-d_{rs}} - \mu_k)^2\right) \]

    The K centres \(\mu_k\) are spread evenly from \(e^{-c}\) to 1, \(\beta_k = (\frac{2}{K} (1 - e^{-c}))^{-2}\), d is
    in Å, and u is `envelope` with p = 3.

    Source: Unke & Meuwly 2019, PhysNet (arXiv:1902.08408), the radial basis functions.

    Args:
        channels: K.
        cutoff: c, Å.
        learned: learn centres and widths, as PhysNet does.

    Reads `pos` `[N, 3]`, Å, NaN where unknown. Yields pair values `[num_pairs, K + 1]`, the last 1 where the distance
    is known; where it is not, all are 0.

    Raises:
        ValueError: no channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    def __init__(self, channels: int = 32, cutoff: float = 10.0, learned: bool = False) -> None:
        check_basis(channels, cutoff)
        super().__init__(channels)
        self.cutoff = cutoff
        last = math.exp(-cutoff)
        self._constant("centres", torch.linspace(last, 1.0, channels), learned)
        self._constant("log_betas", torch.full((channels,), -2 * math.log(2 / channels * (1 - last))), learned)

    def basis(self, distance: Tensor) -> Tensor:
        near = (-distance[:, None]).exp()
        gaussians = torch.exp(-self.log_betas.exp() * (near - self.centres).square())
        return gaussians * envelope(distance[:, None] / self.cutoff, exponent=3)

    def __repr__(self) -> str:
        return f"ExpNormDistance({self.channels}, cutoff={self.cutoff})"
