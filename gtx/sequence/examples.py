"""Examples to learn from: sources, and the sequence to be written for each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from gtx.sequence.sequences import Sequences


class Readable(Protocol):
    """Sources in a row, as `gtx.data.MoleculeStore` or `Sequences` hold them.

    Attributes:
        sizes: int64 `[M]`, atoms or tokens of each.
    """

    sizes: Tensor

    def __len__(self) -> int: ...

    def batch(self, index: Tensor) -> Any:
        """Those of `index`, as a model reads them."""

    def subset(self, index: Tensor) -> Readable:
        """Those of `index`."""

    def to(self, device: torch.device | str) -> Readable: ...


@dataclass(frozen=True)
class Examples:
    """M sources, and the sequence to be written for each.

    Attributes:
        source: molecules or sequences; None for a language model.
        targets: without start and end.
        row: int64 `[M]`, the number of each in the set it was cut from.

    Raises:
        ValueError: not as many sources as targets.
    """

    source: Readable | Any | None
    targets: Sequences
    row: Tensor | None = None

    @classmethod
    def of(cls, source: Readable | None, targets: Sequences) -> Examples:
        """All of a set."""
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
        taught = self.targets.sizes + 1
        return taught if self.source is None else torch.maximum(taught, self.source.sizes)

    def batch(self, index: Tensor) -> Examples:
        """The examples `index` (int64 `[b]`), the sources as a model reads them."""
        source = None if self.source is None else self.source.batch(index)
        return Examples(source, self.targets.batch(index), self.row[index])

    def subset(self, index: Tensor) -> Examples:
        """The examples `index` (int64 `[b]`) as a set of their own."""
        return Examples.of(None if self.source is None else self.source.subset(index), self.targets.subset(index))

    def to(self, device: torch.device | str) -> Examples:
        """The same with their tensors on `device`."""
        source = None if self.source is None else self.source.to(device)
        return replace(self, source=source, targets=self.targets.to(device), row=self.row.to(device))
