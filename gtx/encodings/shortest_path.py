"""Shortest-path distance, as a code of each pair."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Codes, Encoding
from gtx.encodings.neighbours import compiled, neighbours
from gtx.graph import CompleteGraph
from gtx.graph.adjacency import adjacency, flatten
from gtx.threads import spread


class ShortestPath(Encoding):
    """The number of bonds on the shortest path between two nodes.

    Codes 0 (a node with itself) to `largest` are distances, `largest + 1` means farther, `largest + 2` not connected.
    For all molecules of a size bucket this takes one batched matrix product per step, `largest` steps at most. On a
    processor a compiled loop instead updates the distances of each node from those of its neighbours.

    Source: the spatial encoding of Graphormer, Ying et al. 2021 (arXiv:2106.05234), eq. 6.

    Args:
        largest: longest distance with a code of its own.

    Reads `edge_index` `[2, E]`, undirected. Yields pair codes `[num_pairs, 1]`.

    Raises:
        ValueError: `largest` below 1; in `forward`, on a processor, an edge that is not within a molecule.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 20) -> None:
        super().__init__()
        if largest < 1:
            raise ValueError(f"expected a largest distance of at least 1, got {largest}")
        self.largest = largest
        self.pair = Codes((largest + 3,))

    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        if compiled(data.edge_index, graph):
            return None, self._asked(data.edge_index, graph)
        return None, self._walked(data.edge_index, graph)

    def _asked(self, edge_index: Tensor, graph: CompleteGraph) -> Tensor:
        """The codes, by compiled loops."""
        from gtx.encodings import path_kernels as kernels

        start, sender, _ = neighbours(edge_index, graph)
        codes = edge_index.new_empty(graph.num_pairs, 1, dtype=torch.long)
        pair_ptr = graph.pair_ptr.numpy()
        work = pair_ptr * 4
        spread(kernels.distances, work, graph.ptr.numpy(), pair_ptr, start, sender, self.largest, codes[:, 0].numpy())
        return codes

    def _walked(self, edge_index: Tensor, graph: CompleteGraph) -> Tensor:
        """The codes, by matrix products."""
        if graph.num_nodes == 0:
            return edge_index.new_zeros(0, 1)
        return flatten([self._codes(bonds) for bonds in adjacency(edge_index, graph)], graph).long().unsqueeze(1)

    def _codes(self, bonds: Tensor) -> Tensor:
        """`[b, n, n]` adjacency to codes."""
        size = bonds.shape[1]
        reached = torch.eye(size, device=bonds.device).expand_as(bonds)
        step = reached + bonds
        steps = min(self.largest, size - 1)
        distance = bonds.new_full(bonds.shape, steps + 1)
        for _ in range(steps):
            distance = distance - reached  # one less for every step at which the pair had been reached
            reached = (reached @ step).clamp_(max=1.0)
        distance = distance - reached
        connected = (step + step.mT).clamp_(max=1.0)
        for _ in range((size - 2).bit_length()):  # twice as far every time
            connected = (connected @ connected).clamp_(max=1.0)
        return torch.where(reached > 0, distance, self.largest + 2 - connected)

    def __repr__(self) -> str:
        return f"ShortestPath({self.largest})"
