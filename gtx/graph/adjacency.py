"""Adjacency matrices of the bonds, dense, in size buckets."""

from __future__ import annotations

import torch
from torch import Tensor

from gtx.graph.complete import CompleteGraph


def adjacency(edge_index: Tensor, graph: CompleteGraph) -> list[Tensor]:
    """Per bucket, float `[count, size, size]`: 1 at (receiver, sender) for every edge (int64 `[2, E]`), else 0."""
    slots = torch.zeros(len(graph.pairs.row_of_slot), device=edge_index.device)
    slots[graph.pairs.slot_of_row[graph.pair_of(edge_index)]] = 1.0
    return graph.pair_buckets(slots)


def flatten(buckets: list[Tensor], graph: CompleteGraph) -> Tensor:
    """Per bucket `[count, size, size, *]` to flat pairs `[num_pairs, *]`."""
    if not buckets:
        raise ValueError("a batch without any node has no pairs")
    return graph.pairs.unpack(torch.cat([bucket.flatten(0, 2) for bucket in buckets]))
