"""Encodings of atoms and bonds: atom types, degrees, bonds; and of both sides of a reaction, by any encoding."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding, Feature
from gtx.graph import CompleteGraph
from gtx.graph.sides import split_sides


class AtomTypes(Encoding):
    """Encoding of atoms by the code of their type, the first column of `x`, for a learned embedding.

    The encoding is for models that embed the atom type separately. The code is not changed, so a type that does not
    occur in training also has an embedding.

    Args:
        size: number of codes of the first column of `x`.

    The encoding reads the first column of `x`, int64 `[N, F]`. The encoding yields node codes `[N, 1]`.

    Raises:
        ValueError: `size` is 0.
    """

    node: CategoricalFeatureSpec
    constant_shapes = True
    fixed = True

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"expected at least one code, got {size}")
        self.size = size
        self.node = CategoricalFeatureSpec((size,))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        return data.x[:, :1], None


class NodeDegree(Encoding):
    """Encoding of nodes by their number of bonds, with one code for "more than `largest`".

    Source: the centrality encoding of Graphormer, Ying et al. 2021 (arXiv:2106.05234), eq. 5.

    The encoding reads `edge_index` `[2, E]`. The encoding yields node codes `[N, 1]`.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 8) -> None:
        super().__init__()
        self.largest = largest
        self.node: CategoricalFeatureSpec = CategoricalFeatureSpec((largest + 2,))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        receiver = data.edge_index[1]
        degree = receiver.new_zeros(graph.num_nodes).index_add_(0, receiver, torch.ones_like(receiver))
        return degree.clamp_(max=self.largest + 1).unsqueeze(1), None


class BondFeatures(Encoding):
    """Encoding of pairs of atoms by the bond between them: the codes of its features plus one, 0 without a bond.

    Args:
        sizes: number of codes of each column of `edge_attr`.

    The encoding reads `edge_index` `[2, E]` and `edge_attr`, int64 `[E, F]`. The encoding yields pair codes
    `[num_pairs, F]`.

    Raises:
        ValueError: in `forward`, `edge_attr` of another shape; on a CPU, an edge that is not within a molecule.
    """

    pair: CategoricalFeatureSpec
    constant_shapes = True
    fixed = True

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.sizes = tuple(sizes)
        self.pair = CategoricalFeatureSpec(tuple(size + 1 for size in sizes))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        shape = (data.edge_index.shape[1], len(self.sizes))
        if data.edge_attr.shape != shape:
            raise ValueError(f"expected edge_attr {list(shape)}, got {list(data.edge_attr.shape)}")
        marked = data.edge_index.new_zeros(graph.num_pairs, shape[1], dtype=torch.long)
        marked[graph.pair_of(data.edge_index)] = data.edge_attr.long() + 1
        return None, marked


# --- Both sides of a reaction, each by an encoding of molecules.


class BothSides(Encoding):
    """Encoding of both sides of a reaction by an encoding of molecules: the features of one side, then of the other.

    Args:
        encoding: encoding of a molecule, with codes of half the columns.
        atom_sizes, bond_sizes: number of codes of each column of a reaction, see `gtx.graph.sides.split_sides`.

    Raises:
        ValueError: in `forward`, codes that are not those of two sides.
    """

    def __init__(self, encoding: Encoding, atom_sizes: Sequence[int], bond_sizes: Sequence[int]) -> None:
        super().__init__()
        self.encoding = encoding
        self.atom_sizes, self.bond_sizes = tuple(atom_sizes), tuple(bond_sizes)
        self.node, self.pair = _twice(encoding.node), _twice(encoding.pair)
        self.fixed = encoding.fixed

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor | None, Tensor | None]:
        first, second = (self.encoding(side, graph) for side in split_sides(data, self.atom_sizes, self.bond_sizes))
        node, pair = (
            None if one is None or other is None else torch.cat([one, other], -1)
            for one, other in zip(first, second, strict=True)
        )
        return node, pair


def _twice(feature: Feature | None) -> Feature | None:
    if isinstance(feature, CategoricalFeatureSpec):
        return CategoricalFeatureSpec(feature.sizes * 2)
    return feature and ContinuousFeatureSpec(2 * feature.channels)


def of_both_sides(
    encodings: Sequence[Encoding], atom_sizes: Sequence[int], bond_sizes: Sequence[int]
) -> list[Encoding]:
    """Return encodings for reactions: those that read codes alone as they are, any other once for each side."""
    return [
        encoding if isinstance(encoding, AtomTypes | BondFeatures) else BothSides(encoding, atom_sizes, bond_sizes)
        for encoding in encodings
    ]
