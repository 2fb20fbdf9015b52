"""Graph attention over the bonds: GAT, GATv2 and GaAN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from gtx.attention import GAT, GATv2, HeadGate, ScaledDot
from gtx.encodings import Bonds
from gtx.graph import BondedPairs
from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import EdgeAttention, GraphTransformerLayer


def gat(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    **arguments: Any,
) -> GraphTransformer:
    r"""Graph attention along the bonds and to itself, with scores \(\mathrm{LeakyReLU}(a \cdot [W v_r \,\|\, W v_s])\).

    Bond types do not enter. Residuals, norms and an MLP stand around the attention as in a Transformer.

    Source: Veličković et al. 2018 (arXiv:1710.10903).

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        channels: width of the nodes.
        heads: attention heads.
        arguments: anything else `GraphTransformer` takes, by name.
    """

    def attention() -> EdgeAttention:
        score = GAT(heads, channels // heads)
        return EdgeAttention(channels, channels // heads, heads, score=score, projections="shared", project=True)

    return _over_bonds(attention, out_channels, atom_sizes, bond_sizes, [], channels, heads, **arguments)


def gatv2(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    pair_channels: int = 32,
    **arguments: Any,
) -> GraphTransformer:
    r"""Along the bonds and to itself, with scores \(a \cdot \mathrm{LeakyReLU}(W [v_r \,\|\, v_s \,\|\, e_{rs}])\).

    The edge feature \(e_{rs}\) is the bond.
    Residuals, norms and an MLP stand around the attention as in a Transformer.

    Source: Brody et al. 2022 (arXiv:2105.14491).

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        channels: width of the nodes.
        heads: attention heads.
        pair_channels: width of the bonds' embedding.
        arguments: anything else `GraphTransformer` takes, by name.
    """

    def attention() -> EdgeAttention:
        return EdgeAttention(
            channels,
            channels // heads,
            heads,
            edge_dim=pair_channels,
            score=GATv2(heads, channels // heads),
            projections="key_value",
            edge_bias=False,
            edge_key=True,
            project=True,
        )

    encodings = [Bonds(bond_sizes)]
    arguments |= {"pair_channels": pair_channels, "pair_mlp": False}
    return _over_bonds(attention, out_channels, atom_sizes, bond_sizes, encodings, channels, heads, **arguments)


def gaan(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    **arguments: Any,
) -> GraphTransformer:
    r"""GaAN: unscaled dot products along the bonds, values through a LeakyReLU, and a gate on each head of each atom.

    The paper's last layer reads \([v_r \,\|\, \text{heads}]\); here the residual brings \(v_r\), as in a Transformer.

    Source: Zhang et al. 2018 (arXiv:1803.07294).

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        channels: width of the nodes.
        heads: attention heads.
        arguments: anything else `GraphTransformer` takes, by name.
    """

    def attention() -> EdgeAttention:
        return EdgeAttention(
            channels,
            channels // heads,
            heads,
            score=ScaledDot(1.0),
            value_activation=nn.LeakyReLU(0.1),
            gate=HeadGate(channels, heads, channels),
            project=True,
        )

    return _over_bonds(attention, out_channels, atom_sizes, bond_sizes, [], channels, heads, **arguments)


def _over_bonds(
    attention: Callable[[], EdgeAttention],
    out_channels: int,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    encodings: Sequence[Bonds],
    channels: int,
    heads: int,
    dropout: float = 0.1,
    edge_list: bool = True,
    **arguments: Any,
) -> GraphTransformer:
    """A model whose atoms attend to their neighbours and themselves; few edges, so they are written out."""

    def layer(i: int) -> GraphTransformerLayer:
        return GraphTransformerLayer(attention(), None, channels, dropout=dropout)

    return GraphTransformer(
        out_channels,
        atom_sizes,
        bond_sizes,
        encodings=encodings,
        channels=channels,
        heads=heads,
        dropout=dropout,
        local=False,
        edges=BondedPairs(),
        layer=layer,
        edge_list=edge_list,
        **arguments,
    )
