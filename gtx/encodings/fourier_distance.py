"""Sines and cosines of the distance in space."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from gtx.encodings.distance import RadialBasis, check_basis


class FourierDistance(RadialBasis):
    r"""The first harmonics on the interval from 0 to the cutoff c.

    \[ \left[\sin\frac{\pi k d_{rs}}{c}, \cos\frac{\pi k d_{rs}}{c}\right], \qquad k = 1, \ldots, K/2 \]

    The finest wavelength is \(4c / K\), 1.25 Å by default. Distances that differ by 2c have the same
    features, so c should be no less than half the longest distance that matters.

    Source: Fourier features, Tancik et al. 2020 (arXiv:2006.10739), eq. 5, with evenly spaced frequencies \(k / 2c\).

    Args:
        channels: K, even.
        cutoff: c, Å.

    Reads `pos` `[N, 3]`, Å, NaN where unknown. Yields pair values `[num_pairs, K + 1]`, sines, cosines, and last 1
    where the distance is known; where it is not, all are 0.

    Raises:
        ValueError: channels not even, or a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    def __init__(self, channels: int = 32, cutoff: float = 10.0) -> None:
        check_basis(channels, cutoff, least=2)
        if channels % 2:
            raise ValueError(f"expected an even number of channels, got {channels}")
        super().__init__(channels)
        self.cutoff = cutoff
        self._constant("frequencies", torch.arange(1.0, channels // 2 + 1) * math.pi / cutoff, learned=False)

    def basis(self, distance: Tensor) -> Tensor:
        angles = distance[:, None] * self.frequencies
        return torch.cat([angles.sin(), angles.cos()], -1)

    def __repr__(self) -> str:
        return f"FourierDistance({self.channels}, cutoff={self.cutoff})"
