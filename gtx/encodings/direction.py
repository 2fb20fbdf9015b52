"""Where a sender lies, seen from its receiver."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.distance import check_basis, pair_distance
from gtx.encodings.encoding import Encoding, Values
from gtx.encodings.envelope import envelope
from gtx.graph import CompleteGraph


class Direction(Encoding):
    r"""The unit vector from receiver to sender, and how near it is.

    \[ \bigl[\, u_{rs} = (x_s - x_r) / d_{rs} \;\|\; \phi(d_{rs} / c) \,\bigr] \]

    with \(\phi\) from 1 at a distance of 0 to 0 at the cutoff (`envelope`, p = 3). Unlike other encodings it turns with
    the molecule: it is for layers that know what a vector is, such as `gtx.nn.VectorLayer`.

    Args:
        cutoff: c, Å.

    Reads `pos` `[N, 3]`, Å, NaN where unknown. Yields pair values `[num_pairs, 4]`; u is 0 where the distance is 0, and
    all is 0 where it is unknown.

    Raises:
        ValueError: a cutoff that is not positive; in `forward`, if there are no coordinates.
    """

    pair = Values(4)
    constant_shapes = True

    def __init__(self, cutoff: float = 5.0) -> None:
        check_basis(1, cutoff)
        super().__init__()
        self.cutoff = cutoff

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        distance, known = pair_distance(data, graph)
        sender, receiver = graph.pair_index
        apart = known & (distance > 0)
        along = torch.where(apart[:, None], data.pos[sender] - data.pos[receiver], 0.0)
        near = envelope(distance / self.cutoff, 3) * known
        return None, torch.cat([along / torch.where(apart, distance, 1.0)[:, None], near[:, None]], -1)

    def __repr__(self) -> str:
        return f"Direction({self.cutoff})"
