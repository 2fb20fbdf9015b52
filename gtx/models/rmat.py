"""The Relative Molecule Attention Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.attention import RelativeDot
from gtx.encodings import BesselDistance, Bonds, ShortestPath
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import needs_coordinates
from gtx.nn import EdgeAttention, GraphTransformerLayer


@needs_coordinates
def rmat(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    pair_channels: int = 32,
    dropout: float = 0.1,
    farthest: int = 4,
    radial: int = 32,
    cutoff: float = 20.0,
    readout: Sequence[str] = ("attention",),
    **arguments: Any,
) -> GraphTransformer:
    """R-MAT: relative embeddings of bonds, hops and radial distance in key and value, with global terms.

    All layers share a network that embeds the pair, and each has a linear map of its own from there to keys and one to
    values; the paper has two networks in every layer.
    The readout is attention pooling. The paper's dummy node is left out.

    Source: Maziarka et al. 2021 (arXiv:2110.05841).

    Args:
        pair_channels: width of the relative embedding before each layer's own map.
        farthest: longest path distance with a code of its own, bonds.
        radial: functions of the distance in space.
        cutoff: their reach, Å.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(
            channels,
            head_width(channels, heads),
            heads,
            edge_dim=pair_channels,
            score=RelativeDot(heads, head_width(channels, heads), pair_channels),
            edge_bias=False,
            edge_value=True,
            project=True,
        )
        return GraphTransformerLayer(attention, None, channels, dropout=dropout)

    return GraphTransformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[Bonds(bond_sizes), ShortestPath(farthest), BesselDistance(radial, cutoff)],
        channels=channels,
        pair_channels=pair_channels,
        dropout=dropout,
        local=False,
        readout=readout,
        layer=layer,
        **arguments,
    )
