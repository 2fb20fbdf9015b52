"""Which molecules go into one batch of constant shape: as many as fit its capacity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self

import numpy as np
import torch
from torch import Tensor

from gtx.data.batches import EpochSampler
from gtx.data.store import MoleculeStore
from gtx.graph.buckets import alike
from gtx.graph.capacity import Capacity

_BUCKETS = 4
_DRAWN = 64  # batches that are drawn to learn what chance brings together


class CapacitySampler(EpochSampler):
    """Batches that fill a capacity and never exceed it, drawn at random.

    The shuffled molecules are taken in turn until one does not fit: too many molecules, atoms, pairs or bonds, or too
    many large molecules for the buckets. One that is only too large for the places left waits for the next batch.

    Args:
        sizes: atoms per molecule, int64 `[M]`.
        bonds: directed bonds per molecule, int64 `[M]`.
        capacity: of a batch, see `fitting`.
        shuffle: if False, every epoch has the same batches.
        seed: with the epoch's number it decides everything.
        rank, replicas: as in `PairBudgetSampler`.

    Raises:
        ValueError: a molecule fits no batch.
    """

    def __init__(
        self,
        sizes: Tensor,
        bonds: Tensor,
        capacity: Capacity,
        *,
        shuffle: bool = True,
        seed: int = 0,
        rank: int = 0,
        replicas: int = 1,
    ) -> None:
        self.sizes, self.bonds = sizes.cpu().numpy(), bonds.cpu().numpy()
        self.capacity, self.shuffle, self.seed = capacity, shuffle, seed
        self.rank, self.replicas = rank, replicas
        self._room = np.array([capacity.molecules, capacity.atoms - 1, capacity.pairs - 1, capacity.bonds])
        self._costs = _costs(self.sizes, self.bonds)
        largest = capacity.buckets[0][1]
        wrong = np.flatnonzero((self._costs > self._room).any(1) | (self.sizes > largest))
        if len(wrong):
            i = wrong[0]
            raise ValueError(
                f"expected molecules of at most {largest} atoms and {capacity.bonds} directed bonds, as in {capacity}, "
                f"but molecule {i} has {self.sizes[i]} and {self.bonds[i]}"
            )

    @classmethod
    def fitting(cls, store: MoleculeStore, molecules: int, seed: int = 0, **options: object) -> Self:
        """A sampler whose batches hold about so many molecules of a store: the pairs of as many average ones."""
        sizes, bonds = store.sizes.cpu(), store.bond_ptr.diff().cpu()
        return cls(sizes, bonds, fitting_capacity(sizes, bonds, molecules, seed), seed=seed, **options)

    def batches(self) -> list[Tensor]:
        """All batches of the epoch, over all ranks: int64 `[capacity.molecules]` each, the largest molecule first, -1
        in empty places; together they hold each molecule once."""
        random = np.random.default_rng((self.seed, self.epoch if self.shuffle else 0))
        return [torch.from_numpy(batch) for batch in self._filled(random.permutation(len(self.sizes)))]

    def fullness(self) -> float:
        """The share of the pairs of the epoch's batches that are a molecule's."""
        return float(np.square(self.sizes).sum() / (len(self.batches()) * self.capacity.pairs))

    def work(self, batch: Tensor) -> int:
        """The pairs of a batch, which all have the same."""
        return self.capacity.pairs

    def _filled(self, order: np.ndarray) -> Iterator[np.ndarray]:
        places = np.cumsum([count for count, _ in self.capacity.buckets])
        steps = list(zip(places[:-1], (size for _, size in self.capacity.buckets[1:]), strict=True))
        while len(order):
            ahead = order[: self.capacity.molecules]
            fit = int((self._costs[ahead].cumsum(0) <= self._room).all(1).sum())
            taken = ahead[:fit]
            here = np.ones(fit, bool)
            for most, size in steps:  # at most so many may be larger than the bucket that follows
                here &= (self.sizes[taken] <= size) | (np.cumsum(here & (self.sizes[taken] > size)) <= most)
            order = np.concatenate([taken[~here], order[fit:]])
            taken = taken[here]
            batch = np.full(self.capacity.molecules, -1)
            batch[: len(taken)] = taken[np.argsort(-self.sizes[taken], kind="stable")]
            yield batch


def fitting_capacity(sizes: Tensor, bonds: Tensor, molecules: int, seed: int = 0) -> Capacity:
    """A capacity that random batches of about so many molecules fill.

    It has the pairs of as many average molecules and one more, and at least those of the largest; as many that the
    batches of an epoch are alike, the last as full as the first. Of molecules, atoms, bonds and
    large molecules it has room for what `_DRAWN` batches of so many pairs, drawn at random, need at the most.

    Args:
        sizes: atoms per molecule, int64 `[M]`, M at least 1.
        bonds: directed bonds per molecule, int64 `[M]`.
        molecules: how many a batch holds on average.
        seed: of the draws.
    """
    if len(sizes) == 0:
        raise ValueError("expected at least one molecule, got none")
    sizes, costs = sizes.numpy(), _costs(sizes.numpy(), bonds.numpy())
    molecules = len(sizes) / -(-len(sizes) // molecules)
    pairs = max(int(np.ceil(costs[:, 2].mean() * (molecules + 1))), int(costs[:, 2].max()))
    random = np.random.default_rng(seed)
    most, profile = costs.max(0), np.zeros(0, int)
    for _ in range(_DRAWN):
        drawn = random.choice(len(sizes), min(len(sizes), 2 * int(molecules) + 2), replace=False)
        drawn = drawn[: max(1, int((costs[drawn, 2].cumsum() <= pairs).sum()))]
        most = np.maximum(most, costs[drawn].sum(0))
        largest = np.sort(sizes[drawn])[::-1]
        wider = np.zeros(max(len(profile), len(largest)), int)
        wider[: len(profile)] = profile
        wider[: len(largest)] = np.maximum(wider[: len(largest)], largest)
        profile = wider
    profile[0] = sizes.max()
    buckets = tuple((len(graphs), int(size)) for graphs, size in reversed(alike(profile.tolist(), _BUCKETS)))
    return Capacity(int(most[1]) + 1, pairs + 1, int(most[3]), buckets)


def _costs(sizes: np.ndarray, bonds: np.ndarray) -> np.ndarray:
    """What each molecule takes of a capacity: molecules, atoms, pairs, bonds; int64 `[M, 4]`."""
    return np.stack([np.ones_like(sizes), sizes, sizes**2, bonds], 1)
