"""Both sides of a reaction: a batch of each, encodings of each, and what surrounds the atoms that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.encodings.atoms_and_bonds import AtomTypes, BondFeatures
from gtx.encodings.encoding import CategoricalFeatureSpec, ContinuousFeatureSpec, Encoding, Feature
from gtx.graph import CompleteGraph
from gtx.graph.edge_selectors import hash_atom_environments, mix_bits

Sides = Sequence[Sequence[int]]
"""Numbers of codes of the atom columns and of the bond columns of a reaction."""


def sizes_of_sides(
    atom_sizes: Sequence[int] | None, bond_sizes: Sequence[int] | None, reaction: bool = False
) -> Sides | None:
    """Return the numbers of codes of a reaction; None for molecules."""
    return [list(atom_sizes or ()), list(bond_sizes or ())] if reaction else None


def split_sides(data: Data, atom_sizes: Sequence[int], bond_sizes: Sequence[int]) -> tuple[Data, Data]:
    """Split a batch of reactions into one of the first side and one of the second, with the same atoms.

    Each side has its own bonds, and the codes of its own half of the columns. In the second half, the last code of a
    column, "same", stands for the code of the first half; the code before it, "absent", for what is not there.

    Args:
        data: batch with codes `x` `[N, 2A]`, `edge_index` `[2, E]` and `edge_attr` `[E, 2F]`.
        atom_sizes, bond_sizes: number of codes of each column.

    Raises:
        ValueError: the batch has other columns.
    """
    atoms, bonds = (_halves(codes, sizes) for codes, sizes in ((data.x, atom_sizes), (data.edge_attr, bond_sizes)))
    absent = bond_sizes[0] - 2
    sides = []
    for x, codes in zip(atoms, bonds, strict=True):
        there = codes[:, 0] != absent
        side = copy(data)
        side.x, side.edge_index, side.edge_attr = x, data.edge_index[:, there], codes[there]
        sides.append(side)
    return sides[0], sides[1]


def _halves(codes: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
    if codes.shape[1] != len(sizes) or len(sizes) % 2:
        raise ValueError(f"expected codes of two sides, in {len(sizes)} columns, got {list(codes.shape)}")
    first, second = codes.tensor_split(2, 1)
    same = torch.tensor(sizes[: first.shape[1]], device=codes.device) - 1
    return first, torch.where(second == same, first, second)


# --- Each side by an encoding of molecules.


class BothSides(Encoding):
    """Encoding of both sides of a reaction by an encoding of molecules: the features of one side, then of the other.

    Args:
        encoding: encoding of a molecule, with codes of half the columns.
        atom_sizes, bond_sizes: number of codes of each column of a reaction, see `split_sides`.

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


def _twice(feature: Feature | None) -> Feature | None:
    if isinstance(feature, CategoricalFeatureSpec):
        return CategoricalFeatureSpec(feature.sizes * 2)
    return feature and ContinuousFeatureSpec(2 * feature.channels)


def encode_sides(
    encodings: Sequence[Encoding], atom_sizes: Sequence[int], bond_sizes: Sequence[int], reaction: bool
) -> list[Encoding]:
    """Return encodings of molecules as they are; for reactions, those that read other than codes once for each side."""
    if not reaction:
        return list(encodings)
    return [
        encoding if isinstance(encoding, AtomTypes | BondFeatures) else BothSides(encoding, atom_sizes, bond_sizes)
        for encoding in encodings
    ]


# --- Substructures that a reaction destroys or forms.

UNCHANGED = 0
"""Label of an environment that is the same on both sides of a reaction."""


def label_environments(batch: Data, schemes: Sequence[Mapping[str, Any]]) -> list[Tensor]:
    r"""Label the circular environment of each atom of a batch: int64 `[radius + 1, N]` for each scheme.

    A scheme with `sides` has two such tensors: environments \(l_i^r\) of the first side that are others on the second,
    which the reaction destroys, and those that it forms; where both are the same, `UNCHANGED`. Their counts are a
    difference fingerprint (Schneider et al. 2015, https://doi.org/10.1021/ci5006614), atom by atom.

    Args:
        batch: molecules or reactions.
        schemes: arguments of `hash_atom_environments` by name, and `sides`: the numbers of codes of atom and of bond
            columns, as `split_sides` takes them.
    """
    labels = []
    for number, scheme in enumerate(schemes):
        own = {name: value for name, value in scheme.items() if name != "sides"}
        if "sides" not in scheme:
            labels.append(hash_atom_environments(batch, **own) + number)
            continue
        before, after = (hash_atom_environments(side, **own) + number for side in split_sides(batch, *scheme["sides"]))
        same = before == after
        labels += [before.masked_fill(same, UNCHANGED), mix_bits(after + 1).masked_fill(same, UNCHANGED)]
    return labels


def list_environments(batch: Data, schemes: Sequence[Mapping[str, Any]]) -> tuple[Tensor, Tensor]:
    """List the labels of `label_environments`, and the molecule of each, without those that a reaction leaves
    unchanged.
    """
    labels = torch.cat(label_environments(batch, schemes))
    owner = batch.batch.expand_as(labels)
    changed = labels != UNCHANGED
    return labels[changed], owner[changed]


def usual_schemes(sides: Sides | None) -> list[list[dict[str, Any]]]:
    """Return the two lists of schemes between which a kernel chooses, see `gtx.models.kernel_ridge`."""
    elements: dict[str, Any] = {"atoms": [0], "bonds": [0]}
    if sides is None:
        return [[{"radius": 2, **elements}], [{"radius": 3, **elements}, {"radius": 1}]]
    types = {"atoms": [0], "bonds": [0, len(sides[1]) // 2]}
    return [[{"radius": r, **types}, {"radius": 1}, {"radius": r, **elements, "sides": sides}] for r in (2, 3)]
