"""Spherical Bessel functions of the distance in space."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gtx.encodings.distance import RadialBasis, check_basis
from gtx.encodings.envelope import envelope


class BesselDistance(RadialBasis):
    r"""The spherical waves of order zero that vanish at the cutoff c, led smoothly to zero there.

    \[ \sqrt{\frac{2}{c}}\, \frac{\sin(n \pi d_{rs} / c)}{d_{rs}}\, u(d_{rs} / c), \qquad n = 1, \ldots, K \]

    where u is `envelope`. For a node with itself it is the limit, \(\sqrt{2/c}\, n \pi / c\).

    Source: Gasteiger et al. 2020, DimeNet (arXiv:2003.03123), eqs. 7 and 8.

    Args:
        channels: K.
        cutoff: c, Å.
        exponent: p of the envelope.
        learned: learn the n, as DimeNet does.

    Reads `pos` `[N, 3]`, Å, NaN where unknown. Yields pair values `[num_pairs, K + 1]`, the last 1 where the distance
    is known; where it is not, all are 0.

    Raises:
        ValueError: no channels, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    def __init__(self, channels: int = 16, cutoff: float = 5.0, exponent: int = 6, learned: bool = False) -> None:
        check_basis(channels, cutoff)
        super().__init__(channels)
        self.cutoff, self.exponent = cutoff, exponent
        self._constant("orders", torch.arange(1.0, channels + 1), learned)

    def basis(self, distance: Tensor) -> Tensor:
        x = (distance / self.cutoff)[:, None]
        waves = self.orders * torch.sinc(self.orders * x)  # sin(n pi x) / (pi x)
        return math.sqrt(2 / self.cutoff) * math.pi / self.cutoff * waves * envelope(x, self.exponent)

    def __repr__(self) -> str:
        return f"BesselDistance({self.channels}, cutoff={self.cutoff})"
