"""Published models whose attention spans some pairs: GAT, GATv2, GaAN, Exphormer, and TokenGT with bonds as tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from gtx.attention import GATScore, GATv2Score, HeadGate, ModulatedDot, ScaledDot
from gtx.encodings import BondFeatures, RandomWalkProbabilities
from gtx.graph import BondedPairs, ExpanderEdges
from gtx.models.graph_transformer import GraphTransformer, head_width, published
from gtx.nn import BondMessagePassing, EdgeAttention, GPSLayer, GraphTransformerLayer

# --- Graph attention over the bonds: GAT, GATv2 and GaAN.


@published
def gat(out_channels: int, *, channels: int = 64, heads: int = 8, **arguments: Any) -> GraphTransformer:
    r"""Make GAT (graph attention network) along the bonds, with scores \(\mathrm{LeakyReLU}(a \cdot [W v_r \,\|\, W
    v_s])\).

    Bond types are not used, and the heads are merged by W_o. As in a Transformer, each layer also has residual
    connections, norms and an MLP.

    Source: Veličković et al. 2018 (arXiv:1710.10903).

    Args:
        arguments: further arguments of `GraphTransformer`, by name.
    """

    def parts() -> dict[str, Any]:
        return {"score": GATScore(heads, head_width(channels, heads)), "projections": "shared"}

    return _over_bonds(parts, out_channels, channels=channels, heads=heads, **arguments)


@published
def gatv2(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    pair_channels: int = 32,
    **arguments: Any,
) -> GraphTransformer:
    r"""Make GATv2 along the bonds, with scores \(a \cdot \mathrm{LeakyReLU}(W [v_r \,\|\, v_s \,\|\, e_{rs}])\).

    The edge feature \(e_{rs}\) is the embedding of the bond. As in a Transformer, each layer also has residual
    connections, norms and an MLP.

    Source: Brody et al. 2022 (arXiv:2105.14491).

    Args:
        pair_channels: width of the embedding of the bonds.
        arguments: further arguments of `GraphTransformer`, by name.
    """

    def parts() -> dict[str, Any]:
        score = GATv2Score(heads, head_width(channels, heads))
        edges = {"edge_dim": pair_channels, "edge_bias": False, "edge_key": True}
        return {"score": score, "projections": "key_value", **edges}

    arguments |= {"bond_sizes": bond_sizes, "encodings": [BondFeatures(bond_sizes)]}
    arguments |= {"pair_channels": pair_channels, "pair_mlp": False}
    return _over_bonds(parts, out_channels, channels=channels, heads=heads, **arguments)


@published
def gaan(out_channels: int, *, channels: int = 64, heads: int = 8, **arguments: Any) -> GraphTransformer:
    r"""Make GaAN (Gated Attention Network): dot-product attention along the bonds, with a gate on each head.

    Dot products are not scaled, and a LeakyReLU is applied to the values.

    The last layer of the paper reads \([v_r \,\|\, \text{heads}]\); in gtx, a residual connection adds \(v_r\), as in a
    Transformer.

    Source: Zhang et al. 2018 (arXiv:1803.07294).

    Args:
        arguments: further arguments of `GraphTransformer`, by name.
    """

    def parts() -> dict[str, Any]:
        gate = HeadGate(channels, heads, channels)
        return {"score": ScaledDot(1.0), "value_activation": nn.LeakyReLU(0.1), "gate": gate}

    return _over_bonds(parts, out_channels, channels=channels, heads=heads, **arguments)


def _over_bonds(
    parts: Callable[[], dict[str, Any]],
    out_channels: int,
    *,
    channels: int,
    heads: int,
    dropout: float = 0.1,
    edge_list: bool = True,
    **arguments: Any,
) -> GraphTransformer:
    """Make a model whose atoms attend to their neighbours and themselves; few edges, so they are written out."""

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(channels, head_width(channels, heads), heads, project=True, **parts())
        return GraphTransformerLayer(attention, None, channels, dropout=dropout)

    return GraphTransformer(
        out_channels,
        channels=channels,
        dropout=dropout,
        local=False,
        edges=BondedPairs(),
        layer=layer,
        edge_list=edge_list,
        **arguments,
    )


# --- Exphormer: sparse attention over the bonds, a random regular graph and virtual nodes.


@published
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
        arguments: further arguments of `GraphTransformer`, by name.
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
        return GPSLayer(attention, BondMessagePassing(channels), channels, dropout=dropout)

    return GraphTransformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[BondFeatures(bond_sizes), RandomWalkProbabilities(steps, pairs=False)],
        channels=channels,
        pair_channels=pair_channels,
        pair_mlp=False,
        dropout=dropout,
        norm_first=False,
        readout=readout,
        edges=BondedPairs(loops=False) | ExpanderEdges(degree, seed),
        virtual_nodes=virtual_nodes,
        layer=layer,
        edge_list=edge_list,
        **arguments,
    )


# --- TokenGT: atoms and bonds as tokens of a plain Transformer.


@published
def tokengt(
    out_channels: int,
    *,
    channels: int = 64,
    heads: int = 8,
    dropout: float = 0.1,
    readout: Sequence[str] = (),
    **arguments: Any,
) -> GraphTransformer:
    """Make TokenGT (Tokenized Graph Transformer): atoms and bonds are tokens, and all tokens attend to each other.

    The readout is the state of a token for the whole molecule.

    A bias in the score of each head, shared by all layers, depends on whether two tokens share an atom. The bias
    replaces the random orthonormal identifiers of the paper (for the reason, see `gtx.nn.AddBondNodes`). A bond is one
    token, not two.

    Source: Kim et al. 2022 (arXiv:2207.02505).

    Args:
        readout: pooling of the atoms in addition to the token of the molecule; by default none.
        arguments: further arguments of `GraphTransformer`, by name.
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
