"""Sequences of any lengths, end to end, and the examples to learn from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

# --- Sequences of any lengths, end to end: no padding, hence nothing to mask.

START_TOKEN = 0
"""Number of the token with which the generation of every sequence starts."""
END_TOKEN = 1
"""Number of the token that ends every generated sequence."""


@dataclass(frozen=True)
class SequenceBatch:
    """Batch of B sequences with N items in all, stored one after the other without padding.

    Attributes:
        items: token numbers, int64 `[N]`, or one vector per item, `[N, *]`.
        ptr: int64 `[B + 1]`; sequence b has the items `ptr[b]` to `ptr[b + 1]`.
    """

    items: Tensor
    ptr: Tensor

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> SequenceBatch:
        """Concatenate lists of tokens."""
        lists = list(sequences)
        items = torch.tensor([token for one in lists for token in one], dtype=torch.long)
        return cls(items, _offsets(torch.tensor([len(one) for one in lists], dtype=torch.long)))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def sizes(self) -> Tensor:
        """int64 `[B]`: items of each sequence."""
        return self.ptr.diff()

    @cached_property
    def owner(self) -> Tensor:
        """int64 `[N]`: the sequence of each item."""
        return torch.repeat_interleave(self.sizes)

    @cached_property
    def place(self) -> Tensor:
        """int64 `[N]`: the place of each item within its sequence, from 0."""
        return torch.arange(len(self.items), device=self.ptr.device) - self.ptr[self.owner]

    def batch(self, index: Tensor) -> SequenceBatch:
        """Select the sequences `index` as a batch; the same as `subset`."""
        return self.subset(index)

    def subset(self, index: Tensor) -> SequenceBatch:
        """Select the sequences `index` (int64 `[b]`), in that order."""
        index = torch.as_tensor(index, device=self.ptr.device)
        sizes = self.sizes[index]
        ptr = _offsets(sizes)
        shift = torch.repeat_interleave(self.ptr[index] - ptr[:-1], sizes)
        return SequenceBatch(self.items[torch.arange(len(shift), device=shift.device) + shift], ptr)

    def teacher_forced(self) -> tuple[SequenceBatch, Tensor]:
        """Make the input and the target of teacher forcing: start, y_1, ..., y_n and y_1, ..., y_n, end.

        Returns:
            The input, and the token to be written after each of its items, int64 `[N + B]`.
        """
        at = torch.arange(len(self.items), device=self.ptr.device) + self.owner
        total = len(self.items) + len(self)
        read, write = self.items.new_full((total,), START_TOKEN), self.items.new_full((total,), END_TOKEN)
        read[at + 1], write[at] = self.items, self.items
        return SequenceBatch(read, self.ptr + torch.arange(len(self) + 1, device=self.ptr.device)), write

    def padded(self) -> tuple[Tensor, Tensor]:
        """Pad the sequences with zeros, `[B, longest, *]`, and mark the padding, bool `[B, longest]`."""
        longest = int(self.sizes.max()) if len(self) else 0
        out = self.items.new_zeros(len(self), longest, *self.items.shape[1:])
        out = out.index_put((self.owner, self.place), self.items)
        return out, torch.arange(longest, device=self.ptr.device) >= self.sizes[:, None]

    def lists(self) -> list[list[int]]:
        """Convert each sequence to a list."""
        return [part.tolist() for part in self.items.split(self.sizes.tolist())]

    def to(self, device: torch.device | str) -> SequenceBatch:
        """Move the sequences to `device`."""
        return replace(self, items=self.items.to(device), ptr=self.ptr.to(device))


def _offsets(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


# --- Examples to learn from: sources, and the sequence to be written for each.


class Readable(Protocol):
    """Sources in a row, such as `gtx.data.MoleculeStore` or `SequenceBatch`."""

    @property
    def sizes(self) -> Tensor:
        """Atoms or tokens of each source, int64 `[M]`."""

    def __len__(self) -> int: ...

    def batch(self, index: Tensor) -> Any:
        """Select the sources `index` as a batch for a model."""

    def subset(self, index: Tensor) -> Readable:
        """Select the sources `index`."""

    def to(self, device: torch.device | str) -> Readable: ...


@dataclass(frozen=True)
class SequenceDataset:
    """Training examples of sequence generation: M inputs (molecules or sequences), each with the sequence to generate.

    Attributes:
        source: input molecules or sequences; None for a language model.
        targets: sequences to generate, without start and end.
        row: index of each example in the data set, int64 `[M]`.

    Raises:
        ValueError: not as many sources as targets.
    """

    source: Readable | Any | None
    targets: SequenceBatch
    row: Tensor

    @classmethod
    def of(cls, source: Readable | None, targets: SequenceBatch) -> SequenceDataset:
        """Make examples of sources and their targets, numbered from 0."""
        if source is not None and len(source) != len(targets):
            raise ValueError(f"expected a target for each source, got {len(source)} sources and {len(targets)} targets")
        return cls(source, targets, torch.arange(len(targets), device=targets.ptr.device))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def device(self) -> torch.device:
        return self.targets.ptr.device

    @property
    def sizes(self) -> Tensor:
        """int64 `[M]`: tokens to be read back, or atoms, whichever are more."""
        lengths = self.targets.sizes + 1
        return lengths if self.source is None else torch.maximum(lengths, self.source.sizes)

    def batch(self, index: Tensor) -> SequenceDataset:
        """Return the examples `index` (int64 `[b]`), the sources as a model reads them."""
        source = None if self.source is None else self.source.batch(index)
        return SequenceDataset(source, self.targets.batch(index), self.row[index])

    def subset(self, index: Tensor) -> SequenceDataset:
        """Return the examples `index` (int64 `[b]`) as a set of their own."""
        return SequenceDataset.of(
            None if self.source is None else self.source.subset(index), self.targets.subset(index)
        )

    def to(self, device: torch.device | str) -> SequenceDataset:
        """Move the tensors to `device`."""
        source = None if self.source is None else self.source.to(device)
        return replace(self, source=source, targets=self.targets.to(device), row=self.row.to(device))
