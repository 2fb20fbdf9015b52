"""Bonds, as features of pairs."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Codes, Encoding
from gtx.encodings.neighbours import check_edges, compiled
from gtx.graph import CompleteGraph


class Bonds(Encoding):
    """The codes of the bond from sender to receiver: 0 where there is none, else the bond's own code plus one.

    Args:
        sizes: codes of each column of `edge_attr`.

    Reads `edge_index` `[2, E]` and `edge_attr`, int64 `[E, F]`. Yields pair codes `[num_pairs, F]`.

    Raises:
        ValueError: in `forward`, `edge_attr` of another shape; on a processor, an edge that is not within a molecule.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, sizes: Sequence[int]) -> None:
        super().__init__()
        self.pair = Codes(tuple(size + 1 for size in sizes), sparse=True)

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[None, Tensor]:
        shape = (data.edge_index.shape[1], len(self.pair.sizes))
        if data.edge_attr.shape != shape:
            raise ValueError(f"expected edge_attr {list(shape)}, got {list(data.edge_attr.shape)}")
        way = self._marked if compiled(data.edge_index, graph) else self._indexed
        return None, way(data.edge_index, data.edge_attr.long(), graph)

    def _marked(self, edge_index: Tensor, codes: Tensor, graph: CompleteGraph) -> Tensor:
        """By a compiled loop."""
        from gtx.encodings import neighbour_kernels as kernels

        sender, receiver = edge_index.long().contiguous().numpy()
        where = graph.batch.numpy(), graph.ptr.numpy(), graph.pair_ptr.numpy()
        marked = codes.new_zeros(graph.num_pairs, codes.shape[1])
        wrong = kernels.mark(sender, receiver, codes.contiguous().numpy(), *where, marked.numpy())
        check_edges(wrong, edge_index, graph)
        return marked

    def _indexed(self, edge_index: Tensor, codes: Tensor, graph: CompleteGraph) -> Tensor:
        """By index arithmetic."""
        marked = codes.new_zeros(graph.num_pairs, codes.shape[1])
        marked[graph.pair_of(edge_index)] = codes + 1
        return marked

    def __repr__(self) -> str:
        return f"Bonds({[size - 1 for size in self.pair.sizes]})"
