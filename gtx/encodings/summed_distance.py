"""The distances of pairs, and for every node their sum."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.distance import RadialBasis
from gtx.encodings.encoding import Encoding, Values
from gtx.graph import CompleteGraph


class SummedDistance(Encoding):
    r"""Functions of the distance for pairs, and their sum over the senders for nodes: how crowded it is around an atom.

    \[ \psi(d_{rs}), \qquad \sum_{s \to r,\, s \neq r} \psi(d_{rs}) \]

    Source: Luo et al. 2022, Transformer-M (arXiv:2210.01765), the 3D channel: the sum is its centrality in space.

    Args:
        distance: the radial basis \(\psi\).

    Reads what the basis reads. Yields its pair values `[num_pairs, K + 1]`, and node values `[N, K]`, sums over the
    edges of the graph.

    Raises:
        ValueError: in `forward`, if there are no coordinates.
    """

    constant_shapes = True

    def __init__(self, distance: RadialBasis) -> None:
        super().__init__()
        self.distance = distance
        self.node, self.pair = Values(distance.channels), distance.pair

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        with torch.autocast(graph.ptr.device.type, enabled=False):
            _, pairs = self.distance(data, graph)
        sender, receiver = graph.pair_index
        edges = sender != receiver if graph.mask is None else (sender != receiver) & graph.mask
        counted = pairs[:, :-1] * edges[:, None]
        return counted.new_zeros(graph.num_nodes, counted.shape[1]).index_add_(0, receiver, counted), pairs

    def __repr__(self) -> str:
        return f"SummedDistance({self.distance})"
