"""A table to molecules with labels, divided into training, validation and test rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gtx.data import (
    Duplicates,
    Featurised,
    Ledger,
    MoleculeStore,
    Row,
    Split,
    check_shares,
    column_index,
    column_split,
    conflicting_duplicates,
    featurise,
    leakage,
    open_table,
    random_split,
    scaffold_split,
)
from gtx.data.columns import listed
from gtx.data.weights import read_weights
from gtx.errors import InputError
from gtx.molecules import Featuriser, scaffold
from gtx.tasks import Inferred, Task


@dataclass(frozen=True)
class DataSettings:
    """Which table, which columns, how molecules are read and rows are divided.

    Attributes:
        data: what `gtx.data.open_table` reads.
        target_columns: the targets, where `task` does not name them.
        smiles_column: default as `gtx.data.open_table` says.
        task: what is learned of them; default: as `gtx.tasks.Inferred` says.
        split: "random" or "scaffold", where neither a column nor files say.
        split_column: the column that spells the split out.
        val: a file of validation rows beside `data`.
        test: a file of test rows beside `data`.
        split_sizes: shares of train, val and test, which add up to 1.
        seed: of the random split.
        group_duplicates: a molecule that the table holds more than once stays in one part of the random split.
        on_error: "report" keeps bad rows with their error, "fail" stops at the first.
        featuriser: how molecules are read.
        workers: processes that read molecules; default as many as there are cores.
        units: of targets, by name, for the report.
        weight_column: how much say each row has in the loss, 0 or more; a training row of 0 is left out.

    Raises:
        InputError: `split_sizes` or `seed` is out of its range.
    """

    data: str
    target_columns: tuple[str, ...] = ()
    smiles_column: str | None = None
    task: Task | Inferred | None = None
    split: Literal["random", "scaffold"] = "random"
    split_column: str | None = None
    val: str | None = None
    test: str | None = None
    split_sizes: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    group_duplicates: bool = True
    on_error: Literal["report", "fail"] = "report"
    featuriser: Featuriser = field(default_factory=Featuriser)
    workers: int | None = None
    units: dict[str, str] = field(default_factory=dict)
    weight_column: str | None = None

    def __post_init__(self) -> None:
        check_shares(self.split_sizes)
        if self.seed < 0:
            raise InputError(f"split_seed: expected a value 0 or more, got {self.seed}")
        if self.task is not None:
            if self.target_columns and tuple(self.target_columns) != self.task.targets:
                raise InputError(f"target_columns {self.target_columns} are not those of the task, {self.task.targets}")
            object.__setattr__(self, "target_columns", self.task.targets)


@dataclass(frozen=True)
class File:
    """One of the files read: its rows are `start` to `start + len(rows)` of all rows."""

    source: str
    columns: list[str]
    smiles_column: str
    rows: list[Row]
    ledger: Ledger
    start: int

    def cells(self, column: str) -> list[str]:
        """The cells of a column, but for rows that are broken.

        Raises:
            InputError: there is no such column, or several.
        """
        with _named(self):
            place = column_index(self.columns, column)
        return [row.cells[place] for row in self.rows if not row.error]


@dataclass(frozen=True)
class Dataset:
    """All rows of the files, and the molecules that could be read.

    Attributes:
        files: the table, then the files of validation and test rows, if any.
        task: what is learned, settled by the table.
        store: the m molecules that could be read, with targets `[m, T]` in their own units, NaN for blanks.
        rows: int64 `[m]`, the molecules' row indices among all rows.
        smiles: their canonical SMILES.
        split: molecule indices of "train", "val" and "test"; molecules without any label are in none.
        split_words: how the rows were divided.
        duplicates: molecules found more than once.
        leaked: molecules on both sides of two parts.
    """

    files: list[File]
    task: Task
    store: MoleculeStore
    rows: np.ndarray
    smiles: list[str]
    split: Split
    split_words: str
    duplicates: Duplicates
    leaked: dict[tuple[str, str], int]

    @property
    def y(self) -> np.ndarray:
        """float64 `[m, T]`: the targets in their own units."""
        return self.store.y.numpy()

    def place(self, molecule: int) -> tuple[File, Row]:
        """The file and the row of a molecule."""
        at = self.rows[molecule]
        file = next(file for file in reversed(self.files) if file.start <= at)
        return file, file.rows[at - file.start]


def load(settings: DataSettings, cache: str | Path | None = None, progress: bool = False) -> Dataset:
    """Read, check, featurise and divide.

    Args:
        settings: what and how.
        cache: folder for featurised molecules, see `gtx.data.featurise`.
        progress: show a progress bar.

    Raises:
        InputError: for a file, column, target or split that cannot be used; with `on_error="fail"` for a bad row.
    """
    files = _read(settings)
    if not settings.target_columns:
        names = listed(files[0].columns)
        raise InputError(f"say what to predict: give --target-columns out of the columns {names}")
    task, y, bounds = _targets(files, settings)
    weights = _weights(files, settings, task)
    rows = [row for file in files for row in file.rows]
    done = _featurise(files, rows, settings, cache, progress)
    if settings.on_error == "fail":
        for file in files:
            if file.ledger.errors:  # the first by row, whichever check found it
                raise InputError(f"{file.source}: {file.ledger.errors[min(file.ledger.errors)]}")
    refused = np.array([file.ledger.errors.get(row.number) is not None for file in files for row in file.rows], bool)
    keep = done.good[~refused[done.good]]  # molecules whose row has no error of another kind
    if not len(keep):
        raise InputError(f"no row of {settings.data} can be used; {files[0].ledger.summary()}: {_first_error(files)}")
    labelled = keep[_labelled(y, bounds)[keep]]
    by_row, words = _split(files, settings, labelled, done)
    place = np.full(len(rows), -1)
    place[keep] = np.arange(len(keep))
    usable = set(labelled.tolist())
    split = {part: np.array([place[i] for i in index if i in usable], np.int64) for part, index in by_row.items()}
    if weights is not None:
        split["train"] = split["train"][weights[keep][split["train"]] > 0]
    if not len(split["train"]):
        raise InputError(f"none of the training rows can be used: {files[0].ledger.summary()}")
    smiles = [done.smiles[i] for i in keep]
    store = done.store.subset(np.searchsorted(done.good, keep)).with_targets(y[keep])
    store = replace(store, bounds=_kept(bounds, keep), weights=_kept(weights, keep))
    return Dataset(
        files,
        task,
        store,
        keep,
        smiles,
        split,
        words,
        conflicting_duplicates(smiles, y[keep]),
        leakage(smiles, split),
    )


def fingerprint(settings: DataSettings) -> dict[str, Any]:
    """Plain values that tell these data, read and divided this way, from any other; for a run's `config.yaml`."""

    def described(source: str | None) -> dict[str, str] | None:
        if source is None:
            return None
        path = Path(source)
        return {"file": path.name, "sha256": sha256(path)} if path.is_file() else None

    how = {"split": settings.split, "split_sizes": list(settings.split_sizes), "split_seed": settings.seed}
    if settings.split == "random" and settings.group_duplicates:  # absent before there was a choice: they were not
        how["group_duplicates"] = True
    if settings.split_column:
        how = {"split_column": settings.split_column}
    if settings.weight_column:
        how["weight_column"] = settings.weight_column
    return {
        "data": described(settings.data),
        "val": described(settings.val),
        "test": described(settings.test),
        "smiles_column": settings.smiles_column,
        **how,
        "featuriser": {**settings.featuriser.to_dict(), "hash": settings.featuriser.hash},
    }


def sha256(path: str | Path) -> str:
    """Of a file's bytes."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read(settings: DataSettings) -> list[File]:
    files, start = [], 0
    for source in (settings.data, settings.val, settings.test):
        if source is None:
            continue
        table = open_table(source, settings.smiles_column)
        rows, ledger = list(table.rows), Ledger()
        ledger.enter(rows)
        files.append(File(source, table.columns, table.smiles_column, rows, ledger, start))
        start += len(rows)
    if not files[0].rows:
        raise InputError(f"{settings.data} has a header and no rows; there is nothing to train on")
    return files


def _targets(files: Sequence[File], settings: DataSettings) -> tuple[Task, np.ndarray, np.ndarray | None]:
    """The task, settled, and the targets of all rows; and bounds of those that were not measured, if there are any."""
    for file in files:
        if file.smiles_column in settings.target_columns:
            raise InputError(f"{file.smiles_column!r} holds the molecules; it cannot be a target too")
    task = (settings.task or Inferred(settings.target_columns)).settle(files)
    parts, bounds = [], []
    for file in files:
        with _named(file):
            parts.append(task.parse(file.rows, file.columns, file.ledger))
            bounds.append(task.parse_bounds(file.rows, file.columns))
    known = None if bounds[0] is None else np.concatenate(bounds)
    return task, np.concatenate(parts), None if known is None or np.isnan(known).all() else known


def _labelled(y: np.ndarray, bounds: np.ndarray | None) -> np.ndarray:
    """bool `[n]`: the rows of which anything is known."""
    known = ~np.isnan(y).all(axis=1)
    return known if bounds is None else known | ~np.isnan(bounds).all(axis=1)


def _kept(values: np.ndarray | None, rows: np.ndarray) -> Tensor | None:
    return None if values is None else torch.from_numpy(values[rows])


def _weights(files: Sequence[File], settings: DataSettings, task: Task) -> np.ndarray | None:
    """The weights of all rows, float64 `[n]`; a cell that is none is an error of its row."""
    name = settings.weight_column
    if name is None:
        return None
    if task.writes:
        raise InputError(f"--weight-column: the task {task.name} knows no weights of rows")
    if name in task.targets:
        raise InputError(f"{name!r} is a target; it cannot be the weight of its row too")
    parts = []
    for file in files:
        with _named(file):
            parts.append(read_weights(file.rows, file.columns, name, file.ledger))
    return np.concatenate(parts)


@contextmanager
def _named(file: File) -> Iterator[None]:
    """An error of within says which file it is about."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{file.source}: {error}") from None


def _featurise(
    files: Sequence[File], rows: Sequence[Row], settings: DataSettings, cache: str | Path | None, progress: bool
) -> Featurised:
    fail = settings.on_error == "fail"
    if fail and (bad := [file.start + min(file.ledger.errors) for file in files if file.ledger.errors]):
        rows, cache = rows[: bad[0]], None  # what follows the first bad row is not read
    done = featurise(
        settings.featuriser,
        [row.readable for row in rows],
        [row.coordinates for row in rows] if any(row.coordinates is not None for row in rows) else None,
        workers=settings.workers,
        cache=cache,
        progress=progress,
        to_first_error=fail,
    )
    for file in files:
        for i, row in enumerate(file.rows[: max(0, len(done.errors) - file.start)], file.start):
            if done.errors[i] and not row.error:
                file.ledger.error(row.number, file.smiles_column, row.shown, done.errors[i])
            for warning in done.warnings[i]:
                file.ledger.warn(row.number, file.smiles_column, row.shown, warning)
    return done


def _split(files: Sequence[File], settings: DataSettings, labelled: np.ndarray, done: Featurised) -> tuple[Split, str]:
    """Row indices of each part, and how they were chosen, in words."""
    first = files[0]
    if settings.split_column is not None:
        if settings.val or settings.test:
            raise InputError("the split is given twice: by a column and by files; give one of them")
        at = column_index(first.columns, settings.split_column)
        cells = [row.cells[at] for row in first.rows]
        return column_split(cells, first.ledger, settings.split_column), f"column {settings.split_column!r}"
    own = {file.source: np.arange(file.start, file.start + len(file.rows)) for file in files}
    fixed = {part: own[source] for part, source in (("val", settings.val), ("test", settings.test)) if source}
    rest = labelled[labelled < len(first.rows)]
    if len(fixed) == 2:
        return {"train": rest, **fixed}, f"files {settings.val} and {settings.test}"
    train, val, test = settings.split_sizes
    if fixed:  # the share of the part that a file gives falls to the one that is cut out here
        val = val if "test" in fixed else test
        val, test = val / 2, val / 2
    sizes = (train, val, test)
    if settings.split == "scaffold":
        part, words = scaffold_split([scaffold(done.smiles[i]) for i in rest], sizes), "scaffold"
    else:
        part, words = _random(rest, sizes, settings, [done.smiles[i] for i in rest])
    part = {name: rest[index] for name, index in part.items()}
    if fixed:
        held_out = np.sort(np.concatenate([part["val"], part["test"]]))
        missing = "val" if "test" in fixed else "test"
        (name, source), *_ = [(name, getattr(settings, name)) for name in fixed]
        return {"train": part["train"], missing: held_out, **fixed}, f"{words}; {name} from {source}"
    return part, words


def _random(rest: np.ndarray, sizes: Sequence[float], settings: DataSettings, smiles: list[str]) -> tuple[Split, str]:
    words = f"random, seed {settings.seed}"
    if not settings.group_duplicates:
        return random_split(len(rest), sizes, settings.seed), words
    if len(set(smiles)) < len(smiles):
        words += ", each repeated molecule in one part"
    return random_split(len(rest), sizes, settings.seed, smiles), words


def _first_error(files: Sequence[File]) -> str:
    return next((message for file in files for message in file.ledger.errors.values()), "no error noted")
