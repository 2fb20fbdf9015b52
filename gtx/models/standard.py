"""The default model of gtx."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gtx.encodings import Bonds, Degree, GaussianDistance, RandomWalk, ShortestPath
from gtx.models.graph_transformer import GraphTransformer


def standard(
    out_channels: int,
    *,
    atom_sizes: Sequence[int],
    bond_sizes: Sequence[int],
    num_descriptors: int = 0,
    coordinates: bool = False,
    steps: int = 16,
    farthest: int = 20,
    cutoff: float = 10.0,
    **arguments: Any,
) -> GraphTransformer:
    """The default: full attention beside bond message passing; bonds, path distance, random walks, degree.

    Args:
        out_channels: predictions per molecule.
        atom_sizes: codes per atom column.
        bond_sizes: codes per bond column.
        num_descriptors: global features per molecule.
        coordinates: also encode distances in space; the batch must have `pos`.
        steps: steps of the random walks.
        farthest: longest path distance with a code of its own, bonds.
        cutoff: reach of the distance encoding, Å.
        arguments: anything else `GraphTransformer` takes, by name.
    """
    encodings = [Bonds(bond_sizes), ShortestPath(farthest), RandomWalk(steps), Degree()]
    if coordinates:
        encodings.append(GaussianDistance(cutoff=cutoff))
    return GraphTransformer(out_channels, atom_sizes, bond_sizes, num_descriptors, encodings, **arguments)
