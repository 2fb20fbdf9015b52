"""Neighbour lists of a batch, as compiled loops on a CPU read them, and rows of unequal length."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gtx.graph import CompleteGraph

# --- Rows of unequal length, written out.


def ragged(counts: Tensor) -> tuple[Tensor, Tensor]:
    """Row i has `counts[i]` entries (int64 `[R]`): the row of every entry and its place in the row, each `[sum]`."""
    row = torch.repeat_interleave(counts)
    return row, torch.arange(len(row), device=counts.device) - (counts.cumsum(0) - counts)[row]


# --- Neighbour lists of a batch, as compiled loops on a CPU read them.


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


class Neighbours(NamedTuple):
    """The bonds into every node: those into r are number `start[r]` to `start[r + 1]`, in the order of `edge_index`.

    Attributes:
        start: int64 `[N + 1]`.
        sender: int64, where each comes from; as many as bonds, or fewer if each counts once.
        edge: int64, its column in `edge_index`.
    """

    start: np.ndarray
    sender: np.ndarray
    edge: np.ndarray


def neighbours(edge_index: Tensor, graph: CompleteGraph, once: bool = False) -> Neighbours:
    """List the neighbours of each node from `edge_index` `[2, E]` on a CPU.

    Args:
        edge_index: senders and receivers.
        graph: the molecules.
        once: of several bonds between the same two nodes, keep the first.

    Raises:
        ValueError: an edge joins two molecules, or a node that does not exist.
    """
    from gtx.encodings import kernels

    check_edges(edge_index, graph)
    sender, receiver = edge_index.long().contiguous().numpy()
    start, senders, edges = kernels.neighbours(sender, receiver, graph.num_nodes, once)
    return Neighbours(start, senders[: start[-1]], edges[: start[-1]])


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
