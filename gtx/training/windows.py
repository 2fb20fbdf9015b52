"""Batches of molecules that stay on disk, a window of shards at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gtx.data import MoleculeStore, PairBudgetSampler
from gtx.dataset.on_disk import MoleculesOnDisk, Window
from gtx.tasks import Task
from gtx.training.data import MoleculeData
from gtx.training.module import spread_seed
from gtx.training.settings import TrainSettings


class WindowBatches:
    """The batches of one epoch: of each window, its molecules shuffled and cut by the budget of pairs.

    Every process that trains has batches of its own, as many as the others, and reads their molecules alone.

    Args:
        windows: in the order in which they are read.
        sampler: of molecules of these sizes, those of the window of that number.
        made: what batches are cut out of, of molecules that were read.
    """

    def __init__(
        self,
        windows: list[Window],
        sampler: Callable[[Tensor, int], PairBudgetSampler],
        made: Callable[[MoleculeStore], Any],
    ) -> None:
        self.windows, self.sampler, self.made = windows, sampler, made

    @cached_property
    def _count(self) -> int:
        return sum(len(self.sampler(window.sizes, number)) for number, window in enumerate(self.windows))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for number, window in enumerate(self.windows):
            batches = list(self.sampler(window.sizes, number))
            wanted = torch.cat(batches).unique()
            examples = self.made(window.store(wanted))
            for batch in batches:
                yield examples.batch(torch.searchsorted(wanted, batch).to(examples.device))


class DataOnDisk(MoleculeData):
    """As `MoleculeData`; the training molecules stay on disk, and validation molecules are held.

    Args:
        task: what is learned, fitted.
        train: training molecules; those that are held of them are tried before training begins.
        val: as of `MoleculeData`.
        settings: the pair budget and its like.
        seed: of this member.
    """

    def __init__(
        self, task: Task, train: MoleculesOnDisk, val: MoleculeStore, settings: TrainSettings, seed: int = 0
    ) -> None:
        super().__init__(task, train.sample, val, settings=settings, seed=seed)
        self._trial, self.train = self.train, train

    @property
    def trial(self) -> Any:
        return self._trial

    def setup(self, stage: str) -> None:
        device = self.trainer.strategy.root_device
        self._trial, self.val = self._trial.to(device), self.val.to(device)

    def train_dataloader(self) -> Iterable[Any]:
        epoch = self.trainer.current_epoch
        molecules, device = self.settings.molecules_per_batch(len(self.train)), self.val.device
        dealt = {"rank": self.trainer.global_rank, "replicas": self.trainer.world_size}

        def sampler(sizes: Tensor, number: int) -> PairBudgetSampler:
            seed, jitter = spread_seed(self.seed, epoch, number), self.settings.jitter
            return PairBudgetSampler(sizes, self.budget, max_molecules=molecules, jitter=jitter, seed=seed, **dealt)

        windows = self.train.windows(spread_seed(self.seed, epoch))
        return WindowBatches(windows, sampler, lambda store: self.task.examples(store).to(device))
