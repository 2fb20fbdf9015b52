"""GRIT: graph inductive biases without message passing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.attention import VectorScore
from gtx.encodings import Bonds, RandomWalk
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import without_coordinates
from gtx.nn import DegreeScaler, EdgeAttention, EdgeUpdate, GraphTransformerLayer


@without_coordinates
def grit(
    out_channels: int,
    *,
    bond_sizes: Sequence[int],
    channels: int = 64,
    layers: int = 4,
    heads: int = 8,
    dropout: float = 0.1,
    steps: int = 16,
    **arguments: Any,
) -> GraphTransformer:
    """GRIT: a vector per pair and head from query, key and edge state, which scores, is summed and becomes the new edge
    state; random-walk probabilities of pairs; a scaler of the log-degree; post-norm.

    Norms are over channels, where the paper has batch norms: so a molecule does not see its batch-mates. The scaler
    stands after the heads are merged, where the authors' code has it before.

    Source: Ma et al. 2023 (arXiv:2305.17589).

    Args:
        channels: width of nodes and edge states.
        layers: number of layers; the last has no use for new edge states.
        steps: steps of the random walks.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """

    def layer(i: int) -> GraphTransformerLayer:
        attention = EdgeAttention(
            channels,
            head_width(channels, heads),
            heads,
            edge_dim=channels,
            score=VectorScore(heads, head_width(channels, heads), channels),
            edge_bias=False,
            edge_value="state",
            project=True,
        )
        update = None
        if i < layers - 1:
            update = EdgeUpdate(channels, attention.state_width, dropout=dropout, norm_first=False)
        return GraphTransformerLayer(
            attention,
            None,
            channels,
            dropout=dropout,
            norm_first=False,
            edge_update=update,
            scaler=DegreeScaler(channels),
        )

    return GraphTransformer(
        out_channels,
        bond_sizes=bond_sizes,
        encodings=[Bonds(bond_sizes), RandomWalk(steps)],
        channels=channels,
        layers=layers,
        pair_channels=channels,
        pair_mlp=False,
        dropout=dropout,
        local=False,
        norm_first=False,
        layer=layer,
        **arguments,
    )
