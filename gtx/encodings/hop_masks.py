"""Hop masks: for every number of bonds, which pairs are so far apart."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Encoding, Values
from gtx.encodings.shortest_path import ShortestPath
from gtx.graph import CompleteGraph


class HopMasks(Encoding):
    r"""Channel k is 1 where the shortest path between two nodes has exactly k bonds, else 0.

    With the shortest-path distance d, \([d_{rs} = 0, d_{rs} = 1, \ldots, d_{rs} = K]\). Pairs farther apart than K
    bonds, or not connected, have zeros.

    Source: the k-hop adjacency matrices of MixHop, Abu-El-Haija et al. 2019 (arXiv:1905.00067), here of exact
    distances rather than of walks.

    Args:
        largest: K.

    Reads `edge_index` `[2, E]`, undirected. Yields pair values `[num_pairs, K + 1]`.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 3) -> None:
        super().__init__()
        self.distance = ShortestPath(largest)
        self.pair = Values(largest + 1)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        _, distance = self.distance(data, graph)
        hops = torch.arange(self.pair.channels, device=distance.device).unsqueeze(1)
        return None, (hops == distance.T).float().T

    def __repr__(self) -> str:
        return f"HopMasks({self.pair.channels - 1})"
