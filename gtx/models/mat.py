"""The Molecule Attention Transformer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.attention import MoleculeBlend
from gtx.encodings import PairDistance
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import needs_coordinates
from gtx.nn import EdgeAttention, GraphTransformerLayer


@needs_coordinates
def mat(
    out_channels: int,
    *,
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

    The readout is a mean over atoms. The adjacency enters as it is, as in the paper's equation; the authors' code
    divides its rows by their sums. The paper's dummy node is left out.

    Source: Maziarka et al. 2020 (arXiv:2002.08264).

    Args:
        blend: weights of attention, distance and adjacency.
        learned: learn them.
        kernel: of the distance, "softmax" or "exp".
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GraphTransformerLayer:
        normaliser = MoleculeBlend(blend, learned, kernel)
        attention = EdgeAttention(
            channels,
            head_width(channels, heads),
            heads,
            edge_dim=3,
            normaliser=normaliser,
            edge_bias=False,
            project=True,
        )
        return GraphTransformerLayer(attention, None, channels, channels, dropout)

    return GraphTransformer(
        out_channels,
        encodings=[PairDistance()],
        channels=channels,
        pair_channels=None,
        dropout=dropout,
        local=False,
        readout=readout,
        layer=layer,
        **arguments,
    )
