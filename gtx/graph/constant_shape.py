"""Batches of constant shape: a fixed number of atoms, pairs and bonds, and a ghost molecule that takes what is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from gtx.graph.complete import CompleteGraph
from gtx.graph.packing import Buckets, FlatToPaddedMap, MoleculesBySize, SizeBucket


class BatchShape(NamedTuple):
    """Constant shape of batches: numbers of molecules, atoms, pairs and bonds, padding included.

    A batch has places for B molecules, sorted by size, and for a padding molecule, the ghost.

    Attributes:
        atoms: number N of atoms, at least one more than the molecules have, because the ghost has an atom.
        pairs: number P of pairs, at least one more than the molecules have.
        bonds: number E of directed bonds.
        buckets: tuples (count, size): a molecule in one of the first `count` places has at most `size` atoms, and so on
            for the next places.
    """

    atoms: int
    pairs: int
    bonds: int
    buckets: tuple[tuple[int, int], ...]

    @property
    def molecules(self) -> int:
        """Number B of places for molecules."""
        return sum(count for count, _ in self.buckets)

    def grown(self, count: int) -> BatchShape:
        """Add `count` nodes to every molecule, including the ghost and empty places."""
        places = self.molecules + 1
        pairs = self.pairs + 2 * count * self.atoms + count**2 * places
        return BatchShape(
            self.atoms + count * places, pairs, self.bonds, tuple((n, size + count) for n, size in self.buckets)
        )


@dataclass(frozen=True)
class ConstantShapeGraph(CompleteGraph):
    r"""Complete graphs of the molecules of a batch of constant shape.

    The batch has `batch_shape.molecules` places for molecules, some of which may be empty. The last graph is the ghost,
    an artificial molecule, with all atoms and pairs that the molecules do not use. Each pair of the ghost is treated as
    a pair of the last atom with itself. The results of molecules do not depend on the ghost. All indices are computed
    on the device by arithmetic of constant shape, without copies to the host, so a CUDA graph can contain the
    computation.

    The method `from_sizes` makes a `ConstantShapeGraph`.
    """

    has_ghost: ClassVar[bool] = True

    batch_shape: BatchShape = field(kw_only=True)

    @classmethod
    def from_sizes(cls, sizes: Tensor, batch_shape: BatchShape) -> Self:
        """Build the graph from the number of atoms in each place.

        Args:
            sizes: number of atoms in each place, int64 `[B]`, descending, within the buckets; 0 for an empty place. The
                sizes are not checked, because a check would copy them to the host; `ConstantShapeSampler`
                yields valid sizes.
            batch_shape: shape of the batch.
        """
        zero = sizes.new_zeros(1)
        ptr = torch.cat([zero, sizes.cumsum(0), zero + batch_shape.atoms])
        pair_ptr = torch.cat([zero, sizes.square().cumsum(0), zero + batch_shape.pairs])
        batch = owners(ptr, batch_shape.atoms)
        return cls(ptr, batch, pair_ptr, batch_shape.pairs, batch_shape=batch_shape)

    @property
    def packed(self) -> Buckets:
        """The places in their buckets, and a bucket of one slot, for the last atom: it stands for the ghost."""
        return self._once("packed", self._pack)

    @property
    def edge_index(self) -> Tensor:
        if self.mask is not None:
            raise ShapeNotConstantError("the number of edges under a mask is not constant")
        return self.pair_index

    def select(self, pairs: Tensor) -> Tensor:
        if self.mask is not None:
            raise ShapeNotConstantError("the number of edges under a mask is not constant")
        return pairs

    def pair_of(self, edge_index: Tensor) -> Tensor:
        """Return the pair number of each edge, as `CompleteGraph.pair_of`; an edge of the ghost gets one of the pairs
        of the ghost.
        """
        of_ghost = self.batch[edge_index[1]] == self.num_graphs - 1
        return torch.where(of_ghost, self.num_pairs - 1, super().pair_of(edge_index))

    def grown(self, count: int | Tensor) -> Self:
        if isinstance(count, Tensor):
            raise ShapeNotConstantError("graphs that grow by unlike numbers of nodes have no constant shape")
        sizes = self.ptr.diff()[:-1] + count
        return type(self).from_sizes(sizes, self.batch_shape.grown(count))

    def to(self, device: torch.device | str) -> Self:
        moved = type(self).from_sizes(self.ptr.diff()[:-1].to(device), self.batch_shape)
        return moved if self.mask is None else moved.masked(self.mask.to(device))

    def _pair_index(self) -> Tensor:
        graph = owners(self.pair_ptr, self.num_pairs)
        place = torch.arange(self.num_pairs, device=self.ptr.device) - self.pair_ptr[graph]
        size = self.ptr.diff()[graph].clamp(min=1)
        receiver, sender = self.ptr[graph] + place // size, self.ptr[graph] + place % size
        last = self.num_nodes - 1
        return torch.where(graph == self.num_graphs - 1, last, torch.stack([sender, receiver]))

    def _size_order(self) -> MoleculesBySize:
        """Return the places as they are, without the ghost."""
        first, ranges = 0, []
        for count, most in self.batch_shape.buckets:
            ranges.append(SizeBucket(first, first + count, 0, most))
            first += count
        molecules = torch.stack([self.ptr[:-2], self.pair_ptr[:-2], self.ptr.diff()[:-1]])
        return MoleculesBySize(molecules, tuple(ranges), complete=False)

    def _pack(self) -> Buckets:
        device, (N, P) = self.ptr.device, (self.num_nodes, self.num_pairs)
        sizes, first, first_pair = self.ptr.diff()[:-1], self.ptr[:-2], self.pair_ptr[:-2]
        parts: list[tuple[Tensor, ...]] = []
        slot = pair_slot = place = 0
        for count, size in self.batch_shape.buckets:
            each, local = torch.arange(count, device=device), torch.arange(size, device=device)
            n, node, pair = (x[place : place + count, None] for x in (sizes, first, first_pair))
            inside, kept = local < n, local < n.clamp(min=1)
            # an empty place keeps one slot, the ghost's last atom, so that its softmax is over something
            at = pair[..., None] + local[:, None] * n[..., None] + local
            parts.append(
                (
                    slot + size * each,
                    pair_slot + size**2 * each,
                    torch.full_like(each, size),
                    torch.where(inside, node + local, N - 1).flatten(),
                    torch.where(inside[:, :, None] & inside[:, None, :], at, P - 1).flatten(),
                    ~kept.flatten(),
                    ~(kept[:, :, None] & kept[:, None, :]).flatten(),
                )
            )
            slot, pair_slot, place = slot + count * size, pair_slot + count * size**2, place + count
        numbers = (torch.full((1,), x, device=device) for x in (slot, pair_slot, 0, N - 1, P - 1))
        solid = torch.zeros(1, dtype=torch.bool, device=device)
        parts.append((*numbers, solid, solid))  # the ghost
        start, pair_start, cap, node_of, pair_of, hole, pair_hole = map(torch.cat, zip(*parts, strict=True))
        sender, receiver = self.pair_index
        of_pair = self.batch[receiver]
        local = torch.where(self.batch == self.num_graphs - 1, 0, torch.arange(N, device=device) - self.ptr[self.batch])
        slot_of_pair = pair_start[of_pair] + local[receiver] * cap[of_pair] + local[sender]
        nodes = FlatToPaddedMap(node_of, start[self.batch] + local, hole)
        shapes = (*((count, size, size) for count, size in self.batch_shape.buckets), (1, 1, 1))
        return Buckets(nodes, nodes, FlatToPaddedMap(pair_of, slot_of_pair, pair_hole), shapes)


class ShapeNotConstantError(ValueError):
    """Error of an operation whose result would not have a constant shape."""


def owners(ptr: Tensor, count: int) -> Tensor:
    """Return for each of 0 to `count` - 1 the number of the interval of `ptr` that it lies in: int64 `[count]`."""
    return torch.searchsorted(ptr[1:], torch.arange(count, device=ptr.device), right=True)
