"""Batches cut out of a store, for Lightning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import torch
from pytorch_lightning import LightningDataModule
from torch import Tensor

from gtx.data import CapacitySampler, MoleculeStore, PairBudgetSampler, cut_to_capacity, fitting_capacity
from gtx.graph import Capacity
from gtx.tasks import Task
from gtx.training.settings import TrainSettings

if TYPE_CHECKING:
    from gtx.dataset import DataSettings


class Batches:
    """The batches of one epoch. A batch is index arithmetic on tensors, so no DataLoader and no workers are needed."""

    def __init__(self, cut: Callable[[Tensor], Any], indices: list[Tensor]) -> None:
        self.cut, self.indices = cut, indices

    def __iter__(self) -> Iterator[Any]:
        return map(self.cut, self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class MoleculeData(LightningDataModule):
    """Training, validation and test molecules, held on the device they are used on.

    Training batches are drawn anew each epoch, by seed and epoch; their number varies a little, so the Trainer must
    ask for them anew (`reload_dataloaders_every_n_epochs=1`). Every rank gets the same number.

    Args:
        task: what is learned, fitted.
        train: training molecules, targets in their own units.
        val, test: the same of others; either may be empty.
        settings: the pair budget and its like.
        seed: of this member.

    Attributes:
        train, val, test: what batches are cut out of, see `Task.examples`.
        truth: the validation and test molecules with targets in their own units.
        budget: pairs of a batch; as the settings say, or less where memory is short (see `ForecastFirst`).
        constant: batches of training and validation have constant shapes, and the loaders yield which molecules
            they hold, int64 on the device, to be `cut` in the step itself (see `gtx.training.capture`).
    """

    def __init__(
        self,
        task: Task,
        train: MoleculeStore,
        val: MoleculeStore,
        test: MoleculeStore | None = None,
        settings: TrainSettings | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.task, self.settings, self.seed = task, settings or TrainSettings(), seed
        self.truth = {"val": val, "test": test}
        self.train, self.val = task.examples(train), task.examples(val)
        self.test = None if test is None else task.examples(test)
        self.budget = self.settings.batch_pairs
        self.constant = False
        self._capacities: dict[tuple[int, int], Capacity] = {}

    @classmethod
    def from_table(cls, data: DataSettings, settings: TrainSettings | None = None) -> Self:
        """Read a table, divide its rows, and learn of the training rows what the task needs.

        Args:
            data: which table and columns, how rows are divided, and the task.
            settings: of batches.

        Raises:
            InputError: the table or the targets cannot be used.
        """
        from gtx.dataset import load

        dataset = load(data)
        train, val, test = (dataset.store.subset(dataset.split[part]) for part in ("train", "val", "test"))
        return cls(dataset.task.fitted(train), train, val, test, settings)

    def setup(self, stage: str) -> None:
        device = self.trainer.strategy.root_device
        self.train, self.val = self.train.to(device), self.val.to(device)
        self.test = self.test and self.test.to(device)

    def train_dataloader(self) -> Iterable[Any]:
        sampler = self.sampler(self.train, shuffle=True)
        sampler.set_epoch(self.trainer.current_epoch)
        return self._loader(self.train, list(sampler))

    def val_dataloader(self) -> Iterable[Any]:
        return self._loader(self.val, list(self.sampler(self.val, shuffle=False)))

    def test_dataloader(self) -> Iterable[Any]:
        return self._loader(self.test, list(self.sampler(self.test, shuffle=False)))

    def cut(self, examples: Any, index: Tensor) -> Any:
        """One batch."""
        if self.constant:
            return cut_to_capacity(examples, index, self._capacity(examples))
        return examples.batch(index)

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return batch  # the store is there already

    def sampler(self, store: Any, shuffle: bool) -> PairBudgetSampler | CapacitySampler:
        """The batches of one epoch of these molecules."""
        options = {"seed": self.seed, "rank": self.trainer.global_rank, "replicas": self.trainer.world_size}
        if self.constant:
            bonds = store.bond_ptr.diff()
            return CapacitySampler(store.sizes, bonds, self._capacity(store), shuffle=shuffle, **options)
        return PairBudgetSampler(
            store.sizes,
            self.budget,
            max_molecules=self.settings.molecules_per_batch(len(self.train)),
            shuffle=shuffle,
            jitter=self.settings.jitter,
            **options,
        )

    def _loader(self, examples: Any, indices: list[Tensor]) -> Iterable[Any]:
        if self.constant and indices:
            rows = torch.stack(indices).to(examples.device)  # all of an epoch at once
            return Batches(lambda index: index, list(rows))
        return Batches(partial(self.cut, examples), indices)

    def _capacity(self, store: MoleculeStore) -> Capacity:
        """Of the batches of a store, for the budget there is: found once."""
        name = (store.atoms.data_ptr(), self.budget)
        if name not in self._capacities:
            sizes, bonds = store.sizes.cpu(), store.bond_ptr.diff().cpu()
            most = max(1, int(self.budget / float(sizes.square().float().mean())))
            molecules = min(self.settings.molecules_per_batch(len(self.train)), most)
            self._capacities[name] = fitting_capacity(sizes, bonds, molecules, self.seed)
        return self._capacities[name]
