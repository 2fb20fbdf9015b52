"""Published models whose attention spans some pairs: GAT, GATv2, GaAN, Exphormer, and TokenGT with bonds as tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from gtx.attention import EdgeModulatedDotScore, GATScore, GATv2Score, HeadGate, ScaledDotScore
from gtx.encodings import BondFeatures, RandomWalkProbabilities
from gtx.graph import BondEdges, ExpanderEdges
from gtx.models.all_pairs import gps_layer, with_biases
from gtx.models.assembly import LayerSettings, graph_transformer, published
from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import EdgeAttention, GPSLayer, GraphTransformerLayer


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

    def attention(of: LayerSettings) -> EdgeAttention:
        return of.attention(score=GATScore(of.heads, of.head_channels), projections="shared")

    return _over_bonds(attention, out_channels, **arguments)


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

    def attention(of: LayerSettings) -> EdgeAttention:
        score = GATv2Score(of.heads, of.head_channels)
        return of.attention(score=score, projections="key_value", edge_bias=False, edge_key=True)

    arguments |= {"bond_sizes": bond_sizes, "encodings": [BondFeatures(bond_sizes)]}
    return _over_bonds(attention, out_channels, pair_channels=pair_channels, pair_mlp=False, **arguments)


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

    def attention(of: LayerSettings) -> EdgeAttention:
        gate = HeadGate(of.channels, of.heads, of.channels)
        return of.attention(score=ScaledDotScore(1.0), value_activation=nn.LeakyReLU(0.1), gate=gate)

    return _over_bonds(attention, out_channels, **arguments)


def _over_bonds(
    attention: Callable[[LayerSettings], EdgeAttention], out_channels: int, edge_list: bool = True, **arguments: Any
) -> GraphTransformer:
    """Make a model whose atoms attend to their neighbours and themselves; few edges, so they are written out."""

    def layer(of: LayerSettings) -> GraphTransformerLayer:
        return GraphTransformerLayer(attention(of), None, of.channels, dropout=of.dropout)

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
