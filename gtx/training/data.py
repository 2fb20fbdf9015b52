"""Lightning data module: batches of training and validation molecules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from pytorch_lightning import LightningDataModule, Trainer
from torch import Tensor

from gtx.base.errors import InputError
from gtx.data import MoleculeStore, PairBudgetSampler
from gtx.data.batches import (
    ConstantShapeSampler,
    ConstantShapeStore,
    PrecomputedEncodings,
    batch_with_encodings,
    precompute_encodings,
)
from gtx.data.feature_columns import NO_FEATURES, FeatureColumns
from gtx.nn import MoleculeModel
from gtx.settings.training import TrainSettings
from gtx.tasks import Task

if TYPE_CHECKING:
    from gtx.molecules import Featuriser


# --- How much memory there is.


def free_memory(device: torch.device) -> int:
    """Return the free memory of a device, in bytes; 1 TiB on a system that does not report it."""
    if device.type == "cuda":
        torch.cuda.empty_cache()  # memory that torch reserved for later tensors is free
        return torch.cuda.mem_get_info(device)[0]
    meminfo = Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.exists() else []
    available = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    return available[0] if available else 2**40


# --- Batches cut out of a store, for Lightning.


class Batches:
    """Batches of one epoch. A batch is index arithmetic on tensors, so no DataLoader and no workers are needed."""

    def __init__(self, cut: Callable[[Tensor], Any], indices: list[Tensor]) -> None:
        self.cut = cut
        self.indices = indices

    def __iter__(self) -> Iterator[Any]:
        return map(self.cut, self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class MoleculeDataModule(LightningDataModule):
    """Lightning data module with the training, validation and test molecules, on the device of the model.

    Training batches are drawn anew in each epoch, from the seed and the number of the epoch. The number of batches
    varies a little, so the Trainer reloads the batches in each epoch (`reload_dataloaders_every_n_epochs=1`). Every
    process gets the same number of batches. `trainer.predict` predicts the test rows, in order.

    Args:
        task: the fitted task.
        train, val, test: training, validation and test molecules, with targets in their own units; `val` and `test` may
            be empty.
        settings: training settings, such as the pairs of a batch.
        seed: seed of this network; by default that of the settings.

    Attributes:
        train, val, test: the molecules, with targets in their own units.
        featuriser, features: settings with which `from_table` read the molecules, and their feature columns.
        examples: examples of each part, from which batches are made, with targets scaled for the loss (see
            `Task.examples`).
        fixed: encodings of the training and validation molecules that are computed once, by part, see `ROOM`.
        shaped: batches of constant shape of the training and validation molecules, by part, if `constant`.
        budget: largest number of pairs in a batch, from the settings, or less if memory is short (see
            `gtx.training.fitting.BatchTrial`).
        constant: whether training and validation batches have constant shape. The loaders then yield the indices of the
            molecules of a batch, int64 on the device, and the training step makes the batch (see
            `gtx.training.capture`).
        before_batches: function that is called once, before the first training batches are drawn, and may lower the
            budget.
    """

    def __init__(
        self,
        task: Task,
        train: MoleculeStore,
        val: MoleculeStore,
        test: MoleculeStore | None = None,
        settings: TrainSettings | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.task = task
        self.settings: TrainSettings = settings or TrainSettings()
        self.seed: int = self.settings.seed if seed is None else seed
        self.train, self.val = train, val
        self.test: MoleculeStore = val.subset(torch.arange(0)) if test is None else test
        parts = {"train": train, "val": val, "test": self.test}
        self.examples: dict[str, Any] = {part: task.objective.examples(own) for part, own in parts.items()}
        self.fixed: dict[str, PrecomputedEncodings | None] = {}
        self.shaped: dict[str, ConstantShapeStore] = {}
        self.featuriser: Featuriser | None = None
        self.features: FeatureColumns = NO_FEATURES
        self.budget: int = self.settings.batch_pairs
        self.constant = False
        self.before_batches: Callable[[], None] | None = None

    @classmethod
    def from_table(
        cls, table: str | Path, *targets: str, settings: TrainSettings | None = None, **options: Any
    ) -> Self:
        """Read a table, divide its rows, and fit the task to the training rows.

        Args:
            table: the file.
            targets: columns to predict.
            settings: training settings.
            options: further fields of `gtx.training_data.DataSettings`, such as `split="scaffold"` or `task`.

        Raises:
            InputError: the table or the targets cannot be used.
        """
        from gtx.training_data import DataSettings, load_training_table

        data = DataSettings(str(table), targets, **options)
        dataset = load_training_table(data)
        train, val, test = (dataset.store.subset(dataset.split[part]) for part in ("train", "val", "test"))
        module = cls(dataset.task.fit(train), train, val, test, settings)
        module.featuriser, module.features = data.featuriser, data.features
        return module

    def setup(self, stage: str) -> None:
        trainer = self._trainer
        # otherwise every epoch would have the batches of the first
        trainer.reload_dataloaders_every_n_epochs = 1  # type: ignore[attr-defined]  # set by Lightning's connector
        device = trainer.strategy.root_device
        model = getattr(trainer.lightning_module, "model", None)
        for part, own in self.examples.items():
            self.examples[part] = own.to(device)
            if stage == "fit" and part != "test":
                shown = trainer.is_global_zero and trainer.progress_bar_callback is not None
                self.fixed[part] = precomputed_encodings_of(model, own, device, self.constant, shown)
                if self.constant:
                    self.shaped[part] = ConstantShapeStore(self.examples[part], self.fixed[part], self.seed)

    def train_dataloader(self) -> Iterable[Any]:
        call, self.before_batches = self.before_batches, None
        if call is not None:
            call()
        sampler = self.sampler("train", shuffle=True)
        sampler.set_epoch(self._trainer.current_epoch)
        return self._loader("train", list(sampler))

    def val_dataloader(self) -> Iterable[Any]:
        return self._loader("val", list(self.sampler("val", shuffle=False)))

    def test_dataloader(self) -> Iterable[Any]:
        return self._loader("test", list(self.sampler("test", shuffle=False)))

    def predict_dataloader(self) -> Iterable[Any]:
        pairs = self._molecules("test").sizes.double().square().cumsum(0)
        counts = (pairs // self.budget).unique_consecutive(return_counts=True)[1].tolist()
        return self._loader("test", list(torch.arange(len(pairs)).split(counts)))

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        return batch  # the store is on the device already

    def sampler(self, part: str, shuffle: bool) -> PairBudgetSampler | ConstantShapeSampler:
        """Return the sampler of the batches of one epoch."""
        molecules, sizes = self.settings.molecules_per_batch(len(self.examples["train"])), self._molecules(part).sizes
        options: dict[str, Any] = {"shuffle": shuffle, "seed": self.seed}
        options |= {"rank": self._trainer.global_rank, "replicas": self._trainer.world_size}
        if part in self.shaped:
            affordable = int(self.budget / float(sizes.square().float().mean()))
            return self.shaped[part].sampler(max(1, min(molecules, affordable)), **options)
        options |= {"max_molecules": molecules, "jitter": self.settings.jitter}
        return PairBudgetSampler(sizes, self.budget, **options)

    @property
    def _trainer(self) -> Trainer:
        if not isinstance(self.trainer, Trainer):
            raise InputError("the data module has no Trainer yet: call trainer.fit(module, data)")
        return self.trainer

    def _molecules(self, part: str) -> Any:
        """Return the examples of a part, which is not an empty test set."""
        if part == "test" and not len(self.test):
            raise InputError("the data module has no test molecules")
        return self.examples[part]

    def _loader(self, part: str, indices: list[Tensor]) -> Batches:
        examples, fixed = self.examples[part], self.fixed.get(part)
        if part in self.shaped:
            on_device = torch.cat(indices).to(examples.device).split([len(index) for index in indices])  # one transfer
            return Batches(lambda index: index, list(on_device))
        return Batches(examples.batch if fixed is None else partial(batch_with_encodings, examples, fixed), indices)


def data_module(trainer: Trainer) -> MoleculeDataModule:
    """Return the data module of a trainer.

    Raises:
        InputError: the Trainer was given loaders instead.
    """
    data = getattr(trainer, "datamodule", None)
    if data is None:
        raise InputError(
            "the batches came from a DataLoader: TrainingModule scores rows of a gtx.training.MoleculeDataModule, "
            "expected trainer.fit(module, data) with one"
        )
    return data


ROOM = 2**29
"""Bytes of precomputed encodings beside batches of any shape. The last bits of an encoding may depend on the batch, so
that free memory, which is another when a training resumes, must not decide which encodings are precomputed."""


def precomputed_encodings_of(
    model: Any, examples: Any, device: torch.device, constant: bool, progress: bool = False
) -> PrecomputedEncodings | None:
    """Compute the fixed encodings of a model for some molecules, as far as memory allows; None if there are none.

    From batches of constant shape some encodings cannot be computed; for these, a quarter of the free memory is theirs.
    With `progress`, a bar is shown if they take more than some two seconds.
    """
    if not (isinstance(model, MoleculeModel) and isinstance(examples, MoleculeStore) and model.fixed and len(examples)):
        return None
    needed = [name for name, needs in model.fixed.items() if needs and constant]
    room = min(free_memory(device), free_memory(examples.device)) // 4 if constant else ROOM
    return precompute_encodings(examples, model.compute_encodings, list(model.fixed), device, room, needed, progress)
