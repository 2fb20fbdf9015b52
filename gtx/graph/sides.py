"""Both sides of a reaction: a batch of each, and what surrounds the atoms that change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from gtx.graph.edge_selectors import hash_atom_environments, mix_bits


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
