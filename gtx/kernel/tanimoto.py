"""How similar molecules are to others that are held, by the circular substructures that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.errors import InputError
from gtx.kernel.counts import Counts, offsets, shared
from gtx.nn import TrainingSet, circular_labels

LARGEST_COUNT = 2**15 - 1
_FREQUENT = 16  # a kind is frequent if more than one of so many rows has it
_TOGETHER = 512  # molecules whose substructures are counted at a time


class TanimotoKernel(nn.Module):
    r"""The Tanimoto kernel of counts of circular substructures,

    \[ k(a, b) = \frac{\sum_s \min(a_s, b_s)}{\sum_s \max(a_s, b_s)} \]

    between molecules and those that are held. Counts are those of `gtx.nn.circular_labels`, unfolded.

    Source: Ralaivola et al. 2005 (https://doi.org/10.1016/j.neunet.2005.07.009); it is positive definite.

    Args:
        labels: which substructures are told apart: arguments of `gtx.nn.circular_labels` by name, once or more, whose
            labels are counted together.
        rows, kinds, entries: sizes of what is held; 0 for nothing.
    """

    kind_label: Tensor
    ptr: Tensor
    kind: Tensor
    count: Tensor
    row: Tensor
    _worked_out: tuple[str, ...] = ("_turned", "_frequent")

    def __init__(
        self,
        labels: Sequence[Mapping[str, Any]],
        rows: int = 0,
        kinds: int = 0,
        entries: int = 0,
    ) -> None:
        super().__init__()
        self.labels = [dict(one) for one in labels]
        self._hold("kind_label", torch.zeros(kinds, dtype=torch.long))
        self._hold("ptr", torch.zeros(rows + 1, dtype=torch.long))
        self._hold("kind", torch.zeros(entries, dtype=torch.int32))
        self._hold("count", torch.zeros(entries, dtype=torch.int16))
        self._hold("row", torch.zeros(rows, dtype=torch.long))

    def _hold(self, name: str, values: Tensor) -> None:
        self.register_buffer(name, values)

    def check(self) -> None:
        """Raise an `InputError` unless the counts held are in order."""
        ptr, kinds = self.ptr, self.kind_label
        orderly = int(ptr[0]) == 0 and int(ptr[-1]) == len(self.kind) and bool((ptr.diff() >= 0).all())
        within = not len(self.kind) or (int(self.kind.min()) >= 0 and int(self.kind.max()) < len(kinds))
        if not (orderly and within and bool((kinds.diff() > 0).all()) and bool((self.count > 0).all())):
            raise InputError("the kernel's counts of training molecules are not in order")
        self._forget()

    def load_state_dict(self, *arguments: Any, **named: Any) -> Any:
        found = super().load_state_dict(*arguments, **named)
        self.check()  # compiled loops go where the counts lead
        return found

    def _apply(self, *arguments: Any, **named: Any) -> Self:
        self._forget()
        return super()._apply(*arguments, **named)

    def _forget(self) -> None:
        """Drop what is worked out of the counts held."""
        for name in self._worked_out:
            self.__dict__.pop(name, None)

    # what is held

    def hold(self, molecules: TrainingSet) -> None:
        """Hold molecules to compare others with."""
        rows = torch.arange(len(molecules))
        self._keep(self._count(molecules, rows), rows)

    def _keep(self, counts: Counts, rows: Tensor) -> None:
        kinds, kind = counts.kind.unique(return_inverse=True)
        self._hold("kind_label", kinds)
        self._hold("ptr", counts.ptr)
        self._hold("kind", kind.int())
        self._hold("count", counts.count.short())
        self._hold("row", rows)
        self.check()

    def _count(self, molecules: TrainingSet, rows: Tensor) -> Counts:
        parts = [self.counts(molecules.batch(some)) for some in rows.split(_TOGETHER)]
        return Counts(
            offsets(torch.cat([part.ptr.diff() for part in parts])),
            torch.cat([part.kind for part in parts]),
            torch.cat([part.count for part in parts]),
        )

    # what is read

    def counts(self, batch: Batch) -> Counts:
        """How often each substructure occurs in the molecules of a batch, its kind a number of 64 bits."""
        schemes = enumerate(self.labels)
        labels = torch.cat([circular_labels(batch, **one) + scheme for scheme, one in schemes])
        found = Counts.of(labels.flatten(), batch.batch.repeat(len(labels)), batch.num_graphs)
        return Counts(found.ptr, found.kind, found.count.clamp(max=LARGEST_COUNT))

    @property
    def trained(self) -> Counts:
        """Of the molecules that are held; kinds are numbers of `kind_label`."""
        return Counts(self.ptr, self.kind.long(), self.count.long())

    def similarity(self, batch: Batch) -> Tensor:
        """The kernel between the molecules of a batch and those held, float64 `[B, rows]`, from 0 to 1."""
        return self._similar(self.counts(batch))

    @cached_property
    def _turned(self) -> tuple[Counts, Tensor]:
        turned = self.trained.by_kind(len(self.kind_label))
        return Counts(turned.ptr, turned.kind.int(), turned.count.int()), self.trained.sizes

    @cached_property
    def _frequent(self) -> tuple[Tensor, Tensor]:
        """Kinds that many molecules have: the line of each, -1 for the others, and how often `[lines, rows]`."""
        turned, sizes = self._turned
        often = (turned.ptr.diff() * _FREQUENT > len(sizes)).nonzero().flatten()
        place = torch.full((len(turned),), -1, dtype=torch.int32)
        place[often] = torch.arange(len(often), dtype=torch.int32)
        table = torch.zeros(len(often), len(sizes), dtype=torch.int32)
        found = turned.subset(often)
        table[found.owner, found.kind.long()] = found.count
        return place, table

    def _similar(self, counts: Counts) -> Tensor:
        turned, sizes = self._turned
        common = shared(counts.known(self.kind_label), turned, len(sizes))
        return common / (counts.sizes[:, None] + sizes - common)

    def _among(self) -> Tensor:
        """The kernel between the molecules held, `[rows, rows]`."""
        turned, sizes = self._turned
        common = shared(self.trained, turned, len(sizes))
        return common / (sizes[:, None] + sizes - common)

    def nearest(self, batch: Batch, count: int = 3) -> tuple[Tensor, Tensor]:
        """The molecules that are most similar to each molecule of a batch, of those held.

        Returns:
            Their row numbers, int64 `[B, count]`, and their similarity, float64 `[B, count]`, the highest first.
        """
        similarity, place = self.similarity(batch).topk(min(count, len(self.row)), dim=1)
        return self.row[place], similarity

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in self._worked_out}
