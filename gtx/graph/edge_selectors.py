"""Edge selectors: adjacency, bonds, neighbours within a radius, expanders, virtual nodes, circular labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.graph.complete import CompleteGraph

# --- Adjacency matrices of the bonds, dense, in size buckets.


def adjacency(edge_index: Tensor, graph: CompleteGraph) -> list[Tensor]:
    """Per bucket, float `[count, size, size]`: 1 at (receiver, sender) for every edge (int64 `[2, E]`), else 0."""
    pairs = graph.packed.pairs
    slots = torch.zeros(pairs.row_of_slot.shape[0], device=edge_index.device)
    slots.index_fill_(0, pairs.slot_of_row.index_select(0, graph.pair_of(edge_index)), 1.0)
    return graph.packed.cut_pairs(slots)


def flatten(buckets: list[Tensor], graph: CompleteGraph) -> Tensor:
    """Per bucket `[count, size, size, *]` to flat pairs `[num_pairs, *]`."""
    if not buckets:
        return torch.zeros(0, device=graph.ptr.device)
    return graph.packed.join_pairs(buckets)


# --- What surrounds each atom, as one number: no numbering of the atoms changes it.

_SPREAD, _CHAIN, _ROUND = 0x5851F42D4C957F2D, 0x14057B7EF767814F, 0x2545F4914F6CDD1D  # any odd numbers would do


def hash_atom_environments(
    batch: Data, radius: int, atoms: Sequence[int] | None = None, bonds: Sequence[int] | None = None
) -> Tensor:
    r"""Hash the circular environment of each atom up to radius 0, 1, ... bonds; equal environments have equal hashes.

    The hashes are the labels \(l_i^r\) of `gtx.nn.SubstructureCountEmbedding`.

    Args:
        batch: molecules, with `x` `[N, A]`, `edge_index` `[2, E]` and `edge_attr` `[E, F]`.
        radius: largest radius, in bonds.
        atoms: columns of `batch.x` from which the first label is computed; by default all columns.
        bonds: columns of `batch.edge_attr` that are used; by default all columns.

    Returns:
        int64 `[radius + 1, N]`.
    """
    sender, receiver = batch.edge_index
    label, bond = _label(batch.x, atoms), _label(batch.edge_attr, bonds)
    labels = [label]
    for _ in range(radius):
        around = torch.zeros_like(label).index_add_(0, receiver, mix_bits(label[sender] * _CHAIN + bond))
        label = mix_bits(label * _ROUND + around)
        labels.append(label)
    return torch.stack(labels)


def _label(codes: Tensor | None, columns: Sequence[int] | None) -> Tensor:
    """Hash each row of codes `[n, C]` to one number, int64 `[n]`, from some columns or, by default, all."""
    if codes is None or codes.dim() != 2:
        came = None if codes is None else list(codes.shape)
        raise ValueError(f"expected codes of atoms x [N, A] and of bonds edge_attr [E, F], got {came}")
    label = torch.zeros(codes.shape[0], dtype=torch.long, device=codes.device)
    for column in range(codes.shape[1]) if columns is None else columns:
        label = mix_bits(label * _CHAIN + codes[:, column].long() + 1)
    return label


def mix_bits(label: Tensor) -> Tensor:
    """Mix the bits of labels: one step of a multiplicative hash."""
    label = (label ^ (label >> 29)) * _SPREAD
    return label ^ (label >> 32)


# --- Edge selectors: which pairs of nodes are edges. Each gives a mask over all pairs of a batch.
#
# The edges are the only difference between a Transformer (all pairs), graph attention (bonds), attention in space
# (pairs within a cutoff) and a decoder (no later sender).


@dataclass(frozen=True)
class EdgeSelector:
    """Rule that decides which ordered pairs of a molecule's nodes become edges."""

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor | None:
        """Mark the edges, bool `[num_pairs]`; None for all pairs.

        Args:
            data: a PyG `Data` or `Batch`.
            graph: the complete graph of its molecules.
        """
        raise TypeError(f"{type(self).__name__} does not say which pairs are edges")

    def __or__(self, other: EdgeSelector) -> EdgeUnion:
        """Unite two edge selectors: pairs that are edges of either."""
        return EdgeUnion(self, other)


@dataclass(frozen=True)
class EdgeUnion(EdgeSelector):
    """Edge selector by which the edges of either of two selectors are edges; `one | other` makes it.

    Attributes:
        one, other: the two selectors.
    """

    one: EdgeSelector
    other: EdgeSelector

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor | None:
        masks = self.one(data, graph), self.other(data, graph)
        return None if masks[0] is None or masks[1] is None else masks[0] | masks[1]


@dataclass(frozen=True)
class AllPairEdges(EdgeSelector):
    """Edge selector of all ordered pairs of nodes, including a node with itself (Transformer encoder)."""

    def __call__(self, data: Data, graph: CompleteGraph) -> None:
        return None


@dataclass(frozen=True)
class BondEdges(EdgeSelector):
    """Edge selector by which the bonds are edges, as in graph attention (Veličković et al. 2018, arXiv:1710.10903).

    Attributes:
        loops: whether a node also attends to itself.

    The selector reads `edge_index`.
    """

    loops: bool = True

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        mask = torch.zeros(graph.num_pairs, dtype=torch.bool, device=graph.ptr.device)
        mask[graph.pair_of(data.edge_index)] = True
        mask[graph.diagonal] = self.loops
        return mask


@dataclass(frozen=True)
class HopCutoffEdges(EdgeSelector):
    """Edge selector by which pairs of nodes at most `hops` bonds apart are edges, including a node with itself.

    Attributes:
        hops: largest number of bonds, 0 or more. A number larger than the molecule gives all pairs of connected atoms.

    The selector reads `edge_index`.
    """

    hops: int

    def __post_init__(self) -> None:
        if self.hops < 0:
            raise ValueError(f"expected 0 or more hops, got {self.hops}")

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        return flatten([self._reach(bonds) for bonds in adjacency(data.edge_index, graph)], graph) > 0

    def _reach(self, bonds: Tensor) -> Tensor:
        reached = torch.eye(bonds.shape[1], device=bonds.device).expand_as(bonds)
        step = reached + bonds
        for _ in range(min(self.hops, bonds.shape[1] - 1)):
            reached = (step @ reached).clamp_(max=1.0)
        return reached


@dataclass(frozen=True)
class DistanceCutoffEdges(EdgeSelector):
    """Edge selector by which pairs of nodes within a cutoff distance are edges; all pairs if coordinates are unknown.

    Attributes:
        cutoff: cutoff distance in Å.

    The selector reads `pos` `[N, 3]`, Å; NaN where unknown.

    Raises:
        ValueError: if there are no coordinates.
    """

    cutoff: float

    def __post_init__(self) -> None:
        if not self.cutoff > 0:
            raise ValueError(f"expected a cutoff above 0 Å, got {self.cutoff}")

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        if data.pos is None:
            raise ValueError("this edge selector needs coordinates: expected pos [N, 3] in Å, got None")
        sender, receiver = graph.pair_index
        return ~((data.pos[sender] - data.pos[receiver]).norm(dim=-1) >= self.cutoff)  # NaN >= cutoff is false


@dataclass(frozen=True)
class CausalEdges(EdgeSelector):
    """Edge selector of a decoder: a node receives from itself and earlier nodes only, j <= i (a causal mask)."""

    def __call__(self, data: Data, graph: CompleteGraph) -> Tensor:
        sender, receiver = graph.pair_index
        return sender <= receiver


# --- A random regular graph over the atoms: few edges, and from each atom a short way to every other.


@dataclass(frozen=True)
class ExpanderEdges(EdgeSelector):
    r"""Edge selector of Exphormer's expander graph: random cycles through all kinds of atoms of a molecule.

    Each random cycle sorts the kinds of atoms by a different hash, and joins every kind with the next and the last with
    the first. Two atoms are joined if their kinds are joined. The union of \(d / 2\) random cycles is a random
    d-regular graph, which is an expander with a probability that goes to 1 (Friedman 2008, arXiv:cs/0405020): any two
    of n kinds are \(O(\log n)\) edges apart.

    The kind of an atom is defined by the codes of all atoms within `radius` bonds (`hash_atom_environments`). Published
    expander graphs join atoms by their numbers, so that another numbering of the same molecule gives another graph and
    another prediction. The edges of `ExpanderEdges` depend only on the seed and the molecule; if the atoms are
    renumbered, the edges are renumbered in the same way. As a consequence, atoms of one kind have the same neighbours.
    The graph is regular over kinds, not over atoms, and if all atoms have one kind (benzene), all pairs are edges.

    Source: Shirzad et al. 2023, Exphormer (arXiv:2303.06147), there over atoms.

    Attributes:
        degree: number d of edges of a kind to other kinds, even, at least 2; fewer if the molecule has too few kinds.
        seed: seed of the hashes that sort the kinds in each cycle.
        radius: radius of the environment that defines a kind, in bonds.

    The selector reads the codes `x`, int64 `[N, A]`, and `edge_attr`, int64 `[E, F]`, and `edge_index`.
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
        kinds = hash_atom_environments(data, self.radius)[-1]
        edges = torch.zeros(graph.num_pairs, dtype=torch.bool, device=kinds.device)
        sender, receiver = graph.pair_index
        draw = Random(self.seed)
        for _ in range(self.degree // 2):
            place, count = _places(mix_bits(mix_bits(kinds) * (draw.getrandbits(62) | 1)), graph)
            ahead = (place[receiver] - place[sender]).remainder(count[graph.batch[receiver]])
            edges |= (ahead == 1) | (ahead == count[graph.batch[receiver]] - 1)
        return edges


def _places(keys: Tensor, graph: CompleteGraph) -> tuple[Tensor, Tensor]:
    """Rank each node's key among the distinct keys of its molecule, int64 `[N]`; also return their number, `[B]`."""
    order = keys.argsort(stable=True)
    order = order[graph.batch[order].argsort(stable=True)]
    key, batch = keys[order], graph.batch[order]
    new = torch.ones_like(key)
    new[1:] = (key[1:] != key[:-1]) | (batch[1:] != batch[:-1])
    count = new.new_zeros(graph.num_graphs).index_add_(0, batch, new)
    place = new.cumsum(0) - 1 - (count.cumsum(0) - count)[batch]
    return torch.empty_like(place).scatter_(0, order, place), count


# --- Virtual nodes: each is joined to every node of its molecule, and carries what concerns the whole molecule.


class GraphWithVirtualNodes(NamedTuple):
    """Graph with virtual nodes, and the new indices of the original nodes and pairs.

    Attributes:
        graph: the larger graph; the virtual nodes of a molecule come after its own nodes.
        nodes: new index of each original node, int64 `[N]`.
        virtual: indices of the virtual nodes, molecule by molecule, int64 `[B * count]` or `[sum of the counts]`.
        pairs: new index of each original pair, int64 `[num_pairs]`.
    """

    graph: CompleteGraph
    nodes: Tensor
    virtual: Tensor
    pairs: Tensor


def add_virtual_nodes(graph: CompleteGraph, count: int | Tensor = 1) -> GraphWithVirtualNodes:
    """Add virtual nodes to each molecule of a graph, with edges to and from all nodes of the molecule.

    Source: Gilmer et al. 2017, the "master node" (arXiv:1704.01212); Ying et al. 2021, Graphormer's VNode
    (arXiv:2106.05234).

    Args:
        graph: graph of the molecules. Masked pairs remain masked, and a node without any edge gets no edge.
        count: number of virtual nodes per molecule; int64 `[B]` if the number differs between molecules.
    """
    device = graph.ptr.device
    if not isinstance(count, Tensor) and count < 1:
        raise ValueError(f"expected at least one virtual node, got {count}")
    larger = graph.grown(count)
    if isinstance(count, Tensor):
        before = count.cumsum(0) - count
        nodes = torch.arange(graph.num_nodes, device=device) + before[graph.batch]
        of = torch.repeat_interleave(count)
        virtual = torch.arange(len(of), device=device) + graph.ptr[of + 1]
    else:
        nodes = torch.arange(graph.num_nodes, device=device) + count * graph.batch
        virtual = (larger.ptr[1:, None] - count + torch.arange(count, device=device)).flatten()
    sender, receiver = graph.pair_index
    pairs = larger.pair_of(torch.stack([nodes[sender], nodes[receiver]]))
    if graph.mask is not None:
        edges = torch.zeros(larger.num_nodes, dtype=torch.long, device=device).index_fill_(0, virtual, 1)
        for end in (sender, receiver):
            edges.index_add_(0, nodes[end], graph.mask.long())
        mask = (edges > 0)[larger.pair_index].all(0)
        mask[pairs] = graph.mask
        larger = larger.masked(mask)
    return GraphWithVirtualNodes(larger, nodes, virtual, pairs)
