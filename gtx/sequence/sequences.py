"""Sequences of any lengths, end to end: no padding, hence nothing to mask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

START = 0
"""The token of every vocabulary that is read before the first of a sequence."""
END = 1
"""The token of every vocabulary that is written after the last of a sequence."""


@dataclass(frozen=True)
class Sequences:
    """B sequences with N items in all.

    Attributes:
        items: numbers of tokens, int64 `[N]`, or one vector each, `[N, *]`.
        ptr: int64 `[B + 1]`; sequence b has the items `ptr[b]` to `ptr[b + 1]`.
    """

    items: Tensor
    ptr: Tensor

    @classmethod
    def of(cls, sequences: Iterable[Sequence[int]]) -> Sequences:
        """Of lists of tokens."""
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

    def batch(self, index: Tensor) -> Sequences:
        """The same as `subset`: a model reads sequences as they are."""
        return self.subset(index)

    def subset(self, index: Tensor) -> Sequences:
        """The sequences `index` (int64 `[b]`), in that order."""
        index = torch.as_tensor(index, device=self.ptr.device)
        sizes = self.sizes[index]
        ptr = _offsets(sizes)
        shift = torch.repeat_interleave(self.ptr[index] - ptr[:-1], sizes)
        return Sequences(self.items[torch.arange(len(shift), device=shift.device) + shift], ptr)

    def teacher_forced(self) -> tuple[Sequences, Tensor]:
        """Teacher forcing: after start, y_1, ..., y_n a model is to write y_1, ..., y_n, end.

        Returns:
            What is read, and int64 `[N + B]`, what is to be written after each item of it.
        """
        at = torch.arange(len(self.items), device=self.ptr.device) + self.owner
        total = len(self.items) + len(self)
        read, write = self.items.new_full((total,), START), self.items.new_full((total,), END)
        read[at + 1], write[at] = self.items, self.items
        return Sequences(read, self.ptr + torch.arange(len(self) + 1, device=self.ptr.device)), write

    def padded(self) -> tuple[Tensor, Tensor]:
        """The items side by side, `[B, longest, *]` with zeros behind, and where there is none, bool `[B, longest]`."""
        longest = int(self.sizes.max()) if len(self) else 0
        out = self.items.new_zeros(len(self), longest, *self.items.shape[1:])
        out = out.index_put((self.owner, self.place), self.items)
        return out, torch.arange(longest, device=self.ptr.device) >= self.sizes[:, None]

    def lists(self) -> list[list[int]]:
        """Each sequence as a list."""
        return [part.tolist() for part in self.items.split(self.sizes.tolist())]

    def to(self, device: torch.device | str) -> Sequences:
        """The same sequences on `device`."""
        return replace(self, items=self.items.to(device), ptr=self.ptr.to(device))


def _offsets(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
