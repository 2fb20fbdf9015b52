"""Random-walk probabilities, of nodes and of pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Encoding, Values
from gtx.graph import CompleteGraph
from gtx.graph.adjacency import adjacency


class RandomWalk(Encoding):
    r"""Where a random walk along the bonds is after k steps.

    With \(M = D^{-1} A\), the pair (receiver r, sender s) gets the probabilities that a walk from r is at s,

    \[ [I, M, M^2, \ldots, M^{K-1}]_{rs} \]

    and the node r the probabilities of being back, \([M, M^2, \ldots, M^K]_{rr}\). A node without bonds has zeros
    (apart from I).

    Sources: node part (RWSE) Dwivedi et al. 2022 (arXiv:2110.07875), eq. 4; pair part (RRWP) Ma et al. 2023, GRIT
    (arXiv:2305.17589), eq. 1.

    Args:
        steps: K.
        nodes: yield the node part.
        pairs: yield the pair part.

    Reads `edge_index` `[2, E]`. Yields node values `[N, K]` and pair values `[num_pairs, K]`.
    """

    def __init__(self, steps: int = 16, nodes: bool = True, pairs: bool = True) -> None:
        super().__init__()
        if steps < 1:
            raise ValueError(f"expected at least one step, got {steps}")
        self.steps = steps
        self.node = Values(steps) if nodes else None
        self.pair = Values(steps) if pairs else None

    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor | None, Tensor | None]:
        if graph.num_nodes == 0:
            empty = torch.zeros(0, self.steps, device=data.edge_index.device)
            return (None if self.node is None else empty), (None if self.pair is None else empty)
        steps = [self._powers(bonds).flatten(1) for bonds in adjacency(data.edge_index, graph)]
        slots = graph.pairs.slot_of_row
        powers = torch.stack([power.index_select(0, slots) for power in torch.cat(steps, 1)])  # [K + 1, P]
        node = None if self.node is None else powers[1:, graph.diagonal].T
        return node, None if self.pair is None else powers[: self.steps].T

    def _powers(self, bonds: Tensor) -> Tensor:
        """`[b, n, n]` adjacency to `[K + 1, b, n, n]`: M to the powers 0 to K."""
        walk = bonds / bonds.sum(-1, keepdim=True).clamp(min=1.0)
        powers = bonds.new_empty(self.steps + 1, *bonds.shape)
        powers[0] = torch.eye(bonds.shape[1], device=bonds.device)
        with torch.autocast(bonds.device.type, enabled=False):  # probabilities of long walks need their digits
            for k in range(self.steps):
                torch.bmm(powers[k], walk, out=powers[k + 1])
        return powers

    def __repr__(self) -> str:
        return f"RandomWalk({self.steps})"
