"""Weights of an edge list as matrices."""

from __future__ import annotations

from torch import Tensor


def dense(values: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """A value per edge and head as a matrix per head; 0 where there is no edge.

    Args:
        values: `[E, H]`.
        edge_index: int64 `[2, E]`, senders and receivers, no edge twice.
        num_nodes: n.

    Returns:
        `[H, n, n]`, receivers in rows and senders in columns.
    """
    sender, receiver = edge_index
    matrix = values.new_zeros(num_nodes, num_nodes, values.shape[1])
    return matrix.index_put((receiver, sender), values).permute(2, 0, 1)
