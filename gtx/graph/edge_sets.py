"""Edge sets: which pairs of nodes are edges. Each gives a mask over all pairs of a batch.

The edges are the only difference between a Transformer (all pairs), graph attention (bonds), attention in space (pairs
within a cutoff) and a decoder (no later sender).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.graph.adjacency import adjacency, flatten
from gtx.graph.complete import CompleteGraph


@dataclass(frozen=True)
class EdgeSet:
    """Which of the ordered pairs of a molecule's nodes are edges."""

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor | None:
        """bool `[num_pairs]`, True where there is an edge; None for all pairs.

        Args:
            data: a PyG `Data` or `Batch`.
            graph: the complete graph of its molecules.
        """
        raise TypeError(f"{type(self).__name__} does not say which pairs are edges")

    def __or__(self, other: EdgeSet) -> EitherOf:
        """The pairs that are edges of the one or the other."""
        return EitherOf(self, other)


@dataclass(frozen=True)
class EitherOf(EdgeSet):
    """The edges of two sets together, made by `one | other`.

    Attributes:
        one, other: the sets.
    """

    one: EdgeSet
    other: EdgeSet

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor | None:
        masks = self.one(data, graph), self.other(data, graph)
        return None if masks[0] is None or masks[1] is None else masks[0] | masks[1]


@dataclass(frozen=True)
class AllPairs(EdgeSet):
    """Every ordered pair, a node with itself included: the Transformer encoder."""

    def __call__(self, data: Data, graph: CompleteGraph) -> None:
        return None


@dataclass(frozen=True)
class BondedPairs(EdgeSet):
    """The bonds: graph attention (Veličković et al. 2018, arXiv:1710.10903).

    Attributes:
        loops: whether a node also attends to itself.

    Reads `edge_index`.
    """

    loops: bool = True

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        mask = torch.zeros(graph.num_pairs, dtype=torch.bool, device=graph.ptr.device)
        mask[graph.pair_of(data.edge_index)] = True
        mask[graph.diagonal] = self.loops
        return mask


@dataclass(frozen=True)
class WithinHops(EdgeSet):
    """Pairs at most so many bonds apart, a node with itself included.

    Attributes:
        hops: k >= 0; larger than the molecule is the same as all pairs of each of its parts.

    Reads `edge_index`.
    """

    hops: int

    def __post_init__(self) -> None:
        if self.hops < 0:
            raise ValueError(f"expected 0 or more hops, got {self.hops}")

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        if graph.num_nodes == 0:
            return torch.zeros(0, dtype=torch.bool, device=graph.ptr.device)
        return flatten([self._reach(bonds) for bonds in adjacency(data.edge_index, graph)], graph) > 0

    def _reach(self, bonds: Tensor) -> Tensor:
        reached = torch.eye(bonds.shape[1], device=bonds.device).expand_as(bonds)
        step = reached + bonds
        for _ in range(min(self.hops, bonds.shape[1] - 1)):
            reached = (step @ reached).clamp_(max=1.0)
        return reached


@dataclass(frozen=True)
class WithinDistance(EdgeSet):
    """Pairs nearer than a cutoff in space, a node with itself included; all pairs where coordinates are unknown.

    Attributes:
        cutoff: Å.

    Reads `pos` `[N, 3]`, Å; NaN where unknown.

    Raises:
        ValueError: if there are no coordinates.
    """

    cutoff: float

    def __post_init__(self) -> None:
        if not self.cutoff > 0:
            raise ValueError(f"expected a cutoff above 0 Å, got {self.cutoff}")

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        if data.pos is None:
            raise ValueError("this edge set needs coordinates: expected pos [N, 3] in Å, got None")
        sender, receiver = graph.pair_index
        return ~((data.pos[sender] - data.pos[receiver]).norm(dim=-1) >= self.cutoff)  # NaN >= cutoff is false


@dataclass(frozen=True)
class Causal(EdgeSet):
    """A sender no later than its receiver, j <= i, in the order of the nodes: a decoder over a sequence."""

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        sender, receiver = graph.pair_index
        return sender <= receiver
