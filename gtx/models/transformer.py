"""The Transformer encoder over atoms."""

from __future__ import annotations

from typing import Any

from gtx.encodings import RandomWalk
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import without_coordinates
from gtx.nn import EdgeAttention, GraphTransformerLayer


@without_coordinates
def transformer(
    out_channels: int,
    *,
    channels: int = 64,
    heads: int = 8,
    dropout: float = 0.1,
    steps: int = 16,
    **arguments: Any,
) -> GraphTransformer:
    """The encoder of the Transformer: every atom attends to every atom by content alone, post-norm, MLP of width 4d.

    Positions in a sequence mean nothing in a molecule: random-walk probabilities of the atoms take their place.

    Source: Vaswani et al. 2017 (arXiv:1706.03762); the positions, Dwivedi et al. 2022 (arXiv:2110.07875).

    Args:
        steps: steps of the random walks.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(channels, head_width(channels, heads), heads, project=True)
        return GraphTransformerLayer(attention, None, channels, 4 * channels, dropout, norm_first=False)

    return GraphTransformer(
        out_channels,
        encodings=[RandomWalk(steps, pairs=False)],
        channels=channels,
        dropout=dropout,
        norm_first=False,
        local=False,
        layer=layer,
        **arguments,
    )
