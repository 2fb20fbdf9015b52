"""The Edge-augmented Graph Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.attention import ClippedDot, GatedSoftmax
from gtx.encodings import Bonds, RandomWalk, ShortestPath
from gtx.models.graph_transformer import GraphTransformer, head_width
from gtx.models.space import without_coordinates
from gtx.nn import EdgeAttention, EdgeUpdate, GraphTransformerLayer


@without_coordinates
def egt(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    channels: int = 64,
    layers: int = 4,
    heads: int = 8,
    pair_channels: int = 32,
    dropout: float = 0.1,
    clip: float = 5.0,
    farthest: int = 20,
    steps: int = 16,
    **arguments: Any,
) -> GraphTransformer:
    """EGT: a clipped score with a bias from the edge state, sigmoid gates, a scaler of the log-degree, and edge states
    with an MLP of their own, updated in every layer.

    There are no virtual nodes. Random-walk probabilities of the atoms stand in for the paper's SVD encodings, whose
    signs are arbitrary.

    Source: Hussain et al. 2022 (arXiv:2108.03348).

    Args:
        layers: number of layers; the last has no use for new edge states.
        pair_channels: width of the edge states.
        clip: bound of the score.
        farthest: longest path distance with a code of its own, bonds.
        steps: steps of the random walks.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(
            channels,
            head_width(channels, heads),
            heads,
            edge_dim=pair_channels,
            score=ClippedDot(heads, pair_channels, clip),
            normaliser=GatedSoftmax(heads, pair_channels),
            edge_bias=False,
            project=True,
        )
        update = None
        if i < layers - 1:
            update = EdgeUpdate(pair_channels, attention.state_width, 2 * pair_channels, dropout)
        return GraphTransformerLayer(attention, None, channels, dropout=dropout, edge_update=update)

    return GraphTransformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[Bonds(bond_sizes), ShortestPath(farthest), RandomWalk(steps, pairs=False)],
        channels=channels,
        layers=layers,
        pair_channels=pair_channels,
        pair_mlp=False,
        dropout=dropout,
        local=False,
        layer=layer,
        **arguments,
    )
