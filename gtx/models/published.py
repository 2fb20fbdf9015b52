"""Published models by name: attention over all pairs of atoms, over some pairs, and in space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from gtx.attention import (
    ClippedDotScore,
    DistanceAdjacencyBlend,
    EdgeModulatedDotScore,
    GatedSoftmax,
    GATScore,
    GATv2Score,
    GRITScore,
    HeadGate,
    RMATScore,
    ScaledDotScore,
)
from gtx.encodings import (
    BesselDistance,
    BondFeatures,
    ExpNormDistance,
    GaussianDistance,
    MATDistanceAndAdjacency,
    NeighbourAtomTypes,
    NodeDegree,
    PairUnitVector,
    RandomWalkProbabilities,
    ShortestPathBonds,
    ShortestPathLength,
    TransformerM3DEncoding,
)
from gtx.graph import BondEdges, DistanceCutoffEdges, ExpanderEdges
from gtx.models.assembly import LayerSettings, graph_transformer, published
from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import (
    BondMessagePassing,
    EdgeStateUpdate,
    EquivariantAttentionLayer,
    GPSLayer,
    GraphTransformerLayer,
    LearnedDegreeScaling,
    TransformerMPairEncoding,
    TripletAttention,
)

# --- Attention over all pairs of atoms: Transformer, Graphormer, GPS, GRIT, EGT and TGT.


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
    return graph_transformer(
        out_channels,
        encodings=[RandomWalkProbabilities(steps, pairs=False)],
        norm_first=False,
        local=False,
        layer=lambda of: of.layer(hidden=4 * of.channels, norm_first=False),
        **arguments,
    )


def with_biases(out_channels: int, heads: int = 8, readout: Sequence[str] = (), **arguments: Any) -> GraphTransformer:
    """Make a model whose pair features are the biases of the scores, one per head, shared by all layers.

    The MLP of a layer has the width of the nodes, and the readout is the state of a virtual node.
    """
    return graph_transformer(
        out_channels,
        heads=heads,
        pair_channels=heads,
        pair_mlp=False,
        local=False,
        readout=readout,
        virtual_nodes=1,
        layer=lambda of: of.layer(hidden=of.channels, edge_bias=nn.Identity()),
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


# --- Attention over some pairs: GAT, GATv2, GaAN, Exphormer, and TokenGT with bonds as tokens.


@published
def gat(out_channels: int, **arguments: Any) -> GraphTransformer:
    r"""Make GAT (graph attention network): additive attention along the bonds.

    The scores are \(\mathrm{LeakyReLU}(a \cdot [W v_r \,\|\, W v_s])\).

    Bond types are not used, and the heads are merged by W_o. As in a Transformer, each layer also has residual
    connections, norms and an MLP.

    Source: Veličković et al. 2018 (arXiv:1710.10903).

    Args:
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        return of.layer(score=GATScore(of.heads, of.head_channels), projections="shared")

    return _over_bonds(layer, out_channels, **arguments)


@published
def gatv2(
    out_channels: int, *, bond_sizes: Sequence[int], pair_channels: int = 32, **arguments: Any
) -> GraphTransformer:
    r"""Make GATv2: additive attention along the bonds, whose ranking of the senders depends on the receiver.

    The scores are \(a \cdot \mathrm{LeakyReLU}(W [v_r \,\|\, v_s \,\|\, e_{rs}])\).

    The edge feature \(e_{rs}\) is the embedding of the bond. As in a Transformer, each layer also has residual
    connections, norms and an MLP.

    Source: Brody et al. 2022 (arXiv:2105.14491).

    Args:
        pair_channels: width of the embedding of the bonds.
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        score = GATv2Score(of.heads, of.head_channels)
        return of.layer(score=score, projections="key_value", edge_bias=False, edge_key=True)

    arguments |= {"bond_sizes": bond_sizes, "encodings": [BondFeatures(bond_sizes)]}
    return _over_bonds(layer, out_channels, pair_channels=pair_channels, pair_mlp=False, **arguments)


@published
def gaan(out_channels: int, **arguments: Any) -> GraphTransformer:
    r"""Make GaAN (Gated Attention Network): dot-product attention along the bonds, with a gate on each head.

    Dot products are not scaled, and a LeakyReLU is applied to the values.

    The last layer of the paper reads \([v_r \,\|\, \text{heads}]\); in gtx, a residual connection adds \(v_r\), as in a
    Transformer.

    Source: Zhang et al. 2018 (arXiv:1803.07294).

    Args:
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        gate = HeadGate(of.channels, of.heads, of.channels)
        return of.layer(score=ScaledDotScore(1.0), value_activation=nn.LeakyReLU(0.1), gate=gate)

    return _over_bonds(layer, out_channels, **arguments)


def _over_bonds(
    layer: Callable[[LayerSettings], GraphTransformerLayer], out_channels: int, edge_list: bool = True, **arguments: Any
) -> GraphTransformer:
    """Make a model whose atoms attend to their neighbours and themselves; few edges, so they are written out."""
    return graph_transformer(
        out_channels, local=False, edges=BondEdges(), layer=layer, edge_list=edge_list, **arguments
    )


@published
def exphormer(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    pair_channels: int = 32,
    steps: int = 16,
    degree: int = 4,
    seed: int = 0,
    virtual_nodes: int = 1,
    readout: Sequence[str] = ("sum",),
    edge_list: bool = True,
    **arguments: Any,
) -> GraphTransformer:
    """Make Exphormer, a GPS model with sparse attention along bonds, an expander graph, and edges to virtual nodes.

    An embedding of the kind of edge (a bond with its type, an edge of the expander graph, or an edge of a virtual node)
    multiplies query and key. The expander graph is drawn over kinds of atoms (`gtx.graph.ExpanderEdges`), so that the
    numbering of the atoms has no effect. Layer norms replace batch norms, as in `gps`.

    Source: Shirzad et al. 2023 (arXiv:2303.06147).

    Args:
        pair_channels: width of the edge features.
        steps: steps of the random walks on the atoms.
        degree: degree of the expander graph, even.
        seed: seed of the expander graph.
        virtual_nodes: number of virtual nodes, whose states are concatenated to the readout.
        arguments: further arguments of `graph_transformer`, by name.
    """

    def layer(of: LayerSettings) -> GPSLayer:
        score = EdgeModulatedDotScore(of.heads, of.head_channels, pair_channels, clip=5.0)
        return gps_layer(of, score=score, edge_bias=False)

    return graph_transformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[BondFeatures(bond_sizes), RandomWalkProbabilities(steps, pairs=False)],
        pair_channels=pair_channels,
        pair_mlp=False,
        norm_first=False,
        readout=readout,
        edges=BondEdges(loops=False) | ExpanderEdges(degree, seed),
        virtual_nodes=virtual_nodes,
        layer=layer,
        edge_list=edge_list,
        **arguments,
    )


@published
def tokengt(out_channels: int, *, readout: Sequence[str] = (), **arguments: Any) -> GraphTransformer:
    """Make TokenGT (Tokenized Graph Transformer): atoms and bonds are tokens, and all tokens attend to each other.

    The readout is the state of a token for the whole molecule.

    A bias in the score of each head, shared by all layers, depends on whether two tokens share an atom. The bias
    replaces the random orthonormal identifiers of the paper (for the reason, see `gtx.nn.AddBondNodes`). A bond is one
    token, not two.

    Source: Kim et al. 2022 (arXiv:2207.02505).

    Args:
        readout: pooling of the atoms in addition to the token of the molecule; by default none.
        arguments: further arguments of `graph_transformer`, by name.
    """
    return with_biases(out_channels, readout=readout, bond_tokens=True, **arguments)


# --- Models that read coordinates: MAT, R-MAT, TorchMD-NET and Transformer-M.


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
        blended = DistanceAdjacencyBlend(blend, learned, kernel)
        return of.layer(hidden=of.channels, normaliser=blended, edge_bias=False)

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
        return of.layer(score=score, edge_bias=False, edge_value=True)

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
