"""Features of a store's atoms and pairs that are the same in every epoch, worked out once and cut like the atoms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.data.store import MoleculeStore

_AT_ONCE = 512  # molecules that are worked out together

Found = tuple[Tensor | None, Tensor | None]


class Kept(NamedTuple):
    r"""Features of all molecules of a store, molecule by molecule.

    Integers from 0 to 255 are kept as bytes.

    Attributes:
        atoms: by name, `[N, *]`.
        pairs: by name, `[\sum_m n_m^2, *]`, receiver-major.
        pair_ptr: int64 `[M + 1]`; molecule m has the pairs `pair_ptr[m]` to `pair_ptr[m + 1]`.
    """

    atoms: dict[str, Tensor]
    pairs: dict[str, Tensor]
    pair_ptr: Tensor

    def cut(self, atom: Tensor, pair: Tensor) -> dict[str, Found]:
        """By name, what is kept of some atoms and pairs; integers as int64."""
        names = self.atoms.keys() | self.pairs.keys()
        return {name: (_rows(self.atoms.get(name), atom), _rows(self.pairs.get(name), pair)) for name in sorted(names)}


def keep(
    store: MoleculeStore,
    features: Callable[[Batch, Sequence[str]], dict[str, Found]],
    names: Sequence[str],
    device: torch.device,
    room: int,
    needed: Sequence[str] = (),
) -> Kept:
    """Work features out for every molecule, and keep those there is room for.

    Args:
        store: the molecules; where it lives, the features are worked out.
        features: of a batch, by name, of atoms `[n, *]` and of pairs `[num_pairs, *]`, either may be None.
        names: which features, the more worthwhile first.
        device: where they are kept.
        room: bytes that may be taken.
        needed: features that are kept even where there is no room.
    """
    rows = torch.arange(len(store), device=store.device)
    sizes = store.sizes
    pair_ptr = torch.cat([sizes.new_zeros(1), sizes.square().cumsum(0)])
    share = len(store) / max(1, min(len(store), _AT_ONCE))
    taken, chosen = 0, []
    for name, found in features(store.batch(rows[:_AT_ONCE]), names).items():
        bytes_ = sum(_small(x).nbytes for x in found if x is not None) * share
        if name in needed or taken + bytes_ <= room:
            taken, chosen = taken + bytes_, [*chosen, name]
    parts = [features(store.batch(some), chosen) for some in rows.split(_AT_ONCE)]

    def joined(level: int) -> dict[str, Tensor]:
        kinds = {name: [part[name][level] for part in parts] for name in chosen}
        there = {name: kind for name, kind in kinds.items() if kind and kind[0] is not None}
        return {name: _small(torch.cat(kind)).to(device) for name, kind in there.items()}

    return Kept(joined(0), joined(1), pair_ptr.to(device))


def _small(values: Tensor) -> Tensor:
    """Integers as bytes, where they are."""
    if values.is_floating_point() or values.numel() == 0 or values.min() < 0 or values.max() > 255:
        return values
    return values.to(torch.uint8)


def _rows(values: Tensor | None, rows: Tensor) -> Tensor | None:
    if values is None:
        return None
    return values[rows] if values.is_floating_point() else values[rows].long()
