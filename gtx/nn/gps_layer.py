"""One layer of GPS: message passing and attention side by side, each with a norm of its own."""

from __future__ import annotations

from torch import Tensor, nn

from gtx.graph import CompleteGraph
from gtx.nn.dropout import Dropout
from gtx.nn.edge_attention import EdgeAttention
from gtx.nn.transformer_layer import feed_forward


class GPSLayer(nn.Module):
    r"""Local message passing and global attention in parallel, then an MLP over their sum.

    \[ v_M = \mathrm{norm}(v + \mathrm{local}(v)), \quad v_T = \mathrm{norm}(v + \mathrm{attend}(v)), \quad
       v' = \mathrm{norm}(v_M + v_T + \mathrm{MLP}(v_M + v_T)) \]

    Norms are over channels, where the paper has batch norms: so a molecule does not see its batch-mates.

    Source: Rampášek et al. 2022, eq. 2 to 5 and section 3.2 (arXiv:2205.12454).

    Args:
        attention: attention from `channels` to `channels`; if it has edge features, they come as `edge_attr`.
        local: message passing over the bonds, called as `local(x, bond_index, bond_attr)`.
        channels: width of the nodes.
        hidden: width within the MLP; default `2 * channels`.
        dropout: on every branch's output and within the MLP, in training.

    Shapes:
        as in `gtx.nn.GraphTransformerLayer`.
    """

    def __init__(
        self,
        attention: EdgeAttention,
        local: nn.Module,
        channels: int,
        hidden: int | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if attention.width != channels:
            raise ValueError(f"expected attention that gives {channels} channels, got {attention.width}")
        self.attention, self.local = attention, local
        self.norm_local, self.norm_attention, self.norm_mlp = (nn.LayerNorm(channels) for _ in range(3))
        self.mlp = feed_forward(channels, hidden, dropout)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor | CompleteGraph,
        edge_attr: Tensor | None = None,
        bond_index: Tensor | None = None,
        bond_attr: Tensor | None = None,
        batch: Tensor | None = None,
        weights: list[Tensor] | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """As `gtx.nn.GraphTransformerLayer.forward`; edge features are given back as they came."""
        attended, alpha, _ = self.attention.attend(x, edge_index, edge_attr, weights is not None)
        if weights is not None:
            weights.append(alpha)
        near = self.norm_local(x + self.dropout(self.local(x, bond_index, bond_attr)))
        x = near + self.norm_attention(x + self.dropout(attended))
        return self.norm_mlp(x + self.dropout(self.mlp(x))), edge_attr
