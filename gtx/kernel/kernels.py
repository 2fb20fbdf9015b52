"""Kernels between molecules and reference molecules: of circular substructures, and of feature vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.base.loops import compiled_loop
from gtx.graph.packing import offsets
from gtx.graph.sides import UNCHANGED, label_environments
from gtx.nn.features import ClippedStandardScaler, TrainingMolecules

# --- Counts of substructures in molecules, and their intersections.


@dataclass(frozen=True)
class SubstructureCounts:
    """Sparse table of how often each kind of circular substructure occurs in each of B molecules; E counts are above 0.

    Attributes:
        ptr: offsets of the molecules, int64 `[B + 1]`; molecule b has the entries `ptr[b]` to `ptr[b + 1]`.
        kind: kind of substructure of each entry, int64 `[E]`, ascending within a molecule.
        count: number of occurrences of each entry, int64 `[E]`, 1 or more.
    """

    ptr: Tensor
    kind: Tensor
    count: Tensor

    @classmethod
    def from_labels(cls, labels: Tensor, owner: Tensor, molecules: int) -> SubstructureCounts:
        """Count the labels, int64 `[n]`, of each molecule; `owner` is the molecule of each label, int64 `[n]`."""
        order = labels.argsort()
        order = order[owner[order].argsort(stable=True)]
        owner, kind = owner[order], labels[order]
        new = torch.ones_like(kind, dtype=torch.bool)
        new[1:] = (kind[1:] != kind[:-1]) | (owner[1:] != owner[:-1])
        first = new.nonzero().flatten()
        count = torch.cat([first, first.new_full((1,), len(kind))]).diff()
        return cls(offsets(torch.bincount(owner[first], minlength=molecules)), kind[first], count)

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def owner(self) -> Tensor:
        """Molecule of each entry, int64 `[E]`."""
        return torch.repeat_interleave(self.ptr.diff())

    @property
    def sizes(self) -> Tensor:
        """Sum of the counts of each molecule, int64 `[B]`."""
        return torch.zeros_like(self.ptr[1:]).index_add_(0, self.owner, self.count)

    def restrict(self, kinds: Tensor) -> SubstructureCounts:
        """Keep the entries whose kind is one of `kinds`, int64 `[V]`, ascending, and replace a kind by its position."""
        place = torch.searchsorted(kinds, self.kind).clamp(max=max(len(kinds) - 1, 0))
        same = kinds[place] == self.kind if len(kinds) else torch.zeros_like(self.kind, dtype=torch.bool)
        kept = torch.zeros_like(self.ptr[1:]).index_add_(0, self.owner, same.long())
        return SubstructureCounts(offsets(kept), place[same], self.count[same])

    def subset(self, rows: Tensor) -> SubstructureCounts:
        """Select the molecules with indices `rows`, int64 `[b]`, in the order of `rows`."""
        lengths = self.ptr.diff()[rows]
        ptr = offsets(lengths)
        entry = torch.arange(int(ptr[-1]), device=rows.device) - torch.repeat_interleave(
            ptr[:-1] - self.ptr[rows], lengths
        )
        return SubstructureCounts(ptr, self.kind[entry], self.count[entry])

    def inverted(self, kinds: int) -> SubstructureCounts:
        """Return the inverted index: for each of so many kinds the molecules that have it, ascending, as `kind`."""
        order = self.kind.argsort(stable=True)
        return SubstructureCounts(
            offsets(torch.bincount(self.kind, minlength=kinds)), self.owner[order], self.count[order]
        )


@compiled_loop
def add_intersections(ptr, kind, count, inverted_ptr, inverted_row, inverted_count, out):
    """Add the intersections of molecules with the references to `out` `[B, rows]`, see `intersections`."""
    for b in range(len(ptr) - 1):
        row = out[b]
        for e in range(ptr[b], ptr[b + 1]):
            k, c = kind[e], count[e]
            for p in range(inverted_ptr[k], inverted_ptr[k + 1]):
                row[inverted_row[p]] += min(c, inverted_count[p])


def intersections(counts: SubstructureCounts, inverted: SubstructureCounts, rows: int) -> Tensor:
    r"""Compute the size of the intersection of molecules with others: \(\sum_k \min(a_k, b_k)\), float64 `[B, rows]`.

    The loops meet only kinds that both molecules have, so the work grows with the entries that match. `inverted` is
    `SubstructureCounts.inverted` of the others, which are `rows`; every kind is below its length. They run on the CPU,
    on whatever device the counts are.
    """
    common = torch.zeros(len(counts), rows, dtype=torch.float64)
    arrays = (part.cpu().numpy() for one in (counts, inverted) for part in (one.ptr, one.kind, one.count))
    add_intersections(*arrays, common.numpy())
    return common.to(counts.ptr.device)


# --- The Tanimoto kernel of substructures.

LARGEST_COUNT = 2**15 - 1
CHUNK = 512  # molecules whose substructures are counted at a time


class TanimotoKernel(nn.Module):
    r"""Tanimoto kernel between molecules, from counts of their circular substructures.

    \[ k(a, b) = \frac{\sum_s \min(a_s, b_s)}{\sum_s \max(a_s, b_s)} \]

    The reference molecules of the kernel are training molecules. The counts are those of the labels of
    `label_environments`, without folding.

    The kernel is positive definite. Source: Ralaivola et al. 2005 (https://doi.org/10.1016/j.neunet.2005.07.009).

    Args:
        labels: definition of the substructures: one or more schemes of
            `gtx.graph.sides.label_environments`, all counted.
        rows, kinds, entries: numbers of reference molecules, of kinds of substructures, and of counts above 0; 0 before
            there are references.

    Attributes:
        kind_label: label of each kind of substructure, int64 `[kinds]`, ascending.
        ptr, kind, count: counts of the reference molecules as in `SubstructureCounts`; a kind is a position in
            `kind_label`.
        row: index of each reference molecule among the training molecules, int64 `[rows]`.
    """

    kind_label: Tensor
    ptr: Tensor
    kind: Tensor
    count: Tensor
    row: Tensor
    cached_names: tuple[str, ...] = ("_inverted_index",)
    """Properties computed once from the counts of the references."""

    def __init__(self, labels: Sequence[Mapping[str, Any]], rows: int = 0, kinds: int = 0, entries: int = 0) -> None:
        super().__init__()
        self.labels: list[dict[str, Any]] = [dict(one) for one in labels]
        self.register_buffer("kind_label", torch.zeros(kinds, dtype=torch.long))
        self.register_buffer("ptr", torch.zeros(rows + 1, dtype=torch.long))
        self.register_buffer("kind", torch.zeros(entries, dtype=torch.int32))
        self.register_buffer("count", torch.zeros(entries, dtype=torch.int16))
        self.register_buffer("row", torch.zeros(rows, dtype=torch.long))

    def check(self) -> None:
        """Raise an `InputError` unless the counts of the references are in order."""
        ptr, kinds = self.ptr, self.kind_label
        orderly = int(ptr[0]) == 0 and int(ptr[-1]) == len(self.kind) and bool((ptr.diff() >= 0).all())
        within = not len(self.kind) or (int(self.kind.min()) >= 0 and int(self.kind.max()) < len(kinds))
        if not (orderly and within and bool((kinds.diff() > 0).all()) and bool((self.count > 0).all())):
            raise InputError("the kernel's counts of training molecules are not in order")
        self._clear_cache()

    def load_state_dict(self, *arguments: Any, **named: Any) -> Any:
        keys = super().load_state_dict(*arguments, **named)
        self.check()  # compiled loops go where the counts lead
        return keys

    def _apply(self, *arguments: Any, **named: Any) -> Self:
        self._clear_cache()
        return super()._apply(*arguments, **named)

    def _clear_cache(self) -> None:
        """Drop what was computed from the counts of the references."""
        for name in self.cached_names:
            self.__dict__.pop(name, None)

    # reference molecules

    def set_references(self, molecules: TrainingMolecules) -> None:
        """Set the reference molecules."""
        rows = torch.arange(len(molecules))
        self.set_counts(self.count_substructures(molecules, rows), rows)

    def set_counts(self, counts: SubstructureCounts, rows: Tensor) -> None:
        """Set the references to these counts; `rows` are their indices among the training molecules."""
        kinds, kind = counts.kind.unique(return_inverse=True)
        self.register_buffer("kind_label", kinds)
        self.register_buffer("ptr", counts.ptr)
        self.register_buffer("kind", kind.int())
        self.register_buffer("count", counts.count.short())
        self.register_buffer("row", rows)
        self.check()

    def count_substructures(self, molecules: TrainingMolecules, rows: Tensor) -> SubstructureCounts:
        """Count the substructures of the molecules `rows`, as `counts` does those of a batch."""
        parts = [self.counts(molecules.batch(some)) for some in rows.split(CHUNK)]
        return SubstructureCounts(
            offsets(torch.cat([part.ptr.diff() for part in parts])),
            torch.cat([part.kind for part in parts]),
            torch.cat([part.count for part in parts]),
        )

    # comparison

    def counts(self, batch: Batch) -> SubstructureCounts:
        """Count the substructures in each molecule of a batch; a kind is a label of 64 bits."""
        labels = torch.cat(label_environments(batch, self.labels))
        owner = batch.batch.expand_as(labels)
        if any("sides" in one for one in self.labels):
            counted = labels != UNCHANGED
            labels, owner = labels[counted], owner[counted]
        counts = SubstructureCounts.from_labels(labels.flatten(), owner.flatten(), batch.num_graphs)
        return SubstructureCounts(counts.ptr, counts.kind, counts.count.clamp(max=LARGEST_COUNT))

    @property
    def references(self) -> SubstructureCounts:
        """Counts of the references; a kind is a position in `kind_label`."""
        return SubstructureCounts(self.ptr, self.kind.long(), self.count.long())

    def similarity(self, batch: Batch) -> Tensor:
        """Compute the kernel between the molecules of a batch and the reference molecules, float64 `[B, rows]`, from 0
        to 1.
        """
        return self._similarity(self.counts(batch))

    @cached_property
    def _inverted_index(self) -> tuple[SubstructureCounts, Tensor]:
        """The references by kind, in int32 for compiled loops, and the sum of each reference's counts."""
        inverted = self.references.inverted(len(self.kind_label))
        return SubstructureCounts(inverted.ptr, inverted.kind.int(), inverted.count.int()), self.references.sizes

    def _similarity(self, counts: SubstructureCounts) -> Tensor:
        return self._compare(counts.restrict(self.kind_label), counts.sizes)

    def _compare(self, counts: SubstructureCounts, sizes: Tensor) -> Tensor:
        """Compare molecules of these sizes and counts of the references' kinds with the references."""
        inverted, others = self._inverted_index
        common = intersections(counts, inverted, len(others))
        return common / (sizes[:, None] + others - common)

    def compare_references(self) -> Tensor:
        """Compute the Gram matrix of the references, `[rows, rows]`."""
        return self._compare(self.references, self.references.sizes)

    def nearest(self, batch: Batch, count: int = 3) -> tuple[Tensor, Tensor]:
        """Find the reference molecules that are most similar to each molecule of a batch.

        Returns:
            Row numbers of the reference molecules, int64 `[B, count]`, and their similarity, float64 `[B, count]`, the
            highest first.
        """
        similarity, place = self.similarity(batch).topk(min(count, len(self.row)), dim=1)
        return self.row[place], similarity

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name not in self.cached_names}


# --- The Matérn kernel of feature vectors: descriptors, or the embedding by a pretrained network.

STEP = 2.0**-12
"""Unit of the z-scores, to whose multiples they are rounded: int16 stores those of the references exactly."""


class DescriptorKernel(nn.Module):
    r"""Matérn kernel (smoothness 3/2) between molecules, from clipped z-scores z of their descriptors or embeddings.

    \[ k(a, b) = (1 + \sqrt 3\, r)\, e^{-\sqrt 3\, r}, \qquad r = \frac{\lVert z_a - z_b \rVert}{\ell \sqrt D} \]

    The number D counts the features that vary in training, so r is the root mean square difference of the features, in
    units of \(\ell\) standard deviations. An unknown feature is replaced by the training mean.

    Source: Rasmussen & Williams 2006, equation 4.17 (http://gaussianprocess.org/gpml).

    Args:
        channels: number of features of a molecule, such as descriptors.
        rows: number of reference molecules; 0 before reference molecules are set.

    Attributes:
        share: weight of the kernel in a weighted mean of two kernels, from 0 to 1, float32 `[]`.
        length: length scale \(\ell\), float32 `[]`.
        steps: z-scores of the reference molecules in units of `STEP`, int16 `[rows, channels]`.

    Shapes:
        features `[B, channels]`, NaN if unknown, to kernel values float64 `[B, rows]`, from 0 to 1.
    """

    share: Tensor
    length: Tensor
    steps: Tensor

    def __init__(self, channels: int, rows: int = 0) -> None:
        super().__init__()
        self.scaler: ClippedStandardScaler = ClippedStandardScaler(channels)
        self.register_buffer("steps", torch.zeros(rows, channels, dtype=torch.int16))
        self.register_buffer("share", torch.zeros(()))
        self.register_buffer("length", torch.ones(()))

    def set_references(self, descriptors: Tensor) -> None:
        """Make molecules with these features, `[rows, channels]`, the references; the scaler is left as it is."""
        self.register_buffer("steps", (self.z_scores(descriptors) / STEP).to(torch.int16))

    def z_scores(self, descriptors: Tensor) -> Tensor:
        """Compute z-scores, rounded to multiples of `STEP`, float64 `[B, channels]`."""
        return (self.scaler(descriptors.double()) / STEP).round() * STEP

    def gram(self, length: float) -> Tensor:
        """Compute the Gram matrix of the references with a given length, float64 `[rows, rows]`."""
        return self._between(self.references, length)

    def forward(self, descriptors: Tensor) -> Tensor:
        return self._between(self.z_scores(descriptors), float(self.length))

    @property
    def references(self) -> Tensor:
        """The z-scores of the references, float64 `[rows, channels]`."""
        return self.steps.double() * STEP

    def _between(self, scores: Tensor, length: float) -> Tensor:
        varies = max(1, int(self.scaler.scale.count_nonzero()))
        r = torch.cdist(scores, self.references) * (math.sqrt(3 / varies) / length)
        return (1 + r) * torch.exp(-r)

    def __repr__(self) -> str:
        steps = self.steps.shape
        return f"DescriptorKernel({steps[0]} molecules, {steps[1]} features, length {float(self.length):g})"
