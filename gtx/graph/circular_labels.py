"""What surrounds each atom, as one number: no numbering of the atoms changes it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

_SPREAD, _CHAIN, _ROUND = 0x5851F42D4C957F2D, 0x14057B7EF767814F, 0x2545F4914F6CDD1D  # any odd numbers would do


def circular_labels(
    batch: Data, radius: int, atoms: Sequence[int] | None = None, bonds: Sequence[int] | None = None
) -> Tensor:
    """What lies within 0, 1, ... bonds of each atom, like numbers for like ones: the \\(l_i^r\\) of `Substructures`.

    Args:
        batch: molecules, with `x` `[N, A]`, `edge_index` `[2, E]` and `edge_attr` `[E, F]`.
        radius: the largest, in bonds.
        atoms: columns of `batch.x` that make the first label; default all.
        bonds: columns of `batch.edge_attr`; default all.

    Returns:
        int64 `[radius + 1, N]`.
    """
    sender, receiver = batch.edge_index
    label, bond = _label(batch.x, atoms), _label(batch.edge_attr, bonds)
    labels = [label]
    for _ in range(radius):
        around = torch.zeros_like(label).index_add_(0, receiver, mixed(label[sender] * _CHAIN + bond))
        label = mixed(label * _ROUND + around)
        labels.append(label)
    return torch.stack(labels)


def _label(codes: Tensor, columns: Sequence[int] | None) -> Tensor:
    """One number for each row of codes: `[n, C]` to int64 `[n]`, of some columns or, by default, all."""
    label = torch.zeros(len(codes), dtype=torch.long, device=codes.device)
    for column in range(codes.shape[1]) if columns is None else columns:
        label = mixed(label * _CHAIN + codes[:, column].long() + 1)
    return label


def mixed(label: Tensor) -> Tensor:
    """A step of a multiplicative hash: like labels to unlike ones."""
    label = (label ^ (label >> 29)) * _SPREAD
    return label ^ (label >> 32)
