"""Neighbour lists of a batch, as compiled loops on a processor read them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from gtx.graph import CompleteGraph


def compiled(edge_index: Tensor, graph: CompleteGraph) -> bool:
    """Whether compiled loops may run: on a processor, outside `torch.compile`, not in half precision, and over
    molecules alone, not a ghost."""
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
    """From `edge_index` `[2, E]` on a processor.

    Args:
        edge_index: senders and receivers.
        graph: the molecules.
        once: of several bonds between the same two nodes, keep the first.

    Raises:
        ValueError: an edge joins two molecules, or a node that there is none of.
    """
    from gtx.encodings import neighbour_kernels as kernels

    sender, receiver = edge_index.long().contiguous().numpy()
    wrong, start, senders, edges = kernels.neighbours(sender, receiver, graph.batch.numpy(), once)
    check_edges(wrong, edge_index, graph)
    return Neighbours(start, senders[: start[-1]], edges[: start[-1]])


def check_edges(wrong: int, edge_index: Tensor, graph: CompleteGraph) -> None:
    """ValueError if a compiled loop found an edge that leaves its molecule, number `wrong`; -1 if it found none."""
    if wrong >= 0:
        sender, receiver = edge_index[:, wrong].tolist()
        raise ValueError(
            f"expected edges between nodes of one molecule, {graph.num_nodes} nodes in all, "
            f"but edge {wrong} is from node {sender} to node {receiver}"
        )
