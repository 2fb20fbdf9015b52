"""Which molecules go into one batch: as many as fit a budget of atom pairs, those of like size together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler


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
        """The number of batches of each rank."""
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
        """The pairs of a batch."""
        return int(self.sizes[batch].square().sum())
