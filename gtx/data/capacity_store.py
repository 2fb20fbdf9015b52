"""A store whose batches have constant shape."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch

from gtx.data.capacity_batch import cut_to_capacity
from gtx.data.capacity_sampler import CapacitySampler, fitting_capacity
from gtx.data.kept import Kept
from gtx.data.store import MoleculeStore


class CapacityStore:
    """Molecules, what is kept of them beside, and the capacity of their batches, chosen with the sampler.

    Args:
        store: the molecules, where batches are used.
        kept: features that were worked out before, there too.
        seed: of the random batches that the capacity is made for.
    """

    def __init__(self, store: MoleculeStore, kept: Kept | None = None, seed: int = 0) -> None:
        self.store, self.kept, self.seed = store, kept, seed
        self.per_batch, self.capacity = 0, None

    def sampler(self, molecules: int, **options: Any) -> CapacitySampler:
        """What says which molecules make a batch.

        Args:
            molecules: how many a batch holds on average.
            options: of `CapacitySampler`.
        """
        sizes, bonds = self.store.sizes.cpu(), self.store.bond_ptr.diff().cpu()
        if molecules != self.per_batch:
            self.per_batch, self.capacity = molecules, fitting_capacity(sizes, bonds, molecules, self.seed)
        return CapacitySampler(sizes, bonds, self.capacity, **options)

    def batch(self, index: Tensor) -> Batch:
        """One batch, of what the sampler says, on the store's device."""
        return cut_to_capacity(self.store, index, self.capacity, self.kept)

    @property
    def sizes(self) -> Tensor:
        return self.store.sizes

    @property
    def weights(self) -> Tensor | None:
        return self.store.weights

    @property
    def num_graphs(self) -> int:
        return len(self.store)

    @property
    def device(self) -> torch.device:
        return self.store.device

    def __len__(self) -> int:
        return len(self.store)
