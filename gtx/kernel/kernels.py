"""Kernels between molecules and reference molecules: of circular substructures, and of feature vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy import sparse
from torch import Tensor, nn
from torch_geometric.data import Batch

from gtx.base.errors import InputError
from gtx.base.loops import compiled_loop
from gtx.encodings.sides import list_environments
from gtx.nn.features import ClippedStandardScaler, TrainingMolecules

# --- Counts of substructures in molecules, and their intersections.


class SubstructureCounts(NamedTuple):
    """How often each kind of circular substructure occurs in each of B molecules.

    Attributes:
        kinds: label of each of the V kinds, int64 `[V]`, ascending.
        table: counts, sparse int32 `[B, V]`.
    """

    kinds: np.ndarray
    table: sparse.csr_array

    def restrict(self, kinds: np.ndarray) -> sparse.csr_array:
        """Count other kinds, int64 `[K]`, ascending: int32 `[B, K]`, sparse."""
        place = np.searchsorted(kinds, self.kinds)
        known = place < len(kinds)
        known[known] = kinds[place[known]] == self.kinds[known]
        kept = known[self.table.indices]
        ptr = np.concatenate([[0], kept.cumsum()])[self.table.indptr]
        arrays = self.table.data[kept], place[self.table.indices[kept]], ptr
        return sparse.csr_array(arrays, shape=(self.table.shape[0], len(kinds)))

    def subset(self, rows: Any) -> SubstructureCounts:
        """Select molecules by an index."""
        return SubstructureCounts(self.kinds, self.table[rows])


@compiled_loop
def add_intersections(ptr, kind, count, inverted_ptr, inverted_row, inverted_count, out):
    """Add the intersections of molecules with the references to `out` `[B, rows]`, see `intersections`."""
    for b in range(len(ptr) - 1):
        row = out[b]
        for e in range(ptr[b], ptr[b + 1]):
            k, c = kind[e], count[e]
            for p in range(inverted_ptr[k], inverted_ptr[k + 1]):
                row[inverted_row[p]] += min(c, inverted_count[p])


def intersections(counts: sparse.csr_array, references: sparse.csc_array) -> np.ndarray:
    r"""Compute the size of the intersection of molecules with others: \(\sum_k \min(a_k, b_k)\), float64 `[B, rows]`.

    Both tables, `[B, K]` and `[rows, K]`, count the same kinds. The loops meet only kinds that both molecules have, so
    the work grows with the entries that match.
    """
    common = np.zeros((counts.shape[0], references.shape[0]))
    arrays = (part for table in (counts, references) for part in (table.indptr, table.indices, table.data))
    add_intersections(*arrays, common)
    return common


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
            `gtx.encodings.sides.label_environments`, all counted.
        rows, kinds, entries: numbers of reference molecules, of kinds of substructures, and of counts above 0; 0 before
            there are references.

    Attributes:
        kind_label: label of each kind of substructure, int64 `[kinds]`, ascending.
        ptr, kind, count: sparse table of the counts of the reference molecules; molecule i has the entries `ptr[i]` to
            `ptr[i + 1]`, each a position in `kind_label` and how often that kind occurs.
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
        if not labels:
            raise ValueError("labels: expected one scheme or more")
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
        kinds, kind = np.unique(counts.table.indices, return_inverse=True)
        self.register_buffer("kind_label", torch.from_numpy(counts.kinds[kinds]))
        self.register_buffer("ptr", torch.from_numpy(counts.table.indptr).long())
        self.register_buffer("kind", torch.from_numpy(kind).int())
        self.register_buffer("count", torch.from_numpy(counts.table.data).short())
        self.register_buffer("row", rows)
        self.check()

    def count_substructures(self, molecules: TrainingMolecules, rows: Tensor) -> SubstructureCounts:
        """Count the substructures of the molecules `rows`, as `counts` does those of a batch."""
        parts = [self.counts(molecules.batch(some)) for some in rows.split(CHUNK)]
        kinds = np.unique(np.concatenate([part.kinds for part in parts]))
        return SubstructureCounts(kinds, sparse.vstack([part.restrict(kinds) for part in parts], format="csr"))

    # comparison

    def counts(self, batch: Batch) -> SubstructureCounts:
        """Count the substructures in each molecule of a batch; a kind is a label of 64 bits."""
        labels, owner = (each.cpu().numpy() for each in list_environments(batch, self.labels))
        kinds, column = np.unique(labels, return_inverse=True)
        ones, shape = np.ones(len(column), np.int32), (batch.num_graphs, len(kinds))
        table = sparse.coo_array((ones, (owner, column)), shape=shape).tocsr()  # equal places are summed
        table.data = table.data.clip(max=LARGEST_COUNT)
        return SubstructureCounts(kinds, table)

    @property
    def references(self) -> sparse.csr_array:
        """Counts of the references, int32 `[rows, kinds]`, sparse."""
        arrays = (self.count.int().cpu().numpy(), self.kind.cpu().numpy(), self.ptr.cpu().numpy())
        return sparse.csr_array(arrays, shape=(len(self.row), len(self.kind_label)))

    def similarity(self, batch: Batch) -> Tensor:
        """Compute the kernel between the molecules of a batch and the reference molecules, float64 `[B, rows]`, from 0
        to 1.
        """
        return self._similarity(self.counts(batch))

    @cached_property
    def _inverted_index(self) -> tuple[sparse.csc_array, np.ndarray]:
        """The references by kind, and the sum of each reference's counts."""
        return self.references.tocsc(), self.references.sum(1)

    def _similarity(self, counts: SubstructureCounts) -> Tensor:
        return self._compare(counts.restrict(self.kind_label.cpu().numpy()), counts.table.sum(1))

    def _compare(self, table: sparse.csr_array, sizes: np.ndarray) -> Tensor:
        """Compare molecules of these sizes and counts of the references' kinds with the references."""
        inverted, others = self._inverted_index
        common = intersections(table, inverted)
        return torch.from_numpy(common / (sizes[:, None] + others - common)).to(self.kind_label.device)

    def compare_references(self) -> Tensor:
        """Compute the Gram matrix of the references, `[rows, rows]`."""
        return self._compare(self.references, self._inverted_index[1])

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
