"""Training from a store that `gtx prepare` made: training rows stay on disk, a sample and the others are in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file, save
from torch import Tensor

from gtx.bulk.preparing import PreparedShard, prepared_shards, store_facts
from gtx.data import MoleculeStore, PairBudgetSampler, Row, RowLog
from gtx.data.columns import find_column, listed
from gtx.data.parquet import strings
from gtx.data.row_log import InputFile
from gtx.data.splits import parse_split
from gtx.data.table_writer import find_unused_column_name
from gtx.data.targets import DuplicateSummary, read_weights
from gtx.errors import InputError, printable
from gtx.files import whole_file
from gtx.molecules import Featuriser
from gtx.tasks import Task
from gtx.tasks.inferred import InferredTask
from gtx.tasks.task import check_task_capability
from gtx.training.data import MoleculeDataModule, OnDisk
from gtx.training.module import spread_seed
from gtx.training.settings import TrainSettings
from gtx.training_data.settings import Dataset, DataSettings

PARTS = ("train", "val", "test")
WINDOW = 8
"""Number of shards that are in memory at a time, and whose molecules are shuffled together."""
MOST = 20_000
"""Maximum number of validation molecules, of test molecules, and of sampled training molecules in memory."""
DISTINCT = 1000
"""Distinct cells of a column that are read to infer the task; there are fewer classes."""
FIRST = 20
"""Number of error messages, and of warnings, that are kept."""
NOWHERE = len(PARTS)


@dataclass(frozen=True)
class StoredDataset(Dataset):
    """Molecules of a store: `split` and `store` have those in memory, with a sample of the training molecules.

    Attributes:
        on_disk: all training molecules.
    """

    on_disk: MoleculesOnDisk = None  # type: ignore[assignment]  # fields before it have defaults

    errors_stand: ClassVar[str] = "those of molecules stand in the store, in the column of errors of its Parquet files"
    nearest = None  # the nearest training molecule may not be in memory

    @property
    def train(self) -> MoleculesOnDisk:  # type: ignore[override]  # training asks for OnDisk first
        return self.on_disk

    @property
    def counts(self) -> dict[str, int]:
        return super().counts | {"train": len(self.on_disk)}

    def fitted(self) -> Task:
        return self.task.fitted_in_parts(self.on_disk.sample, self.on_disk.portions())


def use_prepared_featuriser(settings: DataSettings) -> DataSettings:
    """Return the settings with the featuriser with which `gtx prepare` made the store.

    Raises:
        InputError: the settings read molecules otherwise, or need all rows at once.
    """
    facts = store_facts(settings.data)
    featuriser, usual = cast(Featuriser, Featuriser.from_dict(facts["featuriser"])), Featuriser()
    if featuriser.hash != facts["hash"]:
        raise InputError(f"another version of gtx prepared {settings.data}, with other features of molecules")
    if settings.featuriser not in (usual, featuriser):
        now, then = settings.featuriser.to_dict(), featuriser.to_dict()
        name = next(name for name in now if now[name] != then[name])
        raise InputError(f"the molecules of {settings.data} were prepared with {name} {then[name]}, not {now[name]}")
    refused = {
        f"--split {settings.split}": settings.split != "random",
        "--split-by": settings.split_by,
        "--val and --test": settings.val or settings.test,
        "--folds": settings.folds,
        "columns of features": settings.features,
        "--on-error fail": settings.on_error == "fail",
    }
    if options := [name for name, value in refused.items() if value]:
        raise InputError(f"{options[0]} needs a table; a store that gtx prepare made does not support it")
    check_task_capability(settings.task, "store")
    return replace(settings, featuriser=featuriser)


def load_prepared_dataset(settings: DataSettings, cache: Path) -> StoredDataset:
    """Load a data set from a store on disk: labels, split, and the validation and test molecules.

    Training molecules are read from disk when they are needed.

    Rows of one canonical SMILES are in one set: a hash of it and the seed decides, so no list of SMILES is needed.

    Args:
        settings: from `use_prepared_featuriser`.
        cache: a folder for the labels, a file for each shard.

    Raises:
        InputError: there are no molecules, or a column or a target cannot be used.
    """
    shards = list(prepared_shards(Path(settings.data)))
    if not any(made.done.kept for made in shards):
        raise InputError(f"{settings.data} holds no molecules: did gtx prepare finish?")
    reading = _Reading(settings, shards, cache / "labels")
    found = [reading.read(made) for made in shards]
    labelled = [shard for shard, _ in found if shard.train]
    if not labelled:
        raise InputError(f"none of the training rows can be used: {reading.row_log.summary()}")
    store = MoleculeStore.join([held.store for _, held in found])
    parts = torch.cat([held.parts for _, held in found]).numpy()
    rows = [row._replace(number=i) for i, row in enumerate((row for _, held in found for row in held.rows), start=1)]
    return StoredDataset(
        files=[InputFile(settings.data, reading.shown, reading.shown[2], rows, reading.row_log, 0)],
        task=reading.task,
        store=store,
        rows=np.arange(len(rows)),
        smiles=[row.text for row in rows],
        split={part: np.flatnonzero(parts == number) for number, part in enumerate(PARTS)},
        split_summary=reading.words,
        smiles_column=shards[0].column,
        duplicates=DuplicateSummary(0, 0),
        leaked={},
        on_disk=MoleculesOnDisk(labelled, store.subset(np.flatnonzero(parts == 0))),
    )


class _InMemory(NamedTuple):
    """Molecules of a shard in memory, their rows, and the number of each in `PARTS`, uint8 `[n]`."""

    store: MoleculeStore
    rows: list[Row]
    parts: Tensor


class _Reading:
    """Reader of the labels of shards."""

    def __init__(self, settings: DataSettings, shards: Sequence[PreparedShard], folder: Path) -> None:
        self.settings, self.folder, self.row_log = settings, folder, RowLog()
        if not settings.target_columns:
            names = listed(pq.read_schema(shards[0].rows).names)
            raise InputError(f"--target-columns is missing; the columns are {names}")
        given = (*settings.target_columns, settings.weight_column, settings.split_column)
        self.columns = list(dict.fromkeys(name for name in given if name))
        self.shown = [
            find_unused_column_name(self.columns, name) for name in ("file", "row", "canonical_smiles")
        ] + self.columns
        self.task = (settings.task or InferredTask(settings.target_columns)).infer_from_table(
            [self._cells(shards)]  # type: ignore[list-item]  # inference reads `cells` alone
        )
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
        """Keep the validation and test rows of a split column in memory: all, or `MOST` at random."""
        name, counts = self.settings.split_column, Counter[str | None]()
        assert name is not None
        for made in shards:
            for found in pc.value_counts(self._table(made, [name]).column(name)).to_pylist():
                counts[parse_split(str(found["values"] or ""))] += found["counts"]
        self.val, self.test = (min(1.0, MOST / max(counts[part], 1)) for part in PARTS[1:])
        self.sampled = min(1.0, MOST / molecules)
        many = [f"of {counts[part]:,} {part} rows {MOST:,} at random" for part in PARTS[1:] if counts[part] > MOST]
        self.words = f"column {name!r}{''.join(f', {words}' for words in many)}"

    def read(self, made: PreparedShard) -> tuple[Labelled, _InMemory]:
        """Write the labels of a shard, and load its molecules that are kept in memory."""
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
        row_log = RowLog()
        labels = self._labels(made, rows, row_log)
        drawn = torch.tensor([_drawn(row.text, self.settings.seed) for row in rows], dtype=torch.float64)
        part = self._parts(rows, drawn, row_log)
        self._add(made, [error for error in errors if error], row_log)
        known = ~labels["y"].isnan().all(1)
        if "bounds" in labels:
            known = known | ~labels["bounds"].isnan().all(1)
        if "weights" in labels:
            known = known & ((labels["weights"] > 0) | (part != 0))
        known = known & torch.tensor([row.number not in row_log.errors for row in rows], dtype=torch.bool)
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
                    find_column(file.schema_arrow.names, name)
                return file.read(columns=list(dict.fromkeys(columns)))
        except (OSError, pa.ArrowException) as reason:
            raise InputError(f"{made.rows} cannot be read ({printable(str(reason))}): prepare it again") from None

    def _labels(self, made: PreparedShard, rows: Sequence[Row], row_log: RowLog) -> dict[str, Tensor]:
        """Read `y` and, if there are any, `bounds` and `weights`, with shapes as in `MoleculeStore`."""
        try:
            labels = {"y": self.task.parse(rows, self.columns, row_log)}
            if (bounds := self.task.parse_bounds(rows, self.columns)) is not None:
                labels["bounds"] = bounds
            if self.settings.weight_column:
                labels["weights"] = read_weights(rows, self.columns, self.settings.weight_column, row_log)
        except InputError as reason:
            raise InputError(f"{made.shard.file}: {reason}") from None
        return {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in labels.items()}

    def _parts(self, rows: Sequence[Row], drawn: Tensor, row_log: RowLog) -> Tensor:
        """Return the number of each molecule in `PARTS`, or `NOWHERE`, uint8 `[n]`."""
        if self.settings.split_column is None:
            return torch.where(drawn < self.test, 2, torch.where(drawn < self.test + self.val, 1, 0)).to(torch.uint8)
        name, place = self.settings.split_column, self.columns.index(self.settings.split_column)
        parts = [parse_split(row.cells[place]) for row in rows]
        for row, part in zip(rows, parts, strict=True):
            if part is None:
                reason = "is none of train, val and test; the row is left out"
                row_log.warn(row.number, name, row.cells[place], reason)
        found = torch.tensor([NOWHERE if part is None else PARTS.index(part) for part in parts], dtype=torch.uint8)
        held = torch.tensor([1.0, self.val, self.test, 1.0], dtype=torch.float64)[found.long()]
        return torch.where(drawn < held, found, NOWHERE).to(torch.uint8)

    def _add(self, made: PreparedShard, errors: Sequence[str], row_log: RowLog) -> None:
        """Add the counts of a shard; the first few messages are kept, under negative row numbers."""
        total = self.row_log
        total.rows += made.done.rows
        total.error_counts += Counter(made.done.error_counts) + row_log.error_counts
        total.warned += made.done.warned + row_log.warned
        for message in islice([*errors, *row_log.errors.values()], FIRST - len(total.errors)):
            total.errors[len(total.errors) - FIRST] = f"{made.shard.file}, {message}"
        for messages in islice(row_log.warnings.values(), FIRST - len(total.warnings)):
            total.warnings[len(total.warnings) - FIRST] = [f"{made.shard.file}, {message}" for message in messages]


class _Cells:
    """Distinct cells of columns, in place of an `InputFile`, from which a task is inferred."""

    def __init__(self, cells: dict[str, list[str]]) -> None:
        self._found = cells

    def cells(self, column: str) -> list[str]:
        return self._found[column]


def _drawn(smiles: str, seed: int) -> float:
    """Return a pseudo-random number in [0, 1) that depends on the molecule and the seed alone."""
    return int.from_bytes(blake2b(f"{seed} {smiles}".encode(), digest_size=8).digest()) / 2**64


# --- Training molecules on disk, of which a window at a time is read.


@dataclass(frozen=True)
class Labelled:
    """Shard of a store with the labels of a run.

    Attributes:
        molecules: the file of the molecules.
        labels: the file with `y`, if there are any `bounds` and `weights`, with shapes as in `MoleculeStore`; and
            `part`, uint8 `[m]`, the number in `PARTS`, or `NOWHERE`.
        train: number of training molecules.
    """

    molecules: Path
    labels: Path
    train: int = 0

    def part(self, name: str) -> Tensor:
        """Return the indices of training, validation or test molecules, int64 `[n]`."""
        return (load_file(self.labels)["part"] == PARTS.index(name)).nonzero().flatten()

    def store(self, index: Tensor) -> MoleculeStore:
        """Read some molecules of the shard from disk, with their labels."""
        labels: dict[str, Any] = {n: tensor[index] for n, tensor in load_file(self.labels).items() if n != "part"}
        return replace(MoleculeStore.open(self.molecules).subset(index), **labels)


@dataclass(frozen=True)
class MoleculesOnDisk(OnDisk):
    """Training molecules of a store, read a window of shards at a time.

    Attributes:
        shards: the files; those without training molecules are left out.
        sample: random sample of a few thousand molecules.
    """

    shards: Sequence[Labelled]
    sample: MoleculeStore

    @cached_property
    def num_graphs(self) -> int:
        """Number of training molecules."""
        return sum(shard.train for shard in self.shards)

    def __len__(self) -> int:
        return self.num_graphs

    def portions(self) -> Iterator[MoleculeStore]:
        """Yield all training molecules, a shard at a time."""
        return (shard.store(shard.part("train")) for shard in self.shards)

    def data(self, task: Task, val: MoleculeStore, settings: TrainSettings, seed: int = 0) -> DataOnDisk:
        return DataOnDisk(task, self, val, settings, seed)

    def windows(self, seed: int) -> list[Window]:
        """Return all shards in random order, `WINDOW` at a time."""
        order = np.random.default_rng(seed).permutation(len(self.shards)).tolist()
        starts = range(0, len(order), WINDOW)
        return [Window([self.shards[i] for i in order[start : start + WINDOW]]) for start in starts]


@dataclass(frozen=True)
class Window:
    """Shards whose training molecules are shuffled together, with consecutive indices."""

    shards: Sequence[Labelled]

    @property
    def sizes(self) -> Tensor:
        """Number of atoms of each molecule, int64 `[n]`."""
        return torch.cat([MoleculeStore.open(s.molecules).sizes[s.part("train")] for s in self.shards])

    def store(self, index: Tensor) -> MoleculeStore:
        """Read the molecules `index`, int64 `[k]`, ascending."""
        parts, first = [], 0
        for shard in self.shards:
            own = index[(index >= first) & (index < first + shard.train)] - first
            parts.append(shard.store(shard.part("train")[own]))
            first += shard.train
        return MoleculeStore.join(parts)


# --- Batches, a window at a time.


class WindowBatches:
    """Batches of one epoch: window after window, the molecules shuffled and cut by the budget of pairs.

    Each process of a distributed training has its own batches, the same number as the others, and reads only their
    molecules.

    Args:
        windows: in the order of reading.
        sampler: makes the sampler of a window, given the sizes of its molecules and its number.
        make_examples: turns the molecules of a window into examples that batches are cut from.
    """

    def __init__(
        self,
        windows: list[Window],
        sampler: Callable[[Tensor, int], PairBudgetSampler],
        make_examples: Callable[[MoleculeStore], Any],
    ) -> None:
        self.windows = windows
        self.sampler = sampler
        self.make_examples = make_examples

    @cached_property
    def _count(self) -> int:
        return sum(len(self.sampler(window.sizes, number)) for number, window in enumerate(self.windows))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for number, window in enumerate(self.windows):
            batches = list(self.sampler(window.sizes, number))
            wanted = torch.cat(batches).unique()
            examples = self.make_examples(window.store(wanted))
            for batch in batches:
                yield examples.batch(torch.searchsorted(wanted, batch).to(examples.device))


class DataOnDisk(MoleculeDataModule):
    """Data module like `MoleculeDataModule`, with training molecules on disk and validation molecules in memory.

    Args:
        task: the fitted task.
        train: training molecules; the checks before training use their sample.
        val: validation molecules.
        settings: the pair budget and other settings of batches.
        seed: seed of the ensemble member.
    """

    def __init__(
        self, task: Task, train: MoleculesOnDisk, val: MoleculeStore, settings: TrainSettings, seed: int = 0
    ) -> None:
        super().__init__(task, train.sample, val, settings=settings, seed=seed)
        self._forecast_examples = self.train
        self.train = train

    @property
    def forecast_examples(self) -> Any:
        return self._forecast_examples

    def setup(self, stage: str) -> None:
        assert self.trainer is not None, "Lightning sets it"
        device = self.trainer.strategy.root_device
        self._forecast_examples, self.val = self._forecast_examples.to(device), self.val.to(device)

    def train_dataloader(self) -> Iterable[Any]:
        assert self.trainer is not None, "Lightning sets it"
        self._call_before_batches()
        epoch, rank, replicas = self.trainer.current_epoch, self.trainer.global_rank, self.trainer.world_size
        molecules, device = self.settings.molecules_per_batch(len(self.train)), self.val.device

        def sampler(sizes: Tensor, number: int) -> PairBudgetSampler:
            seed, jitter = spread_seed(self.seed, epoch, number), self.settings.jitter
            return PairBudgetSampler(
                sizes, self.budget, max_molecules=molecules, jitter=jitter, seed=seed, rank=rank, replicas=replicas
            )

        windows = self.train.windows(spread_seed(self.seed, epoch))
        return WindowBatches(windows, sampler, lambda store: self.task.examples(store).to(device))
