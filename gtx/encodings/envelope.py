"""A polynomial that leads to zero smoothly."""

from __future__ import annotations

import torch
from torch import Tensor


def envelope(x: Tensor, exponent: int) -> Tensor:
    r"""1 at x = 0, and 0 with its first two derivatives from x = 1 on.

    \[ u(x) = 1 - \frac{(p+1)(p+2)}{2} x^p + p(p+2) x^{p+1} - \frac{p(p+1)}{2} x^{p+2} \]

    Source: Gasteiger et al. 2020, DimeNet (arXiv:2003.03123), eq. 8; with p = 3 it is the cutoff function of PhysNet,
    Unke & Meuwly 2019 (arXiv:1902.08408).

    Args:
        x: distance over cutoff, `[*]`, not negative.
        exponent: p, at least 1.
    """
    p = exponent
    inside = 1 - (p + 1) * (p + 2) / 2 * x**p + p * (p + 2) * x ** (p + 1) - p * (p + 1) / 2 * x ** (p + 2)
    return torch.where(x < 1, inside, 0.0)
