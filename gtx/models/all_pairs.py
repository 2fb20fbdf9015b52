"""Published models whose attention spans all pairs of atoms: Transformer, Graphormer, GPS, GRIT, EGT and TGT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from gtx.attention import ClippedDotScore, GatedSoftmax, GRITScore
from gtx.encodings import (
    BondFeatures,
    GaussianDistance,
    NodeDegree,
    RandomWalkProbabilities,
    ShortestPathBonds,
    ShortestPathLength,
)
from gtx.models.assembly import LayerSettings, graph_transformer, published
from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import (
    BondMessagePassing,
    EdgeStateUpdate,
    GPSLayer,
    GraphTransformerLayer,
    LearnedDegreeScaling,
    TripletAttention,
)


@published
def transformer(out_channels: int, *, steps: int = 16, **arguments: Any) -> GraphTransformer:
    """Make the Transformer encoder: every atom attends to every atom, without pair encodings.

    Norms come last in each layer (post-norm), and the hidden layer of the MLP has width 4d.

    Random-walk probabilities of the atoms replace positions in a sequence, which a molecule does not have.

    Source: Vaswani et al. 2017 (arXiv:1706.03762); the positions, Dwivedi et al. 2022 (arXiv:2110.07875).

    Args:
        steps: number of steps of the random walks.
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        return GraphTransformerLayer(of.attention(), None, of.channels, 4 * of.channels, of.dropout, norm_first=False)

    return graph_transformer(
        out_channels,
        encodings=[RandomWalkProbabilities(steps, pairs=False)],
        norm_first=False,
        local=False,
        layer=layer,
        **arguments,
    )


def with_biases(out_channels: int, heads: int = 8, readout: Sequence[str] = (), **arguments: Any) -> GraphTransformer:
    """Make a model whose pair features are the biases of the scores, one per head, shared by all layers.

    The MLP of a layer has the width of the nodes, and the readout is the state of a virtual node.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        return GraphTransformerLayer(of.attention(edge_bias=nn.Identity()), None, of.channels, of.channels, of.dropout)

    return graph_transformer(
        out_channels,
        heads=heads,
        pair_channels=heads,
        pair_mlp=False,
        local=False,
        readout=readout,
        virtual_nodes=1,
        layer=layer,
        **arguments,
    )


@published
def graphormer(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    farthest: int = 20,
    path: int = 5,
    readout: Sequence[str] = (),
    **arguments: Any,
) -> GraphTransformer:
    """Make Graphormer, whose attention scores have biases for path lengths and for the bonds along the shortest paths.

    The degree is an encoding of the atoms. The biases differ between heads and are shared by all layers. Norms come
    first in each layer, the hidden layer of the MLP has the width of the nodes, and the readout is the state of a
    virtual node.

    The types of the bonds along the path are averaged over all shortest paths, so that the numbering of the atoms has
    no effect; the paper uses one shortest path.

    Source: Ying et al. 2021 (arXiv:2106.05234).

    Args:
        farthest: longest path distance with a separate code, in bonds.
        path: number of bonds of a path that have separate features.
        readout: pooling of the atoms in addition to the virtual node; by default none.
        arguments: further arguments of `graph_transformer`, by name.
    """
    encodings = [NodeDegree(), ShortestPathLength(farthest), ShortestPathBonds(bond_sizes[0], path, farthest)]
    return with_biases(out_channels, bond_sizes=bond_sizes, encodings=encodings, readout=readout, **arguments)


def gps_layer(of: LayerSettings, **modules: Any) -> GPSLayer:
    """Make a layer of GINE and attention, with further arguments of the attention by name."""
    return GPSLayer(of.attention(**modules), BondMessagePassing(of.channels), of.channels, dropout=of.dropout)


@published
def gps(out_channels: int, *, steps: int = 16, readout: Sequence[str] = ("sum",), **arguments: Any) -> GraphTransformer:
    """Make GPS (general, powerful, scalable graph transformer) with the settings for ZINC: GINE and attention over all
    pairs in parallel.

    Atoms have random walks as encodings; the readout is a sum.

    Layer norms replace the batch norms of the paper, so that a prediction does not depend on the other molecules of the
    batch.

    Source: Rampášek et al. 2022 (arXiv:2205.12454).

    Args:
        steps: number of steps of the random walks.
        arguments: further arguments of `graph_transformer`, by name.
    """
    return graph_transformer(
        out_channels,
        encodings=[RandomWalkProbabilities(steps, pairs=False)],
        norm_first=False,
        readout=readout,
        layer=gps_layer,
        **arguments,
    )


@published
def grit(
    out_channels: int, *, bond_sizes: Sequence[int], channels: int = 64, steps: int = 16, **arguments: Any
) -> GraphTransformer:
    """Make GRIT (Graph Inductive bias Transformer), whose pairs of atoms have states made from random-walk
    probabilities.

    For each pair and head, a vector is computed from query, key and edge state. The vector gives the score, is added to
    the value, and becomes the new edge state. The output is scaled by the logarithm of the degree, and norms come last
    in each layer.

    Layer norms replace the batch norms of the paper, so that a prediction does not depend on the other molecules of the
    batch. The scaler is applied after the heads are merged; the authors' code applies the scaler before.

    Source: Ma et al. 2023 (arXiv:2305.17589).

    Args:
        channels: width of nodes and edge states.
        layers: number of layers; the last layer does not update edge states.
        steps: number of steps of the random walks.
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        score = GRITScore(of.heads, of.head_channels, channels)
        attention = of.attention(score=score, edge_bias=False, edge_value="state")
        update = None
        if not of.last:
            update = EdgeStateUpdate(channels, attention.state_width, dropout=of.dropout, norm_first=False)
        return GraphTransformerLayer(
            attention,
            None,
            channels,
            dropout=of.dropout,
            norm_first=False,
            edge_update=update,
            scaler=LearnedDegreeScaling(channels),
        )

    return graph_transformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[BondFeatures(bond_sizes), RandomWalkProbabilities(steps)],
        channels=channels,
        pair_channels=channels,
        pair_mlp=False,
        local=False,
        norm_first=False,
        layer=layer,
        **arguments,
    )


@published
def egt(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    pair_channels: int = 32,
    clip: float = 5.0,
    farthest: int = 20,
    steps: int = 16,
    **arguments: Any,
) -> GraphTransformer:
    """Make EGT (Edge-augmented Graph Transformer), whose edge states are updated in every layer.

    The clipped score has a bias from the edge state. Sigmoid gates and the logarithm of the degree scale the attention
    weights, and edge states have a separate MLP.

    The model has no virtual nodes. Random-walk probabilities of the atoms replace the SVD encodings of the paper, whose
    signs are arbitrary.

    Source: Hussain et al. 2022 (arXiv:2108.03348).

    Args:
        layers: number of layers; the last layer does not update edge states.
        pair_channels: width of the edge states.
        clip: largest absolute value of the score.
        farthest: longest path distance with a separate code, in bonds.
        steps: number of steps of the random walks.
        arguments: further arguments of `graph_transformer`, by name.
    """
    sizes = {"bond_sizes": bond_sizes, "pair_channels": pair_channels}
    return tgt(out_channels, **sizes, triplet_heads=0, clip=clip, farthest=farthest, steps=steps, **arguments)


@published
def tgt(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    coordinates: bool = False,
    pair_channels: int = 32,
    triplet_heads: int = 4,
    clip: float = 5.0,
    farthest: int = 20,
    steps: int = 16,
    cutoff: float = 10.0,
    **arguments: Any,
) -> GraphTransformer:
    """Make TGT (Triplet Graph Transformer): EGT whose edge states also attend to each other, over triplets of atoms.

    Time is proportional to the cube of the number of atoms, and so is memory up to a limit, see
    `gtx.nn.TripletAttention`. The paper predicts distances first and trains in three stages; the model of gtx computes
    distances from the coordinates, if any.

    Source: Hussain et al. 2024 (arXiv:2402.04538), with triplet attention.

    Args:
        coordinates: whether distances in space are encoded; the batch must then have `pos`.
        layers: number of layers; the last layer does not update edge states.
        pair_channels: width of the edge states.
        triplet_heads: number of heads of the triplet attention, a divisor of `pair_channels`; 0 for EGT.
        clip: largest absolute value of the score.
        farthest: longest path distance with a separate code, in bonds.
        steps: number of steps of the random walks.
        cutoff: cutoff of the distance encoding, in Å.
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        attention = of.attention(
            score=ClippedDotScore(of.heads, pair_channels, clip),
            normaliser=GatedSoftmax(of.heads, pair_channels),
            edge_bias=False,
        )
        update = None
        if not of.last:
            triplets = TripletAttention(pair_channels, triplet_heads) if triplet_heads else None
            update = EdgeStateUpdate(
                pair_channels, attention.state_width, 2 * pair_channels, of.dropout, triplets=triplets
            )
        return GraphTransformerLayer(attention, None, of.channels, dropout=of.dropout, edge_update=update)

    walk = RandomWalkProbabilities(steps, pairs=False)
    space = [GaussianDistance(cutoff=cutoff)] if coordinates else []
    return graph_transformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[BondFeatures(bond_sizes), ShortestPathLength(farthest), walk, *space],
        pair_channels=pair_channels,
        pair_mlp=False,
        local=False,
        layer=layer,
        **arguments,
    )
