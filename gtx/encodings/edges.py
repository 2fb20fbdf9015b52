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


def check_edges(edge_index: Tensor, graph: CompleteGraph) -> None:
    """Raise a `ValueError` on a CPU if an edge leaves its molecule."""
    if not compiled(edge_index, graph):
        return
    molecule = torch.bucketize(edge_index.contiguous(), graph.ptr[1:], right=True)
    wrong = (molecule[0] != molecule[1]) | ((edge_index < 0) | (edge_index >= graph.num_nodes)).any(0)
    for edge in wrong.nonzero().flatten().tolist()[:1]:
        sender, receiver = edge_index[:, edge].tolist()
        raise ValueError(
            f"expected edges between nodes of one molecule, {graph.num_nodes} nodes in all, "
            f"but edge {edge} is from node {sender} to node {receiver}"
        )
