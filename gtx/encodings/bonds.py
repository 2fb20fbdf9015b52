"""Bonds, as features of pairs."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Codes, Encoding
from gtx.graph import CompleteGraph


class Bonds(Encoding):
    """The codes of the bond from sender to receiver: 0 where there is none, else the bond's own code plus one.

    Args:
        sizes: codes of each column of `edge_attr`.

    Reads `edge_index` `[2, E]` and `edge_attr`, int64 `[E, F]`. Yields pair codes `[num_pairs, F]`.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.pair = Codes(tuple(size + 1 for size in sizes))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        codes = data.edge_attr.new_zeros(graph.num_pairs, len(self.pair.sizes))
        codes[graph.pair_of(data.edge_index)] = data.edge_attr + 1
        return None, codes

    def __repr__(self) -> str:
        return f"Bonds({[size - 1 for size in self.pair.sizes]})"
