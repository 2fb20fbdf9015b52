"""Encodings of atoms and bonds: atom types, degrees, bonds."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import CategoricalFeatureSpec, Encoding, integer_codes
from gtx.graph import CompleteGraph


class AtomTypes(Encoding):
    """Encoding of atoms by the code of their type, the first column of `x`, for a learned embedding.

    The encoding is for models that embed the atom type separately. The code is not changed, so a type that does not
    occur in training also has an embedding.

    Args:
        size: number of codes of the first column of `x`.

    The encoding reads the first column of `x`, int64 `[N, F]`. The encoding yields node codes `[N, 1]`.

    Raises:
        ValueError: `size` is 0; in `forward`, no codes in `x`.
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
        return integer_codes(data, "x")[:, :1], None


class NodeDegree(Encoding):
    """Encoding of nodes by their number of bonds, with one code for "more than `largest`".

    Source: the centrality encoding of Graphormer, Ying et al. 2021 (arXiv:2106.05234), eq. 5.

    Args:
        largest: largest number of bonds with a code of its own.

    The encoding reads `edge_index` `[2, E]`. The encoding yields node codes `[N, 1]`.

    Raises:
        ValueError: `largest` is negative.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 8) -> None:
        super().__init__()
        if largest < 0:
            raise ValueError(f"expected a largest number of bonds of at least 0, got {largest}")
        self.largest = largest
        self.node: CategoricalFeatureSpec = CategoricalFeatureSpec((largest + 2,))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        receiver = data.edge_index[1].long()
        degree = receiver.new_zeros(graph.num_nodes).index_add_(0, receiver, torch.ones_like(receiver))
        return degree.clamp_(max=self.largest + 1).unsqueeze(1), None


class BondFeatures(Encoding):
    """Encoding of pairs of atoms by the bond between them: the codes of its features plus one, 0 without a bond.

    Args:
        sizes: number of codes of each column of `edge_attr`.

    The encoding reads `edge_index` `[2, E]` and `edge_attr`, int64 `[E, F]`. The encoding yields pair codes
    `[num_pairs, F]`.

    Raises:
        ValueError: in `forward`, no codes in `edge_attr`, or of another shape; on a CPU, an edge that is not within a
            molecule.
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
        codes = integer_codes(data, "edge_attr")
        if codes.shape != shape:
            raise ValueError(f"expected edge_attr {list(shape)}, got {list(codes.shape)}")
        marked = data.edge_index.new_zeros(graph.num_pairs, shape[1], dtype=torch.long)
        marked[graph.pair_of(data.edge_index)] = codes.long() + 1
        return None, marked
