"""What the settings of a model share: parts with weights of their own, and the width of a head."""

from __future__ import annotations

from copy import deepcopy

from torch import nn


def fresh(module: nn.Module | None) -> nn.Module | None:
    """A copy with initial weights of its own."""
    copy = deepcopy(module)
    if hasattr(copy, "reset_parameters"):
        copy.reset_parameters()
    return copy


def head_width(channels: int, heads: int) -> int:
    """Channels of each head.

    Raises:
        ValueError: the heads do not divide the channels.
    """
    if heads < 1 or channels % heads:
        raise ValueError(f"expected heads that divide the channels, got {heads} heads and {channels} channels")
    return channels // heads
