"""A random regular graph over the atoms: few edges, and from each atom a short way to every other."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.graph.circular_labels import circular_labels, mixed
from gtx.graph.complete import CompleteGraph
from gtx.graph.edge_sets import EdgeSet


@dataclass(frozen=True)
class Expander(EdgeSet):
    r"""The union of random cycles, each through all kinds of atoms of a molecule: Exphormer's expander graph.

    Each cycle puts the kinds of atoms in the order of a hash of its own and joins every kind with the next, the last
    with the first; atoms are joined as their kinds are. The union of \(d / 2\) random cycles is a random d-regular
    graph, which is an expander with a probability that goes to 1 (Friedman 2008, arXiv:cs/0405020): any two of n kinds
    are \(O(\log n)\) edges apart.

    A kind is what the codes of an atom and of all within `radius` bonds of it say (`circular_labels`). Published
    expanders join atoms by their numbers, and so another numbering of the same molecule gives another graph, and
    another prediction. Here the edges follow from the seed and the molecule alone: renumber the atoms, and the edges
    are renumbered. The price is that atoms of a kind have the same neighbours: the graph is regular over kinds, k atoms
    of a kind bring k edges to each neighbour, and where all atoms are of one kind (benzene) all pairs are edges.

    Source: Shirzad et al. 2023, Exphormer (arXiv:2303.06147); over kinds of atoms here.

    Attributes:
        degree: d, edges of a kind to others: even, at least 2; less where there are no more kinds.
        seed: of the hash; each cycle has a factor drawn by it.
        radius: bonds.

    Reads the codes `x`, int64 `[N, A]`, and `edge_attr`, int64 `[E, F]`, and `edge_index`.
    """

    degree: int = 4
    seed: int = 0
    radius: int = 8

    def __post_init__(self) -> None:
        if self.degree < 2 or self.degree % 2:
            raise ValueError(f"expected an even degree of at least 2, got {self.degree}")
        if self.radius < 0:
            raise ValueError(f"expected a radius of 0 or more bonds, got {self.radius}")

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        kinds = circular_labels(data, self.radius)[-1]
        edges = torch.zeros(graph.num_pairs, dtype=torch.bool, device=kinds.device)
        sender, receiver = graph.pair_index
        draw = Random(self.seed)
        for _ in range(self.degree // 2):
            place, count = _places(mixed(mixed(kinds) * (draw.getrandbits(62) | 1)), graph)
            ahead = (place[receiver] - place[sender]).remainder(count[graph.batch[receiver]])
            edges |= (ahead == 1) | (ahead == count[graph.batch[receiver]] - 1)
        return edges


def _places(keys: Tensor, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
    """The place of each node's key among the unlike keys of its molecule, int64 `[N]`, and their number, `[B]`."""
    order = keys.argsort(stable=True)
    order = order[graph.batch[order].argsort(stable=True)]
    key, batch = keys[order], graph.batch[order]
    new = torch.ones_like(key)
    new[1:] = (key[1:] != key[:-1]) | (batch[1:] != batch[:-1])
    count = new.new_zeros(graph.num_graphs).index_add_(0, batch, new)
    place = new.cumsum(0) - 1 - (count.cumsum(0) - count)[batch]
    return torch.empty_like(place).scatter_(0, order, place), count
