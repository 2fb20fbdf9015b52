"""Graph attention over the bonds: GAT, GATv2 and GaAN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from gtx.attention import GAT, GATv2, HeadGate, ScaledDot
from gtx.encodings import Bonds
from gtx.graph import BondedPairs
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import without_coordinates
from gtx.nn import EdgeAttention, GraphTransformerLayer


@without_coordinates
def gat(out_channels: int, *, channels: int = 64, heads: int = 8, **arguments: Any) -> GraphTransformer:
    r"""Graph attention along the bonds and to itself, with scores \(\mathrm{LeakyReLU}(a \cdot [W v_r \,\|\, W v_s])\).

    Bond types do not enter; heads are merged by W_o. Residuals, norms and an MLP stand around the attention as in a
    Transformer.

    Source: Veličković et al. 2018 (arXiv:1710.10903).

    Args:
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def parts() -> dict[str, Any]:
        return {"score": GAT(heads, head_width(channels, heads)), "projections": "shared"}

    return _over_bonds(parts, out_channels, channels=channels, heads=heads, **arguments)


@without_coordinates
def gatv2(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    pair_channels: int = 32,
    **arguments: Any,
) -> GraphTransformer:
    r"""Along the bonds and to itself, with scores \(a \cdot \mathrm{LeakyReLU}(W [v_r \,\|\, v_s \,\|\, e_{rs}])\).

    The edge feature \(e_{rs}\) is the bond. Residuals, norms and an MLP stand around the attention as in a Transformer.

    Source: Brody et al. 2022 (arXiv:2105.14491).

    Args:
        pair_channels: width of the bonds' embedding.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def parts() -> dict[str, Any]:
        score = GATv2(heads, head_width(channels, heads))
        edges = {"edge_dim": pair_channels, "edge_bias": False, "edge_key": True}
        return {"score": score, "projections": "key_value", **edges}

    bonds = {"bond_sizes": bond_sizes, "encodings": [Bonds(bond_sizes)]}
    pairs = {"pair_channels": pair_channels, "pair_mlp": False}
    return _over_bonds(parts, out_channels, channels=channels, heads=heads, **bonds, **pairs, **arguments)


@without_coordinates
def gaan(out_channels: int, *, channels: int = 64, heads: int = 8, **arguments: Any) -> GraphTransformer:
    r"""GaAN: unscaled dot products along the bonds, values through a LeakyReLU, and a gate on each head of each atom.

    The paper's last layer reads \([v_r \,\|\, \text{heads}]\); here the residual brings \(v_r\), as in a Transformer.

    Source: Zhang et al. 2018 (arXiv:1803.07294).

    Args:
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
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
    """A model whose atoms attend to their neighbours and themselves; few edges, so they are written out."""

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
