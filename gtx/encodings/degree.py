"""Degree: how many neighbours an atom has."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Codes, Encoding
from gtx.graph import CompleteGraph


class Degree(Encoding):
    """The number of bonds into each node, with one code for "more than `largest`".

    Source: the centrality encoding of Graphormer, Ying et al. 2021 (arXiv:2106.05234), eq. 5.

    Reads `edge_index` `[2, E]`. Yields node codes `[N, 1]`.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, largest: int = 8) -> None:
        super().__init__()
        self.largest = largest
        self.node = Codes((largest + 2,))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        receiver = data.edge_index[1]
        degree = receiver.new_zeros(graph.num_nodes).index_add_(0, receiver, torch.ones_like(receiver))
        return degree.clamp_(max=self.largest + 1).unsqueeze(1), None

    def __repr__(self) -> str:
        return f"Degree({self.largest})"
