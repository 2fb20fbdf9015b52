"""Random-walk probabilities, of nodes and of pairs."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Encoding, Values
from gtx.encodings.neighbours import compiled, neighbours
from gtx.graph import CompleteGraph
from gtx.graph.adjacency import adjacency
from gtx.threads import spread


class RandomWalk(Encoding):
    r"""Where a random walk along the bonds is after k steps.

    With \(M = D^{-1} A\), the pair (receiver r, sender s) gets the probabilities that a walk from r is at s,

    \[ [I, M, M^2, \ldots, M^{K-1}]_{rs} \]

    and the node r the probabilities of being back, \([M, M^2, \ldots, M^K]_{rr}\). A node without bonds has zeros
    (apart from I).

    On a processor a compiled loop over the molecules takes the mean over the neighbours' rows, step by step, in place
    of products of matrices that are mostly zeros; sums may differ in the last digit.

    Sources: node part (RWSE) Dwivedi et al. 2022 (arXiv:2110.07875), eq. 4; pair part (RRWP) Ma et al. 2023, GRIT
    (arXiv:2305.17589), eq. 1.

    Args:
        steps: K.
        nodes: yield the node part.
        pairs: yield the pair part.

    Reads `edge_index` `[2, E]`. Yields node values `[N, K]` and pair values `[num_pairs, K]`.

    Raises:
        ValueError: no steps; in `forward`, on a processor, an edge that is not within a molecule.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, steps: int = 16, nodes: bool = True, pairs: bool = True) -> None:
        super().__init__()
        if steps < 1:
            raise ValueError(f"expected at least one step, got {steps}")
        self.steps = steps
        self.node = Values(steps) if nodes else None
        self.pair = Values(steps) if pairs else None

    @torch.no_grad()
    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor | None, Tensor | None]:
        way = self._stepped if compiled(data.edge_index, graph) else self._multiplied
        node, pair = way(data.edge_index, graph)
        return (None if self.node is None else node), (None if self.pair is None else pair)

    def _stepped(self, edge_index: Tensor, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        """Nodes and pairs, by compiled loops."""
        from gtx.encodings import walk_kernels as kernels

        start, sender, _ = neighbours(edge_index, graph, once=True)
        nodes = torch.empty(graph.num_nodes, self.steps, device=edge_index.device)
        powers = nodes.new_empty(2 if self.pair is None else self.steps, graph.num_pairs)
        pair_ptr = graph.pair_ptr.numpy()
        work = pair_ptr * (self.steps // 2 + 1)
        spread(kernels.walks, work, graph.ptr.numpy(), pair_ptr, start, sender, powers.numpy(), nodes.numpy())
        return nodes, powers.T

    def _multiplied(self, edge_index: Tensor, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
        """Nodes and pairs, by matrix products."""
        if graph.num_nodes == 0:
            return (torch.zeros(0, self.steps, device=edge_index.device),) * 2
        steps = [self._powers(bonds).flatten(1) for bonds in adjacency(edge_index, graph)]
        slots = graph.pairs.slot_of_row
        powers = torch.stack([power.index_select(0, slots) for power in torch.cat(steps, 1)])  # [K + 1, P]
        return powers[1:, graph.diagonal].T, powers[: self.steps].T

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
