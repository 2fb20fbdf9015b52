"""What a model gives beside its predictions: who attended to whom."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class AttentionMaps(NamedTuple):
    """A forward pass with its attention.

    Attributes:
        out: predictions, `[B, T]`.
        edge_index: int64 `[2, E]`, senders and receivers of the edges.
        weights: per layer, `[E, H]`, before dropout; `out` depends on them, so gradients can be taken.
        place: int64 `[N]`, the number of each atom among the nodes of `edge_index`; other nodes are bonds or virtual.
    """

    out: Tensor
    edge_index: Tensor
    weights: list[Tensor]
    place: Tensor
