"""The Lightning data module: batches of training and validation molecules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from pytorch_lightning import LightningDataModule
from torch import Tensor, nn

from gtx.data import CapacitySampler, CapacityStore, FixedFeatures, MoleculeStore, PairBudgetSampler, keep
from gtx.tasks import Task
from gtx.training.settings import TrainSettings

if TYPE_CHECKING:
    from gtx.dataset import DataSettings


# --- How much memory there is.


def free_memory(device: torch.device) -> int:
    """Bytes that can be had on the device; where a system does not say, plenty."""
    if device.type == "cuda":
        torch.cuda.empty_cache()  # what is cached for tensors to come is free
        return torch.cuda.mem_get_info(device)[0]
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.exists() else []
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return available[0] if available else 2**40


# --- Batches cut out of a store, for Lightning.


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

    Training batches are drawn anew each epoch, by seed and epoch; their number varies a little, so the Trainer is set
    to ask for them anew (`reload_dataloaders_every_n_epochs=1`). Every rank gets the same number. `trainer.predict`
    gets the test rows, in their order.

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
        before_batches: called once, before the first training batches are drawn, and so before the number of steps is
            known; it may lower the budget.
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
        self.before_batches: Callable[[], None] | None = None

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
        self.trainer.reload_dataloaders_every_n_epochs = 1  # or every epoch would have the batches of the first
        device = self.trainer.strategy.root_device
        model = self.trainer.lightning_module.model
        kept = [kept_features(model, part, device) for part in (self.train, self.val)] if self.constant else []
        self.train, self.val = self.train.to(device), self.val.to(device)
        self.test = self.test and self.test.to(device)
        if self.constant:
            parts = zip((self.train, self.val), kept, strict=True)
            self.train, self.val = (CapacityStore(part, features, self.seed) for part, features in parts)

    def train_dataloader(self) -> Iterable[Any]:
        self._call_before_batches()
        sampler = self.sampler(self.train, shuffle=True)
        sampler.set_epoch(self.trainer.current_epoch)
        return self._loader(self.train, list(sampler))

    def val_dataloader(self) -> Iterable[Any]:
        return self._loader(self.val, list(self.sampler(self.val, shuffle=False)))

    def test_dataloader(self) -> Iterable[Any]:
        return self._loader(self.test, list(self.sampler(self.test, shuffle=False)))

    def predict_dataloader(self) -> Iterable[Any]:
        pairs = self.test.sizes.double().square().cumsum(0)
        counts = (pairs // self.budget).unique_consecutive(return_counts=True)[1].tolist()
        return self._loader(self.test, list(torch.arange(len(self.test)).split(counts)))

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

    def _call_before_batches(self) -> None:
        call, self.before_batches = self.before_batches, None
        if call is not None:
            call()

    def _loader(self, examples: Any, indices: list[Tensor]) -> Batches:
        if isinstance(examples, CapacityStore):
            there = torch.cat(indices).to(examples.device).split([len(index) for index in indices])  # one copy for all
            return Batches(lambda index: index, list(there))
        return Batches(examples.batch, indices)


def kept_features(model: nn.Module, examples: MoleculeStore, device: torch.device) -> FixedFeatures | None:
    """Compute a model's fixed encodings for these molecules, as far as the device has room for them."""
    if not model.fixed or len(examples) == 0:
        return None
    needed = [name for name, needs in model.fixed.items() if needs]
    room = min(free_memory(device), free_memory(examples.device)) // 4
    return keep(examples, model.fixed_features, list(model.fixed), device, room, needed)


class OnDisk(ABC):
    """Training molecules that are not held in memory, which bring batches of their own.

    Attributes:
        sample: some thousands of them, drawn at random.
    """

    sample: MoleculeStore

    @abstractmethod
    def portions(self) -> Iterator[MoleculeStore]:
        """All molecules, some at a time."""

    @abstractmethod
    def data(self, task: Task, val: MoleculeStore, settings: TrainSettings, seed: int = 0) -> MoleculeData:
        """Batches of them, and of validation molecules, for Lightning."""
