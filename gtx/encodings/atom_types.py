"""Atom types as codes."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.encoding import Codes, Encoding
from gtx.graph import CompleteGraph


class AtomTypes(Encoding):
    """The code of each atom's type: the first column of `x`, to be looked up in a learned table.

    For models that embed the atom type beside other things. The code goes out as it came in: a type that training never
    met is looked up all the same.

    Args:
        size: codes of that column.

    Reads the first column of `x`, int64 `[N, F]`. Yields node codes `[N, 1]`.

    Raises:
        ValueError: no codes.
    """

    constant_shapes = True
    fixed = True

    def __init__(self, size: int) -> None:
        super().__init__()
        if size < 1:
            raise ValueError(f"expected at least one code, got {size}")
        self.node = Codes((size,))

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor, None]:
        return data.x[:, :1], None

    def __repr__(self) -> str:
        return f"AtomTypes({self.node.sizes[0]})"
