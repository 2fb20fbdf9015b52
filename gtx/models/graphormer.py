"""Graphormer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from gtx.encodings import Degree, EdgePath, ShortestPath
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import without_coordinates
from gtx.nn import EdgeAttention, GraphTransformerLayer


@without_coordinates
def graphormer(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    dropout: float = 0.1,
    farthest: int = 20,
    path: int = 5,
    readout: Sequence[str] = (),
    **arguments: Any,
) -> GraphTransformer:
    """Graphormer: degree on the atoms; a bias per head for path distance and for the bonds along the path, shared by
    all layers; pre-norm, MLP of the nodes' width; a virtual node that is read out.

    The types of the bonds along the path are averaged over all shortest paths, so that no numbering of the atoms
    matters; the paper takes one.

    Source: Ying et al. 2021 (arXiv:2106.05234).

    Args:
        farthest: longest path distance with a code of its own, bonds.
        path: how many bonds of a path are told apart.
        readout: how atoms are pooled beside the virtual node; default not at all.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(
            channels, head_width(channels, heads), heads, edge_dim=heads, edge_bias=nn.Identity(), project=True
        )
        return GraphTransformerLayer(attention, None, channels, channels, dropout)

    return GraphTransformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[Degree(), ShortestPath(farthest), EdgePath(bond_sizes[0], path, farthest)],
        channels=channels,
        pair_channels=heads,
        pair_mlp=False,
        dropout=dropout,
        local=False,
        readout=readout,
        virtual_nodes=1,
        layer=layer,
        **arguments,
    )
