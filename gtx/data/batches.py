"""Batches within a budget of pairs, and encodings that are computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler
from torch_geometric.data import Batch

from gtx.data.store import MoleculeStore

# --- Features of a store's atoms and pairs that are the same in every epoch, computed once and sliced like the atoms.

_AT_ONCE = 512  # molecules that are worked out together

FixedValues = tuple[Tensor | None, Tensor | None]


class FixedFeatures(NamedTuple):
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

    def cut(self, atom: Tensor, pair: Tensor) -> dict[str, FixedValues]:
        """Slice the features of some atoms and pairs, by name; integers as int64."""
        names = self.atoms.keys() | self.pairs.keys()
        return {name: (_rows(self.atoms.get(name), atom), _rows(self.pairs.get(name), pair)) for name in sorted(names)}


def keep(
    store: MoleculeStore,
    features: Callable[[Batch, Sequence[str]], dict[str, FixedValues]],
    names: Sequence[str],
    device: torch.device,
    room: int,
    needed: Sequence[str] = (),
) -> FixedFeatures:
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

    return FixedFeatures(joined(0), joined(1), pair_ptr.to(device))


def _small(values: Tensor) -> Tensor:
    """Integers as bytes, where they are."""
    if values.is_floating_point() or values.numel() == 0 or values.min() < 0 or values.max() > 255:
        return values
    return values.to(torch.uint8)


def _rows(values: Tensor | None, rows: Tensor) -> Tensor | None:
    if values is None:
        return None
    return values[rows] if values.is_floating_point() else values[rows].long()


# --- Samplers: batches of molecules of similar size within a budget of atom pairs.


class EpochSampler(Sampler[Tensor]):
    """The batches of an epoch, dealt out to the processes that train together.

    Attributes:
        rank: this process's number among `replicas`; every rank gets the same number of batches (the first few are
            dealt again where they do not divide).
        replicas: number of processes.
        epoch: which is drawn.
    """

    rank = 0
    replicas = 1
    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Draw the batches of this epoch from now on (Lightning calls it)."""
        self.epoch = epoch

    def batches(self) -> list[Tensor]:
        """All batches of the epoch, over all ranks."""
        raise TypeError(f"{type(self).__name__} does not say what its batches are")

    def __iter__(self) -> Iterator[Tensor]:
        batches = self.batches()
        for i in range(self.rank, self._each(batches) * self.replicas, self.replicas):
            yield batches[i % len(batches)]

    def __len__(self) -> int:
        return self._each(self.batches())

    def _each(self, batches: list[Tensor]) -> int:
        """Return the number of batches of each rank."""
        return -(-len(batches) // self.replicas)


class PairBudgetSampler(EpochSampler):
    r"""Batches whose atom pairs stay within a budget.

    Attention over all pairs of a batch does work in \(\sum_b n_b^2\), whatever the number of molecules. Molecules are
    ordered by a jittered size, filled into batches until the budget is reached, and the batches are shuffled. A
    molecule larger than the budget is a batch of its own.

    Args:
        sizes: atoms per molecule, int64 `[M]`.
        budget: pairs per batch.
        max_molecules: no batch holds more molecules than this (small molecules would otherwise fill huge batches).
        shuffle: if False, sizes descend, no jitter: for evaluation.
        jitter: standard deviation of the noise on log size, drawn anew each epoch. 0 keeps like sizes strictly
            together, which saves padding; large values make batches random, which small sets want (see
            `gtx.training`).
        seed: with the epoch's number it decides everything.
        rank: this process's number among `replicas`; every rank gets the same number of batches (the first few are
            dealt again where they do not divide).
        replicas: number of processes.
    """

    def __init__(
        self,
        sizes: Tensor,
        budget: int,
        *,
        max_molecules: int = 1 << 30,
        shuffle: bool = True,
        jitter: float = 0.2,
        seed: int = 0,
        rank: int = 0,
        replicas: int = 1,
    ) -> None:
        if budget < 1 or max_molecules < 1:
            raise ValueError(f"expected a positive budget and max_molecules, got {budget} and {max_molecules}")
        self.sizes, self.budget, self.max_molecules = sizes.cpu(), budget, max_molecules
        self.shuffle, self.jitter, self.seed = shuffle, jitter, seed
        self.rank, self.replicas = rank, replicas

    def batches(self) -> list[Tensor]:
        """All batches of the epoch, over all ranks: int64 index tensors that together hold each molecule once."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        key = self.sizes.float().log()
        if self.shuffle:
            key = key + self.jitter * torch.randn(len(key), generator=generator)
        order = torch.argsort(key, descending=True, stable=True)
        pairs = np.concatenate([[0], self.sizes[order].square().cumsum(0).numpy()])  # before each molecule
        ends = [0]
        while ends[-1] < len(order):
            start = ends[-1]
            fit = int(np.searchsorted(pairs, pairs[start] + self.budget, "right")) - 1
            ends.append(min(max(fit, start + 1), start + self.max_molecules))
        batches = [order[start:end] for start, end in pairwise(ends)]
        if self.shuffle:
            batches = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        return batches

    def work(self, batch: Tensor) -> int:
        """Return the pairs of a batch."""
        return int(self.sizes[batch].square().sum())
