"""The distance and the bond of a pair, as they are."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.distance import pair_distance
from gtx.encodings.encoding import Encoding, Values
from gtx.graph import CompleteGraph


class PairDistance(Encoding):
    r"""What attention is blended with in the Molecule Attention Transformer: distances D and adjacency A.

    The channels of the pair (receiver r, sender s) are \([d_{rs}, A_{rs}, \text{known}_{rs}]\): the distance in space,
    Å, 0 where it is unknown; 1 where there is a bond; 1 where the distance is known.

    Source: Maziarka et al. 2020 (arXiv:2002.08264), eq. 2.

    Reads `edge_index` `[2, E]` and `pos` `[N, 3]`, Å, NaN where unknown. Yields pair values `[num_pairs, 3]`.

    Raises:
        ValueError: in `forward`, if there are no coordinates.
    """

    pair = Values(3)

    constant_shapes = True

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        distance, known = pair_distance(data, graph)
        bonded = torch.zeros_like(distance)
        bonded[graph.pair_of(data.edge_index)] = 1.0
        return None, torch.stack([distance, bonded, known.to(distance.dtype)], -1)

    def __repr__(self) -> str:
        return "PairDistance()"
