"""Graphs of like size, padded to one size for matrix products."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from torch import Tensor

from gtx.graph.packing import Packing


class Buckets(NamedTuple):
    """Where nodes and pairs go when graphs are put into a few buckets of like size.

    Attributes:
        nodes: packing of the N nodes into slots.
        pairs: packing of the pairs into slots.
        shapes: (count, size) of each bucket.
    """

    nodes: Packing
    pairs: Packing
    shapes: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, ptr: Tensor, batch: Tensor, most: int) -> Buckets:
        """For the graphs of `ptr` and `batch`, at most `most` buckets."""
        sizes = ptr.diff()
        host = sizes.tolist()
        buckets = alike(host, most)
        order, caps, starts, pair_starts = [], [], [], []
        slot = pair_slot = 0
        for graphs, cap in buckets:
            for graph in graphs:
                order.append(graph)
                caps.append(cap)
                starts.append(slot)
                pair_starts.append(pair_slot)
                slot += cap
                pair_slot += cap * cap
        per_graph = torch.zeros(3, len(host), dtype=torch.long)
        per_graph[:, order] = torch.tensor([caps, starts, pair_starts], dtype=torch.long)
        cap, start, pair_start = per_graph.to(ptr.device)

        local = torch.arange(len(batch), device=ptr.device) - ptr[batch]
        senders = sizes[batch]  # of every node, as a receiver
        rows = torch.repeat_interleave(senders)
        sender = torch.arange(len(rows), device=ptr.device) - (senders.cumsum(0) - senders)[rows]
        pair_slots = (pair_start[batch] + local * cap[batch])[rows] + sender
        shapes = tuple((len(graphs), cap) for graphs, cap in buckets)
        return cls(Packing.of(start[batch] + local, slot), Packing.of(pair_slots, pair_slot), shapes)


def alike(sizes: list[float], most: int) -> list[tuple[list[int], float]]:
    """Graphs by size, cut where padding costs most: [(graphs, size of the largest)]; empty graphs are left out."""
    order = sorted((i for i, n in enumerate(sizes) if n), key=lambda i: sizes[i])
    if not order:
        return []
    square = torch.tensor([sizes[i] for i in order], dtype=torch.float64).square()
    cuts = [0, len(order)]
    overhead = 4096.0  # pairs: about what one more round of small matrix products costs
    while len(cuts) <= most:
        best, at = overhead, None
        for lo, hi in itertools.pairwise(cuts):
            saved = torch.arange(1, hi - lo) * (square[hi - 1] - square[lo : hi - 1])
            if len(saved) and float(saved.max()) > best:
                best, at = float(saved.max()), lo + 1 + int(saved.argmax())
        if at is None:
            break
        cuts = sorted([*cuts, at])
    return [(order[lo:hi], sizes[order[hi - 1]]) for lo, hi in itertools.pairwise(cuts)]
