"""Published models that read coordinates: MAT, R-MAT, TorchMD-NET and Transformer-M."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.attention import DistanceAdjacencyBlend, RMATScore
from gtx.encodings import (
    BesselDistance,
    BondFeatures,
    ExpNormDistance,
    GaussianDistance,
    MATDistanceAndAdjacency,
    NeighbourAtomTypes,
    NodeDegree,
    PairUnitVector,
    ShortestPathBonds,
    ShortestPathLength,
    TransformerM3DEncoding,
)
from gtx.graph import DistanceCutoffEdges
from gtx.models.all_pairs import with_biases
from gtx.models.assembly import LayerSettings, graph_transformer, published
from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import EquivariantAttentionLayer, GraphTransformerLayer, TransformerMPairEncoding


@published
def mat(
    out_channels: int,
    *,
    coordinates: bool = True,
    blend: Sequence[float] = (1 / 3, 1 / 3, 1 / 3),
    learned: bool = False,
    kernel: str = "softmax",
    readout: Sequence[str] = ("mean",),
    **arguments: Any,
) -> GraphTransformer:
    """Make MAT (Molecule Attention Transformer), which blends attention weights with distances in space and bonds.

    The readout is a mean over atoms. The adjacency matrix is used unchanged, as in the equation of the paper; the
    authors' code divides the rows of the matrix by their sums. The model has no dummy node, unlike the model of the
    paper.

    Source: Maziarka et al. 2020 (arXiv:2002.08264).

    Args:
        coordinates: must be True: the batch must have `pos`.
        blend: weights of attention, distance and adjacency.
        learned: whether these weights are learned.
        kernel: function of the distance, "softmax" or "exp".
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        attention = of.attention(normaliser=DistanceAdjacencyBlend(blend, learned, kernel), edge_bias=False)
        return GraphTransformerLayer(attention, None, of.channels, of.channels, of.dropout)

    return graph_transformer(
        out_channels,
        encodings=[MATDistanceAndAdjacency()],
        pair_channels=None,
        local=False,
        readout=readout,
        layer=layer,
        **arguments,
    )


@published
def rmat(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    coordinates: bool = True,
    pair_channels: int = 32,
    farthest: int = 4,
    radial: int = 32,
    cutoff: float = 20.0,
    readout: Sequence[str] = ("attention",),
    **arguments: Any,
) -> GraphTransformer:
    """Make R-MAT (Relative Molecule Attention Transformer), with relative embeddings of bonds, hops and distances.

    The embeddings are added to keys and values, and the score has global terms.

    All layers share one network that embeds pairs, and each layer has one linear map of the embedding to keys and one
    to values; the model of the paper has two networks in every layer. The readout is attention pooling. The model has
    no dummy node, unlike the model of the paper.

    Source: Maziarka et al. 2021 (arXiv:2110.05841).

    Args:
        coordinates: must be True: the batch must have `pos`.
        pair_channels: width of the relative embedding that all layers share.
        farthest: longest path distance with a separate code, in bonds.
        radial: number of radial functions of the distance in space.
        cutoff: cutoff of the radial functions, in Å.
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        score = RMATScore(of.heads, of.head_channels, pair_channels)
        attention = of.attention(score=score, edge_bias=False, edge_value=True)
        return GraphTransformerLayer(attention, None, of.channels, dropout=of.dropout)

    return graph_transformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[BondFeatures(bond_sizes), ShortestPathLength(farthest), BesselDistance(radial, cutoff)],
        pair_channels=pair_channels,
        local=False,
        readout=readout,
        layer=layer,
        **arguments,
    )


@published
def torchmd_net(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    coordinates: bool = True,
    channels: int = 64,
    radial: int = 32,
    cutoff: float = 5.0,
    dropout: float = 0.0,
    readout: Sequence[str] = ("sum",),
    **arguments: Any,
) -> GraphTransformer:
    """Make TorchMD-NET's equivariant transformer, whose atoms also have vectors in space that rotate with the molecule.

    Atoms attend to atoms within a cutoff. Functions of the distance multiply score and value. The layers have no bonds
    and no MLP.

    The model differs from the paper in three points: all codes of an atom are embedded, not only the element; radial
    functions and cutoff are those of PhysNet, with a polynomial in place of a cosine; and the readout pools atoms
    before the head, while the paper sums the outputs of the head over atoms.

    Source: Thölke & De Fabritiis 2022 (arXiv:2202.02541).

    Args:
        coordinates: must be True: the batch must have `pos`.
        layers: number of layers; the last layer does not update vectors.
        radial: number of radial functions of the distance.
        cutoff: largest distance, in Å, at which atoms attend to each other.
        dropout: dropout rate in the head.
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> EquivariantAttentionLayer:
        if of.attention_dropout:
            raise ValueError(f"torchmd_net has no dropout of attention weights, got {of.attention_dropout}")
        return EquivariantAttentionLayer(channels, of.heads, radial + 1, of.last)

    around = NeighbourAtomTypes(ExpNormDistance(radial, cutoff), atom_sizes[0], channels)
    return graph_transformer(
        out_channels,
        atom_sizes,
        encodings=[around, ExpNormDistance(radial, cutoff), PairUnitVector(cutoff)],
        channels=channels,
        pair_channels=None,
        dropout=dropout,
        local=False,
        readout=readout,
        edges=DistanceCutoffEdges(cutoff),
        layer=layer,
        **arguments,
    )


@published
def transformer_m(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    coordinates: bool = False,
    channels: int = 64,
    pair_channels: int = 32,
    farthest: int = 20,
    path: int = 5,
    gaussians: int = 64,
    cutoff: float = 10.0,
    modes: Sequence[float] = (0.2, 0.5, 0.3),
    readout: Sequence[str] = (),
    **arguments: Any,
) -> GraphTransformer:
    """Make Transformer-M: Graphormer with a channel for the graph and, given coordinates, one for distances in space.

    Molecules without coordinates use the graph channel alone. Molecules with coordinates use both channels; in
    training, they use one channel or both, at random. Both channels give a bias per head that all layers share. The
    second training task of the paper, the prediction of added noise, is left out.

    Source: Luo et al. 2022 (arXiv:2210.01765); the channel of the graph, Ying et al. 2021 (arXiv:2106.05234).

    Args:
        coordinates: whether the model has a space channel; the batch must then have `pos`, NaN where unknown.
        pair_channels: width of the pairs before the bias of each head.
        farthest: longest path distance with a separate code, in bonds.
        path: number of bonds of a path that have separate features.
        gaussians: number of learned Gaussians of the distance, with a scale and shift for each pair of elements.
        cutoff: initial centre of the last Gaussian, in Å.
        modes: probabilities, in training, that a molecule with coordinates uses the graph channel alone, the space
            channel alone, or both.
        readout: pooling of the atoms in addition to the virtual node; by default none.
        arguments: further arguments of `graph_transformer`, by name.
    """
    flat = [NodeDegree(), ShortestPathLength(farthest), ShortestPathBonds(bond_sizes[0], path, farthest)]
    distance = GaussianDistance(gaussians, cutoff, learned=True, pair_types=atom_sizes[0])
    space = [TransformerM3DEncoding(distance)] if coordinates else []
    return with_biases(
        out_channels,
        atom_sizes=atom_sizes,
        bond_sizes=bond_sizes,
        encodings=[TransformerMPairEncoding(flat, space, channels, pair_channels, modes)],
        channels=channels,
        readout=readout,
        **arguments,
    )
