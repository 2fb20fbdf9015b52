"""Batches cut out of a store, for Lightning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import torch
from pytorch_lightning import LightningDataModule
from torch import Tensor

from gtx.data import CapacitySampler, CapacityStore, Kept, MoleculeStore, PairBudgetSampler, keep
from gtx.tasks import Task
from gtx.training.memory import free_memory
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

    @property
    def trial(self) -> Any:
        """Training examples that tell what training will take."""
        return self.train

    def setup(self, stage: str) -> None:
        device = self.trainer.strategy.root_device
        kept = [self._kept(part, device) for part in (self.train, self.val)] if self.constant else []
        self.train, self.val = self.train.to(device), self.val.to(device)
        self.test = self.test and self.test.to(device)
        if self.constant:
            parts = zip((self.train, self.val), kept, strict=True)
            self.train, self.val = (CapacityStore(part, features, self.seed) for part, features in parts)

    def train_dataloader(self) -> Iterable[Any]:
        sampler = self.sampler(self.train, shuffle=True)
        sampler.set_epoch(self.trainer.current_epoch)
        return self._loader(self.train, list(sampler))

    def val_dataloader(self) -> Iterable[Any]:
        return self._loader(self.val, list(self.sampler(self.val, shuffle=False)))

    def test_dataloader(self) -> Iterable[Any]:
        return self._loader(self.test, list(self.sampler(self.test, shuffle=False)))

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return batch  # the store is there already

    def sampler(self, examples: Any, shuffle: bool) -> PairBudgetSampler | CapacitySampler:
        """The batches of one epoch of these molecules."""
        molecules = self.settings.molecules_per_batch(len(self.train))
        options = {"shuffle": shuffle, "seed": self.seed}
        options |= {"rank": self.trainer.global_rank, "replicas": self.trainer.world_size}
        if isinstance(examples, CapacityStore):
            affordable = int(self.budget / float(examples.sizes.square().float().mean()))
            return examples.sampler(max(1, min(molecules, affordable)), **options)
        jitter = self.settings.jitter
        return PairBudgetSampler(examples.sizes, self.budget, max_molecules=molecules, jitter=jitter, **options)

    def _loader(self, examples: Any, indices: list[Tensor]) -> Batches:
        if isinstance(examples, CapacityStore):
            return Batches(lambda index: index, list(torch.stack(indices).to(examples.device)))  # all of them at once
        return Batches(examples.batch, indices)

    def _kept(self, examples: MoleculeStore, device: torch.device) -> Kept | None:
        """What the model's fixed encodings yield for these molecules, as far as there is room on the device."""
        model = self.trainer.lightning_module.model
        needed = [name for name, needs in model.fixed.items() if needs]
        if not model.fixed or len(examples) == 0:
            return None
        room = min(free_memory(device), free_memory(examples.device)) // 4
        return keep(examples, model.fixed_features, list(model.fixed), device, room, needed)
