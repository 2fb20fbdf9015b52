"""GPS: general, powerful, scalable graph transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.encodings import RandomWalk
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import without_coordinates
from gtx.nn import BondMessages, EdgeAttention, GPSLayer


@without_coordinates
def gps(
    out_channels: int,
    *,
    channels: int = 64,
    heads: int = 8,
    dropout: float = 0.1,
    attention_dropout: float = 0.0,
    steps: int = 16,
    readout: Sequence[str] = ("sum",),
    **arguments: Any,
) -> GraphTransformer:
    """GPS as for ZINC: GINE over the bonds and attention over all pairs in parallel, random walks on the atoms, a sum.

    Norms are over channels, where the paper has batch norms: so a molecule does not see its batch-mates.

    Source: Rampášek et al. 2022 (arXiv:2205.12454).

    Args:
        steps: steps of the random walks.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GPSLayer:
        attention = EdgeAttention(channels, head_width(channels, heads), heads, dropout=attention_dropout, project=True)
        return GPSLayer(attention, BondMessages(channels), channels, dropout=dropout)

    return GraphTransformer(
        out_channels,
        encodings=[RandomWalk(steps, pairs=False)],
        channels=channels,
        dropout=dropout,
        norm_first=False,
        readout=readout,
        layer=layer,
        **arguments,
    )
