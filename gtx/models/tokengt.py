"""TokenGT: atoms and bonds as tokens of a plain Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import without_coordinates
from gtx.nn import EdgeAttention, GraphTransformerLayer


@without_coordinates
def tokengt(
    out_channels: int,
    *,
    channels: int = 64,
    heads: int = 8,
    dropout: float = 0.1,
    readout: Sequence[str] = (),
    **arguments: Any,
) -> GraphTransformer:
    """TokenGT: atoms, bonds and a token of the whole molecule attend to each other, all to all; the last is read out.

    Which tokens share an atom enters each head's score as a bias, shared by all layers, in place of the random
    orthonormal identifiers of atoms that the paper puts into the tokens (`gtx.nn.BondTokens` tells why). A bond is one
    token and not two.

    Source: Kim et al. 2022 (arXiv:2207.02505).

    Args:
        readout: how atoms are pooled beside the token of the molecule; default not at all.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(
            channels, head_width(channels, heads), heads, edge_dim=heads, edge_bias=nn.Identity(), project=True
        )
        return GraphTransformerLayer(attention, None, channels, channels, dropout)

    return GraphTransformer(
        out_channels,
        channels=channels,
        pair_channels=heads,
        dropout=dropout,
        local=False,
        readout=readout,
        virtual_nodes=1,
        bond_tokens=True,
        layer=layer,
        **arguments,
    )
