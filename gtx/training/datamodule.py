"""Batches cut out of a store, for Lightning."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from pytorch_lightning import LightningDataModule
from torch import Tensor
from torch_geometric.data import Batch

from gtx.data import MoleculeStore, PairBudgetSampler
from gtx.training.settings import TrainSettings


class Batches:
    """The batches of one epoch. A batch is index arithmetic on tensors, so no DataLoader and no workers are needed."""

    def __init__(self, store: MoleculeStore, indices: list[Tensor]) -> None:
        self.store, self.indices = store, indices

    def __iter__(self) -> Iterator[Batch]:
        return map(self.store.batch, self.indices)

    def __len__(self) -> int:
        return len(self.indices)


class StoreDataModule(LightningDataModule):
    """Training and validation molecules, held on the device they are used on.

    Training batches are drawn anew each epoch, by seed and epoch; their number varies a little, so the Trainer must
    ask for them anew (`reload_dataloaders_every_n_epochs=1`). Every rank gets the same number.

    Args:
        train: training molecules, targets in scaled units.
        val: validation molecules; may be empty.
        settings: the pair budget and its like.
        seed: of this member.

    Attributes:
        budget: pairs of a batch; as the settings say, or less where memory is short (see `ForecastFirst`).
    """

    def __init__(self, train: MoleculeStore, val: MoleculeStore, settings: TrainSettings, seed: int = 0) -> None:
        super().__init__()
        self.train, self.val, self.settings, self.seed = train, val, settings, seed
        self.budget = settings.batch_pairs

    def setup(self, stage: str) -> None:
        device = self.trainer.strategy.root_device
        self.train, self.val = self.train.to(device), self.val.to(device)

    def train_dataloader(self) -> Batches:
        sampler = self.sampler(self.train, shuffle=True)
        sampler.set_epoch(self.trainer.current_epoch)
        return Batches(self.train, list(sampler))

    def val_dataloader(self) -> Batches:
        return Batches(self.val, list(self.sampler(self.val, shuffle=False)))

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return batch  # the store is there already

    def sampler(self, store: MoleculeStore, shuffle: bool) -> PairBudgetSampler:
        """The batches of one epoch of these molecules."""
        return PairBudgetSampler(
            store.sizes,
            self.budget,
            max_molecules=self.settings.molecules_per_batch(len(self.train)),
            shuffle=shuffle,
            jitter=self.settings.jitter,
            seed=self.seed,
            rank=self.trainer.global_rank,
            replicas=self.trainer.world_size,
        )
