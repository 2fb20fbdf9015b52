"""Message passing over the bonds, beside the attention."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from torch import Tensor, nn
from torch_geometric.nn import GINEConv

from gtx.gelu import GELU
from gtx.nn.embedding import CodeEmbedding
from gtx.nn.fast.bonds import sum_messages


@dataclass(frozen=True)
class EmbeddedCodes:
    """Bonds by their codes, embedded where somebody asks: few codes are the bonds of many molecules.

    Attributes:
        codes: int64 `[E, F]`.
        embedding: of the codes.
    """

    codes: Tensor
    embedding: CodeEmbedding

    @cached_property
    def rows(self) -> Tensor:
        """Every bond's vector, `[E, C]`."""
        return self.embedding(self.codes)


class BondMessages(GINEConv):
    r"""An MLP of a node plus the sum of what its neighbours and the bonds to them say.

    \[ v'_r = \mathrm{MLP}\Bigl((1 + \epsilon) v_r + \sum_{s \to r} \mathrm{ReLU}(v_s + W b_{sr} + c)\Bigr) \]

    PyG's `GINEConv`, which can also be given the codes of bonds. In single precision on a processor, W is then applied
    to the table of codes and not to every bond, and one compiled loop sums (`gtx/nn/fast/bonds.c`).

    Source: Hu et al. 2020 (arXiv:1905.12265).

    Args:
        channels: width of nodes and bonds.

    Shapes:
        x `[N, channels]`, edge_index int64 `[2, E]`, edge_attr `[E, channels]` or `EmbeddedCodes`, to `[N, channels]`.
    """

    def __init__(self, channels: int) -> None:
        mlp = nn.Sequential(nn.Linear(channels, channels), GELU(), nn.Linear(channels, channels))
        super().__init__(mlp, edge_dim=channels)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | EmbeddedCodes) -> Tensor:
        if not isinstance(edge_attr, EmbeddedCodes):
            return super().forward(x, edge_index, edge_attr)
        embedding, codes = edge_attr.embedding, edge_attr.codes
        table, scale = embedding.table @ self.lin.weight.t(), 1 + float(self.eps)
        summed = sum_messages(x, edge_index, codes, embedding.offsets, table, self.lin.bias, scale)
        return super().forward(x, edge_index, edge_attr.rows) if summed is None else self.nn(summed)
