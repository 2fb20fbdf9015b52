"""The Matérn kernel between feature vectors of molecules: descriptors, or the embedding by a pretrained network."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from gtx.nn import ClippedScaler

STEP = 2.0**-12
"""z-scores are rounded to multiples of it, so that what is held of the training molecules is small, and exact."""


class DescriptorKernel(nn.Module):
    r"""The Matérn kernel of smoothness 3/2 between feature vectors, as clipped z-scores z of the training molecules:

    \[ k(a, b) = (1 + \sqrt 3\, r)\, e^{-\sqrt 3\, r}, \qquad r = \frac{\lVert z_a - z_b \rVert}{\ell \sqrt D} \]

    with D the number of features that vary in training. So r is the root mean square difference of a feature, in units
    of \(\ell\) standard deviations. One that is unknown counts as the training mean.

    Source: Rasmussen & Williams 2006, equation 4.17 (http://gaussianprocess.org/gpml).

    Args:
        channels: features of a molecule, such as descriptors.
        rows: training molecules held; 0 before there are any.

    Attributes:
        share: float32 `[]`, weight of this kernel in a weighted mean of two, from 0 to 1.
        length: float32 `[]`, \(\ell\).

    Shapes:
        `[B, channels]`, NaN for what is unknown, to float64 `[B, rows]`, from 0 to 1.
    """

    share: Tensor
    length: Tensor
    steps: Tensor

    def __init__(self, channels: int, rows: int = 0) -> None:
        super().__init__()
        self.scaler = ClippedScaler(channels)
        self.register_buffer("steps", torch.zeros(rows, channels, dtype=torch.int16))
        self.register_buffer("share", torch.zeros(()))
        self.register_buffer("length", torch.ones(()))

    def hold(self, descriptors: Tensor) -> None:
        """Compare with these molecules from now on, `[rows, channels]`; the scale is not fitted to them."""
        self.register_buffer("steps", (self.scores(descriptors) / STEP).to(torch.int16))

    def scores(self, descriptors: Tensor) -> Tensor:
        """z-scores as they are compared, float64 `[B, channels]`."""
        return (self.scaler(descriptors.double()) / STEP).round() * STEP

    def among(self, length: float) -> Tensor:
        """The kernel between the molecules held, float64 `[rows, rows]`, for a length of one's choice."""
        return self._between(self._held, length)

    def forward(self, descriptors: Tensor) -> Tensor:
        return self._between(self.scores(descriptors), float(self.length))

    @property
    def _held(self) -> Tensor:
        return self.steps.double() * STEP

    def _between(self, scores: Tensor, length: float) -> Tensor:
        varies = max(1, int(self.scaler.scale.count_nonzero()))
        r = torch.cdist(scores, self._held) * (math.sqrt(3 / varies) / length)
        return (1 + r) * torch.exp(-r)

    def __repr__(self) -> str:
        steps = self.steps.shape
        return f"DescriptorKernel({steps[0]} molecules, {steps[1]} features, length {float(self.length):g})"
