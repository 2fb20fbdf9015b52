"""Every sender of one set to every receiver of another: the edges of cross-attention."""

from __future__ import annotations

import torch
from torch import Tensor


def cross_edges(source_ptr: Tensor, target_ptr: Tensor) -> Tensor:
    """The edges from every source node to every target node of the same graph, receiver-major.

    They join two sets of nodes, as tokens attend to atoms (Vaswani et al. 2017, section 3.2.3, arXiv:1706.03762): pass
    them to `gtx.nn.EdgeAttention` with `x=(source, target)`.

    Args:
        source_ptr: int64 `[B + 1]`; graph b has the source nodes `source_ptr[b]` to `source_ptr[b + 1]`.
        target_ptr: int64 `[B + 1]`, the same for the target nodes.

    Returns:
        int64 `[2, E]`, senders among the source and receivers among the target nodes.

    Raises:
        ValueError: the two are of different numbers of graphs.
    """
    if source_ptr.shape != target_ptr.shape or source_ptr.dim() != 1:
        raise ValueError(
            f"expected ptr [B + 1] of as many graphs, got {list(source_ptr.shape)} and {list(target_ptr.shape)}"
        )
    graph = torch.repeat_interleave(target_ptr.diff())  # of each receiver
    senders = source_ptr.diff()[graph]
    receiver = torch.repeat_interleave(senders)
    first = senders.cumsum(0) - senders  # the first edge into each receiver
    place = torch.arange(len(receiver), device=receiver.device) - first[receiver]
    return torch.stack([source_ptr[graph][receiver] + place, receiver])
