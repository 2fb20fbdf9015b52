"""Encodings of both sides of a reaction, by any encoding of molecules."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.atoms_and_bonds import AtomTypes, BondFeatures
from gtx.encodings.encoding import CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding, Feature
from gtx.graph import CompleteGraph
from gtx.graph.sides import split_sides


class BothSides(Encoding):
    """Encoding of both sides of a reaction by an encoding of molecules: the features of one side, then of the other.

    Args:
        encoding: encoding of a molecule, with codes of half the columns.
        atom_sizes, bond_sizes: number of codes of each column of a reaction, see `gtx.graph.sides.split_sides`.

    Raises:
        ValueError: in `forward`, codes that are not those of two sides.
    """

    def __init__(self, encoding: Encoding, atom_sizes: Sequence[int], bond_sizes: Sequence[int]) -> None:
        super().__init__()
        self.encoding = encoding
        self.atom_sizes, self.bond_sizes = tuple(atom_sizes), tuple(bond_sizes)
        self.node, self.pair = _twice(encoding.node), _twice(encoding.pair)
        self.fixed = encoding.fixed

    def forward(self, data: Data, graph: CompleteGraph) -> tuple[Tensor | None, Tensor | None]:
        first, second = (self.encoding(side, graph) for side in split_sides(data, self.atom_sizes, self.bond_sizes))
        node, pair = (
            None if one is None or other is None else torch.cat([one, other], -1)
            for one, other in zip(first, second, strict=True)
        )
        return node, pair

    def __repr__(self) -> str:
        return f"BothSides({self.encoding})"


def _twice(feature: Feature | None) -> Feature | None:
    if isinstance(feature, CategoricalFeatureSpec):
        return CategoricalFeatureSpec(feature.sizes * 2)
    return feature and ContinuousFeatureSpec(2 * feature.channels)


def of_both_sides(
    encodings: Sequence[Encoding], atom_sizes: Sequence[int], bond_sizes: Sequence[int]
) -> list[Encoding]:
    """Return encodings for reactions: those that read codes alone as they are, any other once for each side."""
    return [
        encoding if isinstance(encoding, AtomTypes | BondFeatures) else BothSides(encoding, atom_sizes, bond_sizes)
        for encoding in encodings
    ]
