"""The equivariant transformer of TorchMD-NET."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.encodings import Direction, ExpNormDistance, NeighbourTypes
from gtx.graph import WithinDistance
from gtx.models.graph_transformer import GraphTransformer
from gtx.models.parts import head_width
from gtx.models.space import needs_coordinates
from gtx.nn import VectorLayer


@needs_coordinates
def torchmd_net(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    channels: int = 64,
    layers: int = 4,
    heads: int = 8,
    radial: int = 32,
    cutoff: float = 5.0,
    dropout: float = 0.0,
    readout: Sequence[str] = ("sum",),
    **arguments: Any,
) -> GraphTransformer:
    """The equivariant transformer: atoms have vectors in space, which turn with the molecule, beside their channels;
    attention within a cutoff, with filters of the distance in score and value; no bonds, no MLP.

    All codes of an atom are embedded, where the paper has its element alone. Radial functions and cutoff are PhysNet's,
    with a polynomial where the paper has a cosine. The readout pools atoms before the head, which the paper applies to
    each atom and sums.

    Source: Thölke & De Fabritiis 2022 (arXiv:2202.02541).

    Args:
        layers: number of layers; the last has no use for new vectors.
        radial: functions of the distance.
        cutoff: Å; atoms farther apart do not attend to each other.
        dropout: in the head.
        arguments: as `GraphTransformer` takes them, by name; so are those not named here.
    """
    head_width(channels, heads)

    def layer(i: int) -> VectorLayer:
        return VectorLayer(channels, heads, radial + 1, last=i == layers - 1)

    around = NeighbourTypes(ExpNormDistance(radial, cutoff), atom_sizes[0], channels)
    return GraphTransformer(
        out_channels,
        atom_sizes,
        encodings=[around, ExpNormDistance(radial, cutoff), Direction(cutoff)],
        channels=channels,
        layers=layers,
        pair_channels=None,
        dropout=dropout,
        local=False,
        readout=readout,
        edges=WithinDistance(cutoff),
        layer=layer,
        **arguments,
    )
