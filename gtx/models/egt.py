"""The Edge-augmented Graph Transformer, and with triplets of atoms the Triplet Graph Transformer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from gtx.attention import ClippedDot, GatedSoftmax
from gtx.encodings import Bonds, GaussianDistance, RandomWalk, ShortestPath
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import may_use_coordinates, without_coordinates
from gtx.nn import EdgeAttention, EdgeUpdate, GraphTransformerLayer, TripletAttention


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

    encodings = [Bonds(bond_sizes), ShortestPath(farthest), RandomWalk(steps, pairs=False)]
    sizes = {"channels": channels, "layers": layers, "heads": heads, "pair_channels": pair_channels}
    more = {"bond_sizes": bond_sizes, "encodings": encodings, "dropout": dropout, **arguments}
    return _edge_augmented(out_channels, clip, lambda: None, **sizes, **more)


@may_use_coordinates
def tgt(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    coordinates: bool = False,
    channels: int = 64,
    layers: int = 4,
    heads: int = 8,
    pair_channels: int = 32,
    triplet_heads: int = 4,
    dropout: float = 0.1,
    clip: float = 5.0,
    farthest: int = 20,
    steps: int = 16,
    cutoff: float = 10.0,
    **arguments: Any,
) -> GraphTransformer:
    """TGT: EGT whose edge states also attend to each other, over all triplets of atoms, before their MLP.

    Time grows with the cube of the number of atoms, and so does memory up to a bound, see `gtx.nn.TripletAttention`.
    The paper predicts distances first and trains in three stages; here distances come from the coordinates, if there
    are any.

    Source: Hussain et al. 2024 (arXiv:2402.04538), with triplet attention.

    Args:
        coordinates: also encode distances in space; the batch must have `pos`.
        layers: number of layers; the last has no use for new edge states.
        pair_channels: width of the edge states.
        triplet_heads: heads of the triplets; they divide `pair_channels`.
        clip: bound of the score.
        farthest: longest path distance with a code of its own, bonds.
        steps: steps of the random walks.
        cutoff: reach of the distance encoding, Å.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """
    encodings = [Bonds(bond_sizes), ShortestPath(farthest), RandomWalk(steps, pairs=False)]
    if coordinates:
        encodings.append(GaussianDistance(cutoff=cutoff))
    sizes = {"channels": channels, "layers": layers, "heads": heads, "pair_channels": pair_channels}
    more = {"bond_sizes": bond_sizes, "encodings": encodings, "dropout": dropout, **arguments}
    return _edge_augmented(out_channels, clip, lambda: TripletAttention(pair_channels, triplet_heads), **sizes, **more)


def _edge_augmented(
    out_channels: int,
    clip: float,
    triplets: Callable[[], nn.Module | None],
    *,
    channels: int,
    layers: int,
    heads: int,
    pair_channels: int,
    dropout: float,
    **arguments: Any,
) -> GraphTransformer:
    """A model whose edge states are updated from the score, and by attention between edges if there is one."""

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
            width = attention.state_width
            update = EdgeUpdate(pair_channels, width, 2 * pair_channels, dropout, triplets=triplets())
        return GraphTransformerLayer(attention, None, channels, dropout=dropout, edge_update=update)

    return GraphTransformer(
        out_channels,
        channels=channels,
        layers=layers,
        pair_channels=pair_channels,
        pair_mlp=False,
        dropout=dropout,
        local=False,
        layer=layer,
        **arguments,
    )
