"""Exphormer: sparse attention over the bonds, a random regular graph and virtual nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.attention import ModulatedDot
from gtx.encodings import Bonds, RandomWalk
from gtx.graph import BondedPairs, Expander
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import without_coordinates
from gtx.nn import BondMessages, EdgeAttention, GPSLayer


@without_coordinates
def exphormer(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    pair_channels: int = 32,
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
    steps: int = 16,
    degree: int = 4,
    seed: int = 0,
    virtual_nodes: int = 1,
    readout: Sequence[str] = ("sum",),
    edge_list: bool = True,
    **arguments: Any,
) -> GraphTransformer:
    """Exphormer: GPS whose attention runs over few edges: bonds, an expander graph, and virtual nodes joined to all.

    The kind of edge, a bond with its type, of the expander, or of a virtual node, multiplies query and key. The
    expander is drawn over kinds of atoms and not over their numbers (`gtx.graph.Expander`), so that no numbering
    matters. Norms are over channels, as in `gps`.

    Source: Shirzad et al. 2023 (arXiv:2303.06147).

    Args:
        pair_channels: width of the edge features.
        steps: steps of the random walks on the atoms.
        degree: of the expander, even.
        seed: of the expander.
        virtual_nodes: how many; their states join the readout.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GPSLayer:
        attention = EdgeAttention(
            channels,
            head_width(channels, heads),
            heads,
            dropout=attention_dropout,
            edge_dim=pair_channels,
            score=ModulatedDot(heads, head_width(channels, heads), pair_channels, clip=5.0),
            edge_bias=False,
            project=True,
        )
        return GPSLayer(attention, BondMessages(channels), channels, dropout=dropout)

    return GraphTransformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[Bonds(bond_sizes), RandomWalk(steps, pairs=False)],
        channels=channels,
        pair_channels=pair_channels,
        pair_mlp=False,
        dropout=dropout,
        norm_first=False,
        readout=readout,
        edges=BondedPairs(loops=False) | Expander(degree, seed),
        virtual_nodes=virtual_nodes,
        layer=layer,
        edge_list=edge_list,
        **arguments,
    )
