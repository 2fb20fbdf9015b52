"""The Molecule Attention Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.attention import MoleculeBlend
from gtx.encodings import PairDistance
from gtx.models.graph_transformer import GraphTransformer
from gtx.nn import EdgeAttention, GraphTransformerLayer


def mat(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    channels: int = 64,
    heads: int = 8,
    dropout: float = 0.1,
    blend: Sequence[float] = (1 / 3, 1 / 3, 1 / 3),
    learned: bool = False,
    kernel: str = "softmax",
    readout: Sequence[str] = ("mean",),
    **arguments: Any,
) -> GraphTransformer:
    """MAT: attention blended, after the softmax, with the matrices of distances in space and of bonds.

    The readout is a mean over atoms. The paper's dummy node is left out.

    Source: Maziarka et al. 2020 (arXiv:2002.08264).

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        channels: width of the nodes.
        heads: attention heads.
        dropout: on branches, in training.
        blend: weights of attention, distance and adjacency.
        learned: learn them.
        kernel: of the distance, "softmax" or "exp".
        readout: how atoms are pooled.
        arguments: anything else `GraphTransformer` takes, by name.
    """

    def layer(i: int) -> GraphTransformerLayer:
        normaliser = MoleculeBlend(blend, learned, kernel)
        attention = EdgeAttention(
            channels, channels // heads, heads, edge_dim=3, normaliser=normaliser, edge_bias=False, project=True
        )
        return GraphTransformerLayer(attention, None, channels, channels, dropout)

    return GraphTransformer(
        out_channels,
        atom_sizes,
        bond_sizes,
        encodings=[PairDistance()],
        channels=channels,
        heads=heads,
        pair_channels=None,
        dropout=dropout,
        local=False,
        readout=readout,
        layer=layer,
        **arguments,
    )
