"""Training molecules that stay on disk, of which a window at a time is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor

from gtx.data import MoleculeStore

PARTS = ("train", "val", "test")
WINDOW = 8
"""Shards whose molecules are shuffled together, and held in memory."""


@dataclass(frozen=True)
class Labelled:
    """A shard of a store, and what a run says of its molecules.

    Attributes:
        molecules: the file with the molecules.
        labels: the file with their `y`, and where there are any `bounds` and `weights`, as `MoleculeStore` has them;
            and `part`, uint8 `[m]`, the number in `PARTS`, or more for none of them.
        train: how many of them train.
    """

    molecules: Path
    labels: Path
    train: int = 0

    def part(self, name: str) -> Tensor:
        """Which molecules are of a part, int64 `[n]`."""
        return (load_file(self.labels)["part"] == PARTS.index(name)).nonzero().flatten()

    def store(self, index: Tensor) -> MoleculeStore:
        """Some molecules of the shard, read from disk, with their labels."""
        labels = {name: tensor[index] for name, tensor in load_file(self.labels).items() if name != "part"}
        return replace(MoleculeStore.open(self.molecules).subset(index), **labels)


@dataclass(frozen=True)
class MoleculesOnDisk:
    """Training molecules of a store on disk.

    Attributes:
        shards: the files; those without training molecules are left out.
        sample: some thousands of the molecules, drawn at random.
    """

    shards: Sequence[Labelled]
    sample: MoleculeStore

    @cached_property
    def num_graphs(self) -> int:
        """M, how many molecules train."""
        return sum(shard.train for shard in self.shards)

    def __len__(self) -> int:
        return self.num_graphs

    def portions(self) -> Iterator[MoleculeStore]:
        """All molecules, a shard at a time."""
        return (shard.store(shard.part("train")) for shard in self.shards)

    def windows(self, seed: int) -> list[Window]:
        """All shards in a random order, `WINDOW` at a time."""
        order = np.random.default_rng(seed).permutation(len(self.shards)).tolist()
        starts = range(0, len(order), WINDOW)
        return [Window([self.shards[i] for i in order[start : start + WINDOW]]) for start in starts]


@dataclass(frozen=True)
class Window:
    """Shards whose training molecules are shuffled together; they are numbered through."""

    shards: Sequence[Labelled]

    @property
    def sizes(self) -> Tensor:
        """int64 `[n]`: atoms of each molecule."""
        return torch.cat([MoleculeStore.open(s.molecules).sizes[s.part("train")] for s in self.shards])

    def store(self, index: Tensor) -> MoleculeStore:
        """The molecules `index`, int64 `[k]`, ascending; no others are read."""
        parts, first = [], 0
        for shard in self.shards:
            own = index[(index >= first) & (index < first + shard.train)] - first
            parts.append(shard.store(shard.part("train")[own]))
            first += shard.train
        return MoleculeStore.join(parts)
