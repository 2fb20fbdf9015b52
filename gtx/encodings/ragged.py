"""Rows of unequal length, written out."""

from __future__ import annotations

import torch
from torch import Tensor


def ragged(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Row i has `counts[i]` entries (int64 `[R]`): the row of every entry and its place in the row, each `[sum]`."""
    row = torch.repeat_interleave(counts)
    return row, torch.arange(len(row), device=counts.device) - (counts.cumsum(0) - counts)[row]
