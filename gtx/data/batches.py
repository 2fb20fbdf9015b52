"""Batches: within a budget of pairs, or of constant shape; and features that are computed once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Sampler
from torch_geometric.data import Batch

from gtx.data.featurising import show_progress
from gtx.data.store import IN_BATCH, LEVELS, MoleculeStore, as_batch, rows_of, widen
from gtx.graph.constant_shape import BatchShape, ConstantShapeGraph, owners
from gtx.graph.packing import group_by_size

# --- Features of a store's atoms and pairs that are the same in every epoch, computed once and sliced like the atoms.

_AT_ONCE = 512  # molecules of a chunk
SECONDS_WITHOUT_BAR = 2.0

FixedValues = tuple[Tensor | None, Tensor | None]


class PrecomputedEncodings(NamedTuple):
    """Encodings without learned weights, such as path lengths, computed once for all molecules of a store.

    Integer features from 0 to 255 are stored as bytes.

    Attributes:
        atoms: features of atoms by name, `[N, *]`.
        pairs: features of pairs by name, one row per pair of atoms of a molecule, sorted by receiver.
        pair_ptr: int64 `[M + 1]`; molecule m has the pairs `pair_ptr[m]` to `pair_ptr[m + 1]`.
    """

    atoms: dict[str, Tensor]
    pairs: dict[str, Tensor]
    pair_ptr: Tensor

    def cut(self, atom: Tensor, pair: Tensor) -> dict[str, FixedValues]:
        """Return the features of some atoms and pairs, by name, with integer features as int64."""
        names = self.atoms.keys() | self.pairs.keys()
        return {name: (_rows(self.atoms.get(name), atom), _rows(self.pairs.get(name), pair)) for name in sorted(names)}


def precompute_encodings(
    store: MoleculeStore,
    features: Callable[[Batch, Sequence[str]], dict[str, FixedValues]],
    names: Sequence[str],
    device: torch.device,
    room: int,
    needed: Sequence[str] = (),
    progress: bool = False,
) -> PrecomputedEncodings:
    """Compute the encodings without learned weights once for all molecules of a store, and keep them on a device.

    For a batch and names, `features` returns by name the features of atoms `[n, *]` and of pairs `[num_pairs, *]`,
    either of them or None. As many are kept as there is `room` for, in bytes, those named first and the `needed` ones.
    With `progress` there is a progress bar, if more than `SECONDS_WITHOUT_BAR` are to be expected.
    """
    rows = torch.arange(len(store), device=store.device)
    pair_ptr = torch.cat([store.atom_ptr.new_zeros(1), store.sizes.square().cumsum(0)])
    share = len(store) / max(1, min(len(store), _AT_ONCE))
    total = 0.0
    chosen: list[str] = []
    start = time.perf_counter()
    for name, values in features(store.batch(rows[:_AT_ONCE]), names).items():
        size = sum(_small(x).nbytes for x in values if x is not None) * share
        if name in needed or total + size <= room:
            total += size
            chosen.append(name)
    parts: Iterable[Tensor] = rows.split(_AT_ONCE)
    if progress and (time.perf_counter() - start) * share > SECONDS_WITHOUT_BAR:
        parts = show_progress(parts, len(rows), "Computing encodings", len)
    chunks = [features(store.batch(some), chosen) for some in parts]

    def joined(level: int) -> dict[str, Tensor]:
        every = {name: [chunk[name][level] for chunk in chunks] for name in chosen}
        tensors = {name: [_small(x) for x in several if x is not None] for name, several in every.items()}
        return {name: torch.cat(several).to(device) for name, several in tensors.items() if several}

    return PrecomputedEncodings(joined(0), joined(1), pair_ptr.to(device))


def _small(values: Tensor) -> Tensor:
    """Convert integers from 0 to 255 to bytes; return other values unchanged."""
    if values.is_floating_point() or values.numel() == 0 or values.min() < 0 or values.max() > 255:
        return values
    return values.to(torch.uint8)


def _rows(values: Tensor | None, rows: Tensor) -> Tensor | None:
    if values is None:
        return None
    taken = values.index_select(0, rows)
    return taken if values.is_floating_point() else taken.long()


def batch_with_encodings(store: MoleculeStore, fixed: PrecomputedEncodings, index: Tensor) -> Batch:
    """Make a batch of the molecules `index` (int64 `[B]`) of a store, with their encodings as `fixed`."""
    batch = store.batch(index)
    batch.fixed = fixed.cut(rows_of(store.atom_ptr, batch.row), rows_of(fixed.pair_ptr, batch.row))
    return batch


# --- Samplers: batches of molecules of similar size within a budget of atom pairs.


@dataclass(eq=False, kw_only=True)
class EpochSampler(Sampler[Tensor]):
    """Base class of samplers, which divide the batches of an epoch among the processes of a distributed training.

    Attributes:
        shuffle: whether batches are shuffled.
        seed: seed of all that is random, which differs between epochs.
        rank, replicas: rank of this process, from 0, and number of processes. Every process gets the same number of
            batches; some are repeated if the number of batches is not a multiple of `replicas`.
        epoch: number of the epoch, from 0.
    """

    shuffle: bool = True
    seed: int = 0
    rank: int = 0
    replicas: int = 1
    epoch: int = field(default=0, init=False)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch whose batches are drawn (Lightning calls it)."""
        self.epoch = epoch

    def batches(self) -> list[Tensor]:
        """Return all batches of the epoch, over all ranks."""
        raise NotImplementedError(f"{type(self).__name__} does not define its batches")

    def __iter__(self) -> Iterator[Tensor]:
        batches = self.batches()
        each = -(-len(batches) // self.replicas)
        for i in range(self.rank, each * self.replicas, self.replicas):
            yield batches[i % len(batches)]

    def __len__(self) -> int:
        return -(-len(self.batches()) // self.replicas)


@dataclass(eq=False)
class PairBudgetSampler(EpochSampler):
    r"""Sampler of batches whose number of atom pairs, and so the memory that attention needs, stays below a budget.

    The work of attention over all pairs of a batch grows with \(\sum_b n_b^2\), the number of pairs. Molecules are
    ordered by a jittered size, filled into batches until the budget is reached, and the batches are shuffled. A
    molecule larger than the budget is a batch of its own.

    Args:
        sizes: atoms per molecule, int64 `[M]`.
        budget: pairs per batch.
        max_molecules: largest number of molecules in a batch.
        shuffle: whether batches are shuffled. If False, molecules are sorted by descending size, without jitter, for
            evaluation.
        jitter: standard deviation of the noise on the logarithm of the size, drawn anew in each epoch. With 0,
            molecules of similar size are in one batch, which saves padding. With large values, batches are random,
            which is better for small data sets (see `gtx.training`).
        seed: seed of the jitter and of the order of batches, which differ between epochs.
        rank, replicas: rank of the process and number of processes, as in `EpochSampler`.
    """

    sizes: Tensor
    budget: int
    max_molecules: int = field(default=1 << 30, kw_only=True)
    jitter: float = field(default=0.2, kw_only=True)

    def __post_init__(self) -> None:
        if self.budget < 1 or self.max_molecules < 1:
            asked = f"{self.budget} and {self.max_molecules}"
            raise ValueError(f"expected a positive budget and max_molecules, got {asked}")
        self.sizes = self.sizes.cpu()

    def batches(self) -> list[Tensor]:
        """Return all batches of the epoch, over all processes, as int64 index tensors; no molecule is left out."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + self.epoch)
        key = self.sizes.float().log()
        if self.shuffle:
            key = key + self.jitter * torch.randn(len(key), generator=generator)
        order = torch.argsort(key, descending=True, stable=True)
        pairs = np.concatenate([[0], self.sizes[order].square().cumsum(0).numpy()])  # before each molecule
        ends = [0]
        while ends[-1] < len(order):
            start = ends[-1]
            fit = int(np.searchsorted(pairs, pairs[start] + self.budget, "right")) - 1
            ends.append(min(max(fit, start + 1), start + self.max_molecules))
        batches = [order[start:end] for start, end in pairwise(ends)]
        if self.shuffle:
            batches = [batches[i] for i in torch.randperm(len(batches), generator=generator).tolist()]
        return batches

    def work(self, batch: Tensor) -> int:
        """Return the number of pairs of a batch."""
        return int(self.sizes[batch].square().sum())


# --- A store whose batches have constant shape.


class ConstantShapeStore:
    """Batches of a store that all have the same tensor shapes, as a CUDA graph requires, on the device of the store.

    The seed is that of the random batches from which the batch shape is chosen.
    """

    def __init__(self, store: MoleculeStore, fixed: PrecomputedEncodings | None = None, seed: int = 0) -> None:
        self.store = store
        self.fixed = fixed
        self.seed = seed
        self.per_batch: int = 0
        self.batch_shape: BatchShape | None = None

    def sampler(self, molecules: int, **options: Any) -> ConstantShapeSampler:
        """Make the sampler of batches of so many molecules on average, with options of `ConstantShapeSampler`."""
        sizes, bonds = self.store.sizes.cpu(), self.store.bond_ptr.diff().cpu()
        if self.batch_shape is None or molecules != self.per_batch:
            self.per_batch, self.batch_shape = molecules, choose_batch_shape(sizes, bonds, molecules, self.seed)
        return ConstantShapeSampler(sizes, bonds, self.batch_shape, **options)

    def batch(self, index: Tensor) -> Batch:
        """Make one batch on the device of the store: a batch of constant shape, or a single large molecule."""
        if self.batch_shape is None:
            raise RuntimeError("a batch of constant shape has no batch shape before `sampler` has chosen one")
        if len(index) != self.batch_shape.molecules:
            return self.store.batch(index)
        return make_constant_shape_batch(self.store, index, self.batch_shape, self.fixed)


# --- Batches of constant shape, cut out of a store, as CUDA graphs need them.


def make_constant_shape_batch(
    store: MoleculeStore, index: Tensor, batch_shape: BatchShape, fixed: PrecomputedEncodings | None = None
) -> Batch:
    """Copy molecules of a store into one PyG batch of constant shape, without a synchronisation of CPU and GPU.

    The last graph of the batch is a ghost: an artificial molecule with the atoms, pairs and bonds that the real
    molecules do not use, with code 0 for all of them, and no descriptors, features, positions, targets or weights.
    Targets of empty slots are NaN, so the loss ignores empty slots.

    The `index`, int64 `[batch_shape.molecules]` on the device of the store, has the largest molecule first, and -1 for
    an empty slot. The batch is as of `MoleculeStore.batch`, with `num_graphs` of `batch_shape.molecules + 1`, `row` -1
    for empty slots and the ghost, and `graph`, the `ConstantShapeGraph`, `molecules`, their number, int64 `[]`, and
    `fixed` by name.
    """
    taken = index >= 0
    which = index.clamp(min=0)
    sizes, bonds = (torch.where(taken, ptr.diff()[which], 0) for ptr in (store.atom_ptr, store.bond_ptr))
    graph = ConstantShapeGraph.from_sizes(sizes, batch_shape)
    ghost = len(index)

    def rows(ptr: Tensor, new_ptr: Tensor, owner: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Return for each new row its row in the store, and whether it belongs to a molecule."""
        of = owner.clamp(max=ghost - 1)
        old = ptr[which[of]] + torch.arange(count, device=ptr.device) - new_ptr[of]
        return torch.where(owner < ghost, old, 0), owner < ghost

    bond_ptr = torch.cat([bonds.new_zeros(1), bonds.cumsum(0), bonds.new_full((1,), batch_shape.bonds)])
    bond_owner = owners(bond_ptr, batch_shape.bonds)
    atom, real_atom = rows(store.atom_ptr, graph.ptr, graph.batch, batch_shape.atoms)
    bond, real_bond = rows(store.bond_ptr, bond_ptr, bond_owner, batch_shape.bonds)

    none = torch.zeros(1, dtype=torch.bool, device=index.device)
    row, real = torch.cat([which, which[:1]]), torch.cat([taken, none])
    ends = store.bonds.T[bond].long() + graph.ptr[bond_owner][:, None]
    contents: dict[str, Any] = {
        "edge_index": torch.where(real_bond[:, None], ends, batch_shape.atoms - 1).T.contiguous(),
        "batch": graph.batch,
        "ptr": graph.ptr,
        "row": torch.where(real, row, -1),
        "molecules": taken.sum(),
        "graph": graph,
    }
    places = {"molecule": (row, real), "atom": (atom, real_atom), "bond": (bond, real_bond)}
    for name, level in LEVELS.items():
        if name in ("bonds", "component_sizes") or (values := getattr(store, name)) is None:
            continue
        at, there = places[level]
        empty = torch.nan if values.is_floating_point() and name != "weights" else 0
        values = widen(values[at])
        contents[IN_BATCH.get(name, name)] = torch.where(there if values.dim() == 1 else there[:, None], values, empty)
    if fixed is not None:
        pair, _ = rows(fixed.pair_ptr, graph.pair_ptr, owners(graph.pair_ptr, batch_shape.pairs), batch_shape.pairs)
        contents["fixed"] = fixed.cut(atom, pair)
    return as_batch(contents, _num_graphs=ghost + 1)


# --- The sampler of batches of constant shape.

_BUCKETS = 4
_DRAWN = 64  # random batches from which the batch shape is chosen


@dataclass(eq=False)
class ConstantShapeSampler(EpochSampler):
    """Sampler of random batches that never exceed a given batch shape (a maximum of molecules, atoms, pairs and bonds).

    The sampler adds shuffled molecules to a batch until a molecule does not fit. A molecule that is only too large for
    the remaining slots of its size group goes into the next batch. Without `shuffle`, every epoch has the same batches.
    The `sizes` and `bonds` are the atoms and directed bonds per molecule, int64 `[M]`.
    """

    sizes: Tensor
    bonds: Tensor
    batch_shape: BatchShape

    def __post_init__(self) -> None:
        shape = self.batch_shape
        self._room = np.array([shape.molecules, shape.atoms - 1, shape.pairs - 1, shape.bonds])
        self._costs = _costs(self.sizes.cpu().numpy(), self.bonds.cpu().numpy())
        self._atoms = self._costs[:, 1]
        self._alone = (self._costs > self._room).any(1) | (self._atoms > shape.buckets[0][1])

    def batches(self) -> list[Tensor]:
        """Return all batches of the epoch, over all processes; each molecule is in one batch.

        A batch is int64 `[batch_shape.molecules]`, the largest molecule first, -1 in empty slots; or `[1]`, a molecule
        that exceeds the batch shape.
        """
        random = np.random.default_rng((self.seed, self.epoch if self.shuffle else 0))
        order = random.permutation(len(self.sizes))
        batches = list(self._fill_batches(order[~self._alone[order]]))
        for i in order[self._alone[order]]:
            batches.insert(int(random.integers(len(batches) + 1)), np.array([i]))
        return [torch.from_numpy(batch) for batch in batches]

    def work(self, batch: Tensor) -> int:
        """Return the number of pairs of a batch: those of the batch shape, or of a single large molecule."""
        return int(self._costs[batch[0], 2]) if self._alone[batch[0]] else self.batch_shape.pairs

    def _fill_batches(self, order: np.ndarray) -> Iterator[np.ndarray]:
        places = np.cumsum([count for count, _ in self.batch_shape.buckets])
        steps = list(zip(places[:-1], (size for _, size in self.batch_shape.buckets[1:]), strict=True))
        waiting, at = order[:0], 0
        while len(waiting) or at < len(order):
            fresh = order[at : at + max(0, self.batch_shape.molecules - len(waiting))]
            ahead = np.concatenate([waiting, fresh])
            fit = int((self._costs[ahead[: self.batch_shape.molecules]].cumsum(0) <= self._room).all(1).sum())
            taken = ahead[:fit]
            here = np.ones(fit, bool)
            for most, size in steps:  # at most so many may be larger than the bucket that follows
                here &= (self._atoms[taken] <= size) | (np.cumsum(here & (self._atoms[taken] > size)) <= most)
            read = max(0, fit - len(waiting))
            waiting, at = np.concatenate([taken[~here], waiting[fit:]]), at + read
            taken = taken[here]
            batch = np.full(self.batch_shape.molecules, -1)
            batch[: len(taken)] = taken[np.argsort(-self._atoms[taken], kind="stable")]
            yield batch


def choose_batch_shape(sizes: Tensor, bonds: Tensor, molecules: int, seed: int = 0) -> BatchShape:
    """Choose a constant batch shape that random batches of about `molecules` molecules fill.

    The shape has room for the pairs of `molecules + 1` average molecules. The number of pairs is chosen such that all
    batches of an epoch, also the last batch, are about equally full. A very large molecule, with more pairs than the
    shape, is a batch of its own; at most one batch in ten may be such a molecule. For molecules, atoms, bonds and large
    molecules, the shape has room for the largest numbers found in `_DRAWN` random batches.
    """
    if len(sizes) == 0:
        raise ValueError("expected at least one molecule, got none")
    costs = _costs(sizes.numpy(), bonds.numpy())
    costs = costs[~_mark_largest(costs[:, 2], molecules)]
    sizes = costs[:, 1]
    average = len(sizes) / -(-len(sizes) // molecules)
    pairs = max(int(np.ceil(costs[:, 2].mean() * (average + 1))), int(costs[:, 2].max()))
    random = np.random.default_rng(seed)
    most, number = costs.max(0), min(len(sizes), 2 * int(average) + 2)
    profile = np.zeros(max(number, 2), int)  # the largest of each batch, the second largest, ...
    profile[:2] = sizes.min()  # two places at least, unlike a molecule alone
    for _ in range(_DRAWN):
        drawn = random.choice(len(sizes), number, replace=False)
        drawn = drawn[: max(1, int((costs[drawn, 2].cumsum() <= pairs).sum()))]
        most = np.maximum(most, costs[drawn].sum(0))
        profile[: len(drawn)] = np.maximum(profile[: len(drawn)], np.sort(sizes[drawn])[::-1])
    profile[0] = sizes.max()
    slots = torch.from_numpy(profile[profile > 0])
    groups = group_by_size(slots, _BUCKETS)  # slots of similar size, the smallest first
    buckets = tuple((len(group), int(slots[group].max())) for group in reversed(groups))
    return BatchShape(int(most[1]) + 1, pairs + 1, int(most[3]), buckets)


def _mark_largest(pairs: np.ndarray, molecules: int) -> np.ndarray:
    """Mark molecules with more pairs than a whole batch of the smaller ones: bool `[M]`; a few of the largest."""
    order = np.argsort(-pairs, kind="stable")[:-1]  # the largest first
    smaller = pairs.sum() - pairs[order].cumsum()
    mean = smaller / np.arange(len(order), 0, -1)
    exceeds = pairs[order] > mean * (molecules + 1)
    exceeds[-(-len(pairs) // (10 * molecules)) :] = False
    marked = np.zeros(len(pairs), bool)
    marked[order[np.logical_and.accumulate(exceeds)]] = True
    return marked


def _costs(sizes: np.ndarray, bonds: np.ndarray) -> np.ndarray:
    """Count what each molecule uses of a batch shape: molecules, atoms, pairs, bonds; int64 `[M, 4]`."""
    return np.stack([np.ones_like(sizes), sizes, sizes**2, bonds], 1)
