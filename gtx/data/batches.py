"""Which molecules go into one batch: as many as fit a budget of atom pairs, those of like size together."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import Sampler


class PairBudgetSampler(Sampler[Tensor]):
    r"""Batches whose padded atom pairs stay within a budget.

    A batch of B molecules with at most n atoms each costs \(B n^2\) pairs, which is what attention over all pairs must
    do. Molecules are ordered by a jittered size, filled into batches until the budget is reached, and the batches are
    shuffled. A molecule larger than the budget is a batch of its own.

    Args:
        sizes: atoms per molecule, int64 `[M]`.
        budget: padded pairs per batch.
        max_molecules: no batch holds more molecules than this (small molecules would otherwise fill huge batches).
        shuffle: if False, sizes descend, no jitter: for evaluation.
        jitter: standard deviation of the noise on log size. 0 keeps like sizes strictly together; large values make
            batches random. Drawn anew each epoch.
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
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        """Draw the batches of this epoch from now on (Lightning calls it)."""
        self.epoch = epoch

    def batches(self) -> list[Tensor]:
        """All batches of the epoch, over all ranks: int64 index tensors that together hold each molecule once."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        key = self.sizes.float().log()
        if self.shuffle:
            key = key + self.jitter * torch.randn(len(key), generator=generator)
        order = torch.argsort(key, descending=True, stable=True)
        batches, start, largest = [], 0, 0
        for stop, size in enumerate(self.sizes[order].tolist()):
            largest = max(largest, size)
            count = stop - start + 1
            if count > 1 and (count * largest**2 > self.budget or count > self.max_molecules):
                batches.append(order[start:stop])
                start, largest = stop, size
        if len(order):
            batches.append(order[start:])
        if self.shuffle:
            batches = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        return batches

    def __iter__(self) -> Iterator[Tensor]:
        batches = self.batches()
        for i in range(self.rank, len(self) * self.replicas, self.replicas):
            yield batches[i % len(batches)]

    def __len__(self) -> int:
        return -(-len(self.batches()) // self.replicas)
