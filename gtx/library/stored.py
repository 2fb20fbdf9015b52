"""A store that `gtx prepare` made, in place of a table: training rows stay on disk, a few thousand others are held."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from gtx.data import Duplicates, Ledger, MoleculeStore, PairBudgetSampler, Row, column_index, fresh_name
from gtx.data.columns import listed
from gtx.data.file import File
from gtx.data.parquet import strings
from gtx.data.splits import spelled
from gtx.data.targets import read_weights
from gtx.dataset.settings import Dataset, DataSettings
from gtx.errors import InputError, printable
from gtx.files import whole_file
from gtx.library.preparing import PreparedShard, prepared_shards, store_facts
from gtx.molecules import Featuriser
from gtx.tasks import Inferred, Task
from gtx.training.data import MoleculeData, OnDisk
from gtx.training.module import spread_seed
from gtx.training.settings import TrainSettings

PARTS = ("train", "val", "test")
WINDOW = 8
"""Shards whose molecules are shuffled together, and held in memory."""
MOST = 20_000
"""Molecules of each part that are held in memory: those that validate, test, and stand for the training molecules."""
DISTINCT = 1000
"""Different cells of a column from which the task is settled; classes are fewer."""
FIRST = 20
"""Messages of rows that are kept."""
NOWHERE = len(PARTS)


@dataclass(frozen=True)
class StoredDataset(Dataset):
    """Molecules of a store: `split` and `store` have the molecules that are held, of training ones a sample.

    Attributes:
        on_disk: all training molecules.
    """

    on_disk: MoleculesOnDisk = None

    errors_stand: ClassVar[str] = "those of molecules stand in the store, in the column of errors of its Parquet files"
    nearest = None  # the nearest training molecule may not be among those that are held

    @property
    def train(self) -> MoleculesOnDisk:
        return self.on_disk

    @property
    def counts(self) -> dict[str, int]:
        return super().counts | {"train": len(self.on_disk)}

    def fitted(self) -> Task:
        return self.task.fitted_in_parts(self.on_disk.sample, self.on_disk.portions())


def as_prepared(settings: DataSettings) -> DataSettings:
    """Return the settings with the molecules read as they were prepared.

    Raises:
        InputError: another way is asked for, or a division that needs all rows at once.
    """
    facts = store_facts(settings.data)
    featuriser, usual = Featuriser.from_dict(facts["featuriser"]), Featuriser()
    if featuriser.hash != facts["hash"]:
        raise InputError(f"another version of gtx prepared {settings.data}, and describes molecules otherwise")
    if settings.featuriser not in (usual, featuriser):
        asked, own = settings.featuriser.to_dict(), featuriser.to_dict()
        name = next(name for name in asked if asked[name] != own[name])
        raise InputError(f"the molecules of {settings.data} were prepared with {name} {own[name]}, not {asked[name]}")
    refused = {
        f"--split {settings.split}": settings.split != "random",
        "--split-by": settings.split_by,
        "--val and --test": settings.val or settings.test,
        "--folds": settings.folds,
        "columns of features": settings.features,
        "--on-error fail": settings.on_error == "fail",
    }
    if asked := [name for name, given in refused.items() if given]:
        raise InputError(f"of a store that gtx prepare made rows are not held together: leave out {asked[0]}")
    task = settings.task
    of_parts = getattr(task, "per", "molecule") != "molecule" or getattr(task, "also", None)
    if of_parts or getattr(task, "writes", False):
        what = "targets of atoms and bonds need" if of_parts else f"task {task.name} needs"
        raise InputError(f"{what} a table: gtx prepare keeps molecules for one number or class each")
    return replace(settings, featuriser=featuriser)


def load_stored(settings: DataSettings, cache: Path) -> StoredDataset:
    """Read the labels of a store, divide its molecules, and hold those that validate and test.

    Rows of one canonical SMILES are in one part: a hash of it and the seed says in which, so no list of them is needed.

    Args:
        settings: as `as_prepared` gives them.
        cache: a folder; the labels go there, a file for each shard.

    Raises:
        InputError: there are no molecules, or a column or a target cannot be used.
    """
    shards = list(prepared_shards(Path(settings.data)))
    if not any(made.done.kept for made in shards):
        raise InputError(f"{settings.data} holds no molecules: has gtx prepare come to its end?")
    reading = _Reading(settings, shards, cache / "labels")
    found = [reading.read(made) for made in shards]
    labelled = [shard for shard, _ in found if shard.train]
    if not labelled:
        raise InputError(f"none of the training rows can be used: {reading.ledger.summary()}")
    store = MoleculeStore.join([held.store for _, held in found])
    parts = torch.cat([held.parts for _, held in found]).numpy()
    rows = [row._replace(number=i) for i, row in enumerate((row for _, held in found for row in held.rows), start=1)]
    return StoredDataset(
        files=[File(settings.data, reading.shown, reading.shown[2], rows, reading.ledger, 0)],
        task=reading.task,
        store=store,
        rows=np.arange(len(rows)),
        smiles=[row.text for row in rows],
        split={part: np.flatnonzero(parts == number) for number, part in enumerate(PARTS)},
        split_summary=reading.words,
        smiles_column=shards[0].column,
        duplicates=Duplicates(0, 0),
        leaked={},
        on_disk=MoleculesOnDisk(labelled, store.subset(np.flatnonzero(parts == 0))),
    )


class _InMemory(NamedTuple):
    """Molecules of a shard in memory, their rows, and the part of the split of each, uint8 `[n]`."""

    store: MoleculeStore
    rows: list[Row]
    parts: Tensor


class _Reading:
    """Reads the rows of one shard after the other."""

    def __init__(self, settings: DataSettings, shards: Sequence[PreparedShard], folder: Path) -> None:
        self.settings, self.folder, self.ledger = settings, folder, Ledger()
        if not settings.target_columns:
            names = listed(pq.read_schema(shards[0].rows).names)
            raise InputError(f"say what to predict: give --target-columns out of the columns {names}")
        given = (*settings.target_columns, settings.weight_column, settings.split_column)
        self.columns = list(dict.fromkeys(name for name in given if name))
        self.shown = [fresh_name(self.columns, name) for name in ("file", "row", "canonical_smiles")] + self.columns
        self.task = (settings.task or Inferred(settings.target_columns)).infer_from_table([self._cells(shards)])
        molecules = sum(made.done.kept for made in shards)
        if settings.split_column:
            self._follow_column(shards, molecules)
        else:
            _, *shares = np.array(settings.split_sizes) / sum(settings.split_sizes)
            self.val, self.test = (min(share, MOST / molecules) for share in shares)
            self.sampled = min(1 - self.val - self.test, MOST / molecules)
            few = f", {MOST:,} molecules at most for val and for test" if molecules * max(shares) > MOST else ""
            self.words = f"random, by a hash of the SMILES, seed {settings.seed}{few}"

    def _follow_column(self, shards: Sequence[PreparedShard], molecules: int) -> None:
        """Hold validation and test rows, as a column defines them, in memory: all, or `MOST` at random."""
        name, counts = self.settings.split_column, Counter()
        for made in shards:
            for found in pc.value_counts(self._table(made, [name]).column(name)).to_pylist():
                counts[spelled(str(found["values"] or ""))] += found["counts"]
        self.val, self.test = (min(1.0, MOST / max(counts[part], 1)) for part in PARTS[1:])
        self.sampled = min(1.0, MOST / molecules)
        many = [f"of {counts[part]:,} {part} rows {MOST:,} at random" for part in PARTS[1:] if counts[part] > MOST]
        self.words = f"column {name!r}{''.join(f', {words}' for words in many)}"

    def read(self, made: PreparedShard) -> tuple[Labelled, _InMemory]:
        """Write the labels of a shard, and read the molecules that are held."""
        table = self._table(made, [made.smiles, made.error, *self.columns])
        errors = strings(table.column(made.error))
        cells = zip(*(strings(table.column(name)) for name in self.columns), strict=True)
        every = zip(errors, strings(table.column(made.smiles)), cells, strict=True)
        first = made.shard.first + 1
        rows = [Row(first + i, list(own), text) for i, (error, text, own) in enumerate(every) if not error]
        if len(rows) != made.done.kept:
            raise InputError(
                f"{made.rows} has been changed: {made.done.kept} rows without an error were expected, got {len(rows)}; "
                "columns may be added, and rows and the columns of gtx stay as they were"
            )
        ledger = Ledger()
        labels = self._labels(made, rows, ledger)
        drawn = torch.tensor([_drawn(row.text, self.settings.seed) for row in rows], dtype=torch.float64)
        part = self._parts(rows, drawn, ledger)
        self._add(made, [error for error in errors if error], ledger)
        known = ~labels["y"].isnan().all(1)
        if "bounds" in labels:
            known = known | ~labels["bounds"].isnan().all(1)
        if "weights" in labels:
            known = known & ((labels["weights"] > 0) | (part != 0))
        known = known & torch.tensor([row.number not in ledger.errors for row in rows], dtype=torch.bool)
        part[~known] = NOWHERE
        file = self.folder / Path(made.shard.part).with_suffix(".safetensors")
        with whole_file(file) as out:
            out.write(save({**labels, "part": part}))
        found = Labelled(made.tensors, file, int((part == 0).sum()))
        index = ((part == 1) | (part == 2) | ((part == 0) & (drawn >= 1 - self.sampled))).nonzero().flatten()
        held = [rows[i] for i in index.tolist()]
        held = [row._replace(cells=[made.shard.file, str(row.number), row.text, *row.cells]) for row in held]
        return found, _InMemory(found.store(index), held, part[index])

    def _cells(self, shards: Sequence[PreparedShard]) -> _Cells:
        """Collect the distinct cells of each target, as many as are needed to infer a task."""
        found: dict[str, dict[str, None]] = {name: {} for name in self.settings.target_columns}
        for made in shards:
            if wanted := [name for name, cells in found.items() if len(cells) < DISTINCT]:
                table = self._table(made, wanted)
                for name in wanted:
                    cells = strings(pc.unique(table.column(name)).slice(0, DISTINCT))
                    found[name] |= dict.fromkeys(cells)
        return _Cells({name: list(cells) for name, cells in found.items()})

    def _table(self, made: PreparedShard, columns: Sequence[str]) -> pa.Table:
        try:
            with pq.ParquetFile(made.rows) as file:
                for name in columns:
                    column_index(file.schema_arrow.names, name)
                return file.read(columns=list(dict.fromkeys(columns)))
        except (OSError, pa.ArrowException) as reason:
            raise InputError(f"{made.rows} cannot be read ({printable(str(reason))}): prepare it again") from None

    def _labels(self, made: PreparedShard, rows: Sequence[Row], ledger: Ledger) -> dict[str, Tensor]:
        """`y`, and where there are any `bounds` and `weights`, as `MoleculeStore` has them."""
        try:
            labels = {"y": self.task.parse(rows, self.columns, ledger)}
            if (bounds := self.task.parse_bounds(rows, self.columns)) is not None:
                labels["bounds"] = bounds
            if self.settings.weight_column:
                labels["weights"] = read_weights(rows, self.columns, self.settings.weight_column, ledger)
        except InputError as reason:
            raise InputError(f"{made.shard.file}: {reason}") from None
        return {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in labels.items()}

    def _parts(self, rows: Sequence[Row], drawn: Tensor, ledger: Ledger) -> Tensor:
        """uint8 `[n]`: the number of each molecule's part in `PARTS`, or `NOWHERE`."""
        if self.settings.split_column is None:
            return torch.where(drawn < self.test, 2, torch.where(drawn < self.test + self.val, 1, 0)).to(torch.uint8)
        name, place = self.settings.split_column, self.columns.index(self.settings.split_column)
        parts = [spelled(row.cells[place]) for row in rows]
        for row, part in zip(rows, parts, strict=True):
            if part is None:
                reason = "is none of train, val and test; the row is left out"
                ledger.warn(row.number, name, row.cells[place], reason)
        found = torch.tensor([NOWHERE if part is None else PARTS.index(part) for part in parts], dtype=torch.uint8)
        held = torch.tensor([1.0, self.val, self.test, 1.0], dtype=torch.float64)[found.long()]
        return torch.where(drawn < held, found, NOWHERE).to(torch.uint8)

    def _add(self, made: PreparedShard, errors: Sequence[str], ledger: Ledger) -> None:
        """Count what came of the rows of a shard; of all messages the first few stay, under numbers of no row."""
        total = self.ledger
        total.rows += made.done.rows
        total.kinds += Counter(made.done.kinds) + ledger.kinds
        total.warned += made.done.warned + ledger.warned
        messages = [*errors, *ledger.errors.values()], ledger.warnings.values()
        for said, own in zip((total.errors, total.warnings), messages, strict=True):
            for message in islice(own, FIRST - len(said)):
                said[len(said) - FIRST] = f"{made.shard.file}, {message}"


class _Cells:
    """The cells of columns, as `gtx.dataset.File` gives them to a task that is to be settled."""

    def __init__(self, cells: dict[str, list[str]]) -> None:
        self._found = cells

    def cells(self, column: str) -> list[str]:
        return self._found[column]


def _drawn(smiles: str, seed: int) -> float:
    """Return a number from 0 to 1 for a molecule, the same wherever it stands."""
    return int.from_bytes(blake2b(f"{seed} {smiles}".encode(), digest_size=8).digest()) / 2**64


# --- Training molecules on disk, of which a window at a time is read.


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
        """List the molecules of a part of the split, int64 `[n]`."""
        return (load_file(self.labels)["part"] == PARTS.index(name)).nonzero().flatten()

    def store(self, index: Tensor) -> MoleculeStore:
        """Read some molecules of the shard from disk, with their labels."""
        labels = {name: tensor[index] for name, tensor in load_file(self.labels).items() if name != "part"}
        return replace(MoleculeStore.open(self.molecules).subset(index), **labels)


@dataclass(frozen=True)
class MoleculesOnDisk(OnDisk):
    """Training molecules of a store on disk, of which a window at a time is read.

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

    def data(self, task: Task, val: MoleculeStore, settings: TrainSettings, seed: int = 0) -> DataOnDisk:
        return DataOnDisk(task, self, val, settings, seed)

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
        """Return the molecules `index`, int64 `[k]`, ascending; no others are read."""
        parts, first = [], 0
        for shard in self.shards:
            own = index[(index >= first) & (index < first + shard.train)] - first
            parts.append(shard.store(shard.part("train")[own]))
            first += shard.train
        return MoleculeStore.join(parts)


# --- Batches, a window at a time.


class WindowBatches:
    """The batches of one epoch: of each window, its molecules shuffled and cut by the budget of pairs.

    Every process that trains has batches of its own, as many as the others, and reads their molecules alone.

    Args:
        windows: in the order in which they are read.
        sampler: of molecules of these sizes, those of the window of that number.
        made: what batches are cut out of, of molecules that were read.
    """

    def __init__(
        self,
        windows: list[Window],
        sampler: Callable[[Tensor, int], PairBudgetSampler],
        made: Callable[[MoleculeStore], Any],
    ) -> None:
        self.windows, self.sampler, self.made = windows, sampler, made

    @cached_property
    def _count(self) -> int:
        return sum(len(self.sampler(window.sizes, number)) for number, window in enumerate(self.windows))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for number, window in enumerate(self.windows):
            batches = list(self.sampler(window.sizes, number))
            wanted = torch.cat(batches).unique()
            examples = self.made(window.store(wanted))
            for batch in batches:
                yield examples.batch(torch.searchsorted(wanted, batch).to(examples.device))


class DataOnDisk(MoleculeData):
    """Data module like `MoleculeData`, with training molecules on disk and validation molecules in memory.

    Args:
        task: what is learned, fitted.
        train: training molecules; those that are held of them are tried before training begins.
        val: as of `MoleculeData`.
        settings: the pair budget and its like.
        seed: of this member.
    """

    def __init__(
        self, task: Task, train: MoleculesOnDisk, val: MoleculeStore, settings: TrainSettings, seed: int = 0
    ) -> None:
        super().__init__(task, train.sample, val, settings=settings, seed=seed)
        self._trial, self.train = self.train, train

    @property
    def trial(self) -> Any:
        return self._trial

    def setup(self, stage: str) -> None:
        device = self.trainer.strategy.root_device
        self._trial, self.val = self._trial.to(device), self.val.to(device)

    def train_dataloader(self) -> Iterable[Any]:
        self._call_before_batches()
        epoch = self.trainer.current_epoch
        molecules, device = self.settings.molecules_per_batch(len(self.train)), self.val.device
        dealt = {"rank": self.trainer.global_rank, "replicas": self.trainer.world_size}

        def sampler(sizes: Tensor, number: int) -> PairBudgetSampler:
            seed, jitter = spread_seed(self.seed, epoch, number), self.settings.jitter
            return PairBudgetSampler(sizes, self.budget, max_molecules=molecules, jitter=jitter, seed=seed, **dealt)

        windows = self.train.windows(spread_seed(self.seed, epoch))
        return WindowBatches(windows, sampler, lambda store: self.task.examples(store).to(device))
