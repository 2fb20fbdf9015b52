"""The edges of a batch: whether they are within molecules, whether compiled loops read them, rows of unequal length."""

from __future__ import annotations

import torch
from torch import Tensor

from gtx.graph import CompleteGraph


def ragged(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Row i has `counts[i]` entries (int64 `[R]`): the row of every entry and its place in the row, each `[sum]`."""
    row = torch.repeat_interleave(counts)
    return row, torch.arange(len(row), device=counts.device) - (counts.cumsum(0) - counts)[row]


def compiled(edge_index: Tensor, graph: CompleteGraph) -> bool:
    """Return whether compiled loops may run.

    They may on a CPU, outside `torch.compile`, not in half precision, and without a ghost molecule.
    """
    return (
        type(edge_index) is Tensor
        and not graph.has_ghost
        and edge_index.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and torch.get_default_dtype() in (torch.float32, torch.float64)
    )
