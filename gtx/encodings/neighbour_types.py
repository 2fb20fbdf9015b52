"""Which atoms lie around an atom in space, and how near."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from gtx.encodings.distance import RadialBasis
from gtx.encodings.encoding import Encoding, Values
from gtx.graph import CompleteGraph


class NeighbourTypes(Encoding):
    r"""The types of the atoms around each atom, weighed by functions of the distance.

    \[ \sum_{s \to r,\, s \neq r} t_{z_s} \odot W \phi(d_{rs}) \]

    over the edges of the graph, with a learned vector t for every type and a radial basis \(\phi\) that ends at its
    cutoff.

    Source: Thölke & De Fabritiis 2022, TorchMD-NET (arXiv:2202.02541), the embedding of the neighbourhood; filters of
    the distance, Schütt et al. 2017, SchNet (arXiv:1706.08566).

    Args:
        distance: the radial basis.
        types: number of atom types, the codes of the first column of `x`.
        channels: width.

    Reads `pos` `[N, 3]`, Å, NaN where unknown, and the first column of `x`, int64 `[N, F]`. Yields node values
    `[N, channels]`; 0 for an atom without neighbours or coordinates.

    Raises:
        ValueError: in `forward`, if there are no coordinates.
    """

    constant_shapes = True

    def __init__(self, distance: RadialBasis, types: int, channels: int) -> None:
        super().__init__()
        self.distance = distance
        self.filter = nn.Linear(distance.channels, channels, bias=False)
        self.types = nn.Embedding(types, channels)
        self.node = Values(channels)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        sender, receiver = graph.pair_index
        edges = sender != receiver if graph.mask is None else (sender != receiver) & graph.mask
        with torch.autocast(receiver.device.type, enabled=False):
            radial = self.distance(data, graph)[1][:, :-1]  # without the channel that is 1 at any distance
            messages = self.types(data.x[:, 0])[sender] * self.filter(radial) * edges[:, None]
            return messages.new_zeros(graph.num_nodes, messages.shape[1]).index_add_(0, receiver, messages), None

    def __repr__(self) -> str:
        return f"NeighbourTypes({self.distance}, types={self.types.num_embeddings}, channels={self.node.channels})"
