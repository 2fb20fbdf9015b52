"""Global features on one scale."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ClippedScaler(nn.Module):
    """z-scores by the mean and standard deviation of the training rows, clipped.

    A value that is unknown (NaN) counts as the training mean, so it has no effect; a feature that does not vary in
    training is always 0.

    Args:
        channels: number of features D.
        clip: largest z-score that comes out.

    Shapes:
        `[*, D]` to `[*, D]`.
    """

    def __init__(self, channels: int, clip: float = 5.0) -> None:
        super().__init__()
        self.clip = clip
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("scale", torch.ones(channels))  # one over the standard deviation

    def observe(self, values: Tensor) -> None:
        """Fit to the training rows, `[M, D]`."""
        values = values.double()
        known = values.isfinite()
        count = known.sum(0).clamp(min=1)
        mean = values.where(known, 0.0).sum(0) / count
        deviation = ((values - mean).where(known, 0.0).square().sum(0) / count).sqrt()
        varies = deviation > 1e-6 * mean.abs().clamp(min=1e-6)
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(varies, 1 / deviation.clamp(min=1e-30), 0.0))

    def forward(self, values: Tensor) -> Tensor:
        return ((values - self.mean) * self.scale).nan_to_num(nan=0.0).clamp(-self.clip, self.clip)

    def __repr__(self) -> str:
        return f"ClippedScaler({len(self.mean)}, clip={self.clip})"
