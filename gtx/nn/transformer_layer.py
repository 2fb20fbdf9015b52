"""One layer of a graph transformer."""

from __future__ import annotations

from torch import Tensor, nn

from gtx.graph import CompleteGraph
from gtx.nn.edge_attention import EdgeAttention


class GraphTransformerLayer(nn.Module):
    r"""Attention over all pairs, message passing over the bonds beside it, and an MLP, each a residual.

    With norms first (pre-norm),

    \[ v \leftarrow v + \mathrm{attend}(\mathrm{norm}(v)) + \mathrm{local}(\mathrm{norm}(v)), \qquad
       v \leftarrow v + \mathrm{MLP}(\mathrm{norm}(v)) \]

    and with norms last (post-norm) \(v \leftarrow \mathrm{norm}(v + \ldots)\), twice.

    Sources: Vaswani et al. 2017 (arXiv:1706.03762) for the layer; Xiong et al. 2020 (arXiv:2002.04745) for pre-norm;
    Rampášek et al. 2022, GPS (arXiv:2205.12454) for a local branch beside the global one.

    Args:
        attention: attention from `channels` to `channels`.
        local: message passing over the bonds, called as `local(x, bond_index, bond_attr)`, or None.
        channels: width of the nodes.
        hidden: width within the MLP; default `2 * channels`.
        dropout: on every branch's output and within the MLP, in training.
        norm_first: pre-norm; if False, post-norm.

    Shapes:
        x `[N, channels]` to `[N, channels]`; edge_attr flat as the attention wants it; bond_attr `[E, *]`.
    """

    def __init__(
        self,
        attention: EdgeAttention,
        local: nn.Module | None,
        channels: int,
        hidden: int | None = None,
        dropout: float = 0.0,
        norm_first: bool = True,
    ) -> None:
        super().__init__()
        if attention.width != channels:
            raise ValueError(f"expected attention that gives {channels} channels, got {attention.width}")
        hidden = 2 * channels if hidden is None else hidden
        self.attention, self.local = attention, local
        self.norm_attention, self.norm_mlp = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.mlp = nn.Sequential(
            nn.Linear(channels, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, channels)
        )
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None = None,
        bond_index: Tensor | None = None,
        bond_attr: Tensor | None = None,
    ) -> Tensor:
        """Update the nodes.

        Args:
            x: node features.
            edge_index: the pairs that attend, an edge list or a complete graph.
            edge_attr: features of those pairs.
            bond_index: int64 `[2, E]`, the bonds, for the local branch.
            bond_attr: features of the bonds.
        """
        if self.norm_first:
            x = x + self._mix(self.norm_attention(x), edge_index, edge_attr, bond_index, bond_attr)
            return x + self.dropout(self.mlp(self.norm_mlp(x)))
        x = self.norm_attention(x + self._mix(x, edge_index, edge_attr, bond_index, bond_attr))
        return self.norm_mlp(x + self.dropout(self.mlp(x)))

    def _mix(
        self,
        x: Tensor,
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None,
        bond_index: Tensor | None,
        bond_attr: Tensor | None,
    ) -> Tensor:
        mixed = self.attention(x, edge_index, edge_attr)
        if self.local is not None:
            mixed = mixed + self.local(x, bond_index, bond_attr)
        return self.dropout(mixed)
