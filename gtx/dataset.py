"""A table to molecules with labels, divided into training, validation and test rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from gtx.data import (
    Candidates,
    Division,
    Duplicates,
    FeatureColumns,
    Featurised,
    Ledger,
    MoleculeStore,
    Nearest,
    Row,
    Split,
    column_index,
    column_split,
    conflicting_duplicates,
    featurise,
    leakage,
    nearest,
    open_table,
    with_components,
)
from gtx.data.columns import listed
from gtx.data.weights import read_weights
from gtx.errors import InputError
from gtx.molecules import Featuriser
from gtx.tasks import Inferred, NumberTask, Task


@dataclass(frozen=True)
class DataSettings:
    """Which table, which columns, how molecules are read and rows are divided.

    Attributes:
        data: what `gtx.data.open_table` reads.
        target_columns: the targets, where `task` does not name them.
        smiles_column: default as `gtx.data.open_table` says; of several components, see `featuriser`, their names are
            those of their columns.
        task: what is learned of them; default: as `gtx.tasks.Inferred` says.
        split: a name of `gtx.data.SPLIT_METHODS`, where neither a column nor files say.
        split_by: the column that a split reads: of groups for "group", of numbers or dates for "time".
        split_column: the column that spells the split out.
        val: a file of validation rows beside `data`.
        test: a file of test rows beside `data`.
        split_sizes: shares of train, val and test, which add up to 1.
        folds: test on one of so many folds, a tenth of the other rows validates; None for a split by `split_sizes`.
        fold: which one, 1 to `folds`; these are the folds of `gtx benchmark`, its first repeat.
        seed: of the split.
        group_duplicates: a molecule that the table holds more than once stays in one part of the random split.
        on_error: "report" keeps bad rows with their error, "fail" stops at the first.
        featuriser: how molecules are read.
        workers: processes that read molecules; default as many as there are cores.
        units: of targets, by name, for the report.
        features: columns that the model reads beside the molecule.
        weight_column: how much say each row has in the loss, 0 or more; a training row of 0 is left out.

    Raises:
        InputError: what says how rows are divided is out of its range or does not go together, see
            `gtx.data.Division`.
    """

    data: str
    target_columns: tuple[str, ...] = ()
    smiles_column: str | None = None
    task: Task | Inferred | None = None
    split: str = "random"
    split_by: str | None = None
    split_column: str | None = None
    val: str | None = None
    test: str | None = None
    split_sizes: tuple[float, float, float] = (0.8, 0.1, 0.1)
    folds: int | None = None
    fold: int = 1
    seed: int = 0
    group_duplicates: bool = True
    on_error: Literal["report", "fail"] = "report"
    featuriser: Featuriser = field(default_factory=Featuriser)
    workers: int | None = None
    units: dict[str, str] = field(default_factory=dict)
    weight_column: str | None = None
    features: FeatureColumns | None = None

    def __post_init__(self) -> None:
        _ = self.division  # is checked
        if self.smiles_column and self.featuriser.components:
            several = " ".join(self.featuriser.components)
            raise InputError(f"--smiles-column {self.smiles_column} and --smiles-columns {several}: give one of them")
        whole = not getattr(self.task, "writes", False) and getattr(self.task, "per", "molecule") == "molecule"
        if self.featuriser.components and not whole:
            raise InputError(f"task {self.task.name} reads one molecule a row: leave out --smiles-columns")
        if self.folds is not None and (self.val or self.test or self.split_column):
            raise InputError("the split is given twice: by folds and by a column or files; give one of them")
        if self.task is not None:
            if self.target_columns and tuple(self.target_columns) != self.task.targets:
                raise InputError(f"target_columns {self.target_columns} are not those of the task, {self.task.targets}")
            object.__setattr__(self, "target_columns", self.task.targets)

    @property
    def division(self) -> Division:
        """How the rows are divided, where neither a column nor files say."""
        return Division(
            self.split, self.split_by, self.split_sizes, self.folds, self.fold, self.seed, self.group_duplicates
        )


@dataclass(frozen=True)
class File:
    """One of the files read: its rows are `start` to `start + len(rows)` of all rows.

    Where a row has several molecules, `components` names their columns, of which `smiles_column` is the first.
    """

    source: str
    columns: list[str]
    smiles_column: str
    rows: list[Row]
    ledger: Ledger
    start: int
    components: tuple[str, ...] = ()

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

    @cached_property
    def nearest(self) -> Nearest | None:
        """How similar test molecules (or, without any, validation molecules) are to the training molecules."""
        judged = next((part for part in ("test", "val") if len(self.split[part])), None)
        return None if judged is None else nearest(self.smiles, self.split, judged)

    def without_test(self) -> Dataset:
        """The molecules that train and validate alone: whoever chooses by this cannot have seen the test rows."""
        kept = np.sort(np.concatenate([self.split["train"], self.split["val"]]))
        split = {part: np.searchsorted(kept, self.split[part]) for part in ("train", "val")}
        return replace(
            self,
            store=self.store.subset(kept),
            rows=self.rows[kept],
            smiles=[self.smiles[i] for i in kept],
            split={**split, "test": np.array([], np.int64)},
            leaked={parts: number for parts, number in self.leaked.items() if "test" not in parts},
        )

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
    lists = _lists(files, task)
    weights = _weights(files, settings, task)
    rows = [row for file in files for row in file.rows]
    done = _featurise(files, rows, settings, cache, progress)
    read = done.store if lists is None else _placed(files, task, done, lists)
    if settings.on_error == "fail":
        for file in files:
            if file.ledger.errors:  # the first by row, whichever check found it
                raise InputError(f"{file.source}: {file.ledger.errors[min(file.ledger.errors)]}")
    refused = np.array([file.ledger.errors.get(row.number) is not None for file in files for row in file.rows], bool)
    keep = done.good[~refused[done.good]]  # molecules whose row has no error of another kind
    if not len(keep):
        raise InputError(f"no row of {settings.data} can be used; {files[0].ledger.summary()}: {_first_error(files)}")
    labelled = keep[_labelled(y, bounds)[keep]]
    by_row, words = _split(files, settings, labelled, done, task, y)
    place = np.full(len(rows), -1)
    place[keep] = np.arange(len(keep))
    usable = set(labelled.tolist())
    split = {part: np.array([place[i] for i in index if i in usable], np.int64) for part, index in by_row.items()}
    if weights is not None:
        split["train"] = split["train"][weights[keep][split["train"]] > 0]
    if not len(split["train"]):
        raise InputError(f"none of the training rows can be used: {files[0].ledger.summary()}")
    smiles = [done.smiles[i] for i in keep]
    store = read.subset(np.searchsorted(done.good, keep)).with_targets(y[keep])
    if settings.features:
        store = store.with_features(np.stack([rows[i].features for i in keep]))
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

    how = {"split_column": settings.split_column} if settings.split_column else settings.division.marks()
    if settings.weight_column:
        how["weight_column"] = settings.weight_column
    if settings.features:
        how["features"] = settings.features.to_dict()
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
        components = settings.featuriser.components
        first, *others = components or (settings.smiles_column,)
        table = open_table(source, first)
        table = with_components(table, others) if others else table
        if settings.features:
            table = settings.features.of_table(table)
        rows, ledger = list(table.rows), Ledger()
        ledger.enter(rows)
        files.append(File(source, table.columns, table.smiles_column, rows, ledger, start, components))
        start += len(rows)
    if not files[0].rows:
        raise InputError(f"{settings.data} has a header and no rows; there is nothing to train on")
    return files


def _targets(files: Sequence[File], settings: DataSettings) -> tuple[Task, np.ndarray, np.ndarray | None]:
    """The task, settled, and the targets of all rows; and bounds of those that were not measured, if there are any."""
    for file in files:
        for name in (file.smiles_column, *settings.featuriser.components):
            if name in settings.target_columns:
                raise InputError(f"{name!r} holds the molecules; it cannot be a target too")
        if both := [name for name in settings.target_columns if settings.features and name in settings.features.names]:
            raise InputError(f"{both[0]!r} is a target; it cannot be a feature too")
    task = (settings.task or Inferred(settings.target_columns)).settle(files).reading(settings.features)
    parts, bounds = [], []
    for file in files:
        with _named(file):
            parts.append(task.parse(file.rows, file.columns, file.ledger))
            bounds.append(task.parse_bounds(file.rows, file.columns))
    known = None if bounds[0] is None else np.concatenate(bounds)
    return task, np.concatenate(parts), None if known is None or np.isnan(known).all() else known


def _lists(files: Sequence[File], task: Task) -> list[dict[str, np.ndarray]] | None:
    """The targets of atoms or bonds of all rows; None where the task has none."""
    parts = [task.parse_lists(file.rows, file.columns) for file in files]
    return None if parts[0] is None else list(chain(*parts))


def _placed(
    files: Sequence[File], task: Task, done: Featurised, lists: Sequence[dict[str, np.ndarray]]
) -> MoleculeStore:
    """The molecules that could be read, with targets of their atoms or bonds; a list that does not fit its molecule is
    an error of the row."""
    store, wrong = task.placed(done.store, [lists[i] for i in done.good])
    for molecule, (target, reason) in wrong.items():
        at = done.good[molecule]
        file = next(file for file in reversed(files) if file.start <= at)
        row = file.rows[at - file.start]
        cell = row.cells[column_index(file.columns, target)]
        file.ledger.error(row.number, target, cell, reason, kind="with a bad target")
    return store


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
                file.ledger.error(row.number, *row.place(file.smiles_column), done.errors[i])
            for warning in done.warnings[i]:
                file.ledger.warn(row.number, *row.place(file.smiles_column), warning)
    return done


def _split(
    files: Sequence[File], settings: DataSettings, labelled: np.ndarray, done: Featurised, task: Task, y: np.ndarray
) -> tuple[Split, str]:
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
    division = settings.division
    kept, rows = candidates(files, division, rest, [done.smiles[i] for i in rest])
    rest = rest[kept]
    if fixed:  # the share of the part that a file gives falls to the one that is cut out here
        train, val, test = rows.sizes
        half = (val if "test" in fixed else test) / 2
        rows = replace(rows, sizes=(train, half, half))
    part = division.divide(rows, spread(task, y[rest]))
    words = division.words(rows.smiles, part)
    part = {name: rest[index] for name, index in part.items()}
    if fixed:
        held_out = np.sort(np.concatenate([part["val"], part["test"]]))
        missing = "val" if "test" in fixed else "test"
        (name, source), *_ = [(name, getattr(settings, name)) for name in fixed]
        return {"train": part["train"], missing: held_out, **fixed}, f"{words}; {name} from {source}"
    return part, words


def candidates(
    files: Sequence[File], division: Division, rows: np.ndarray, smiles: Sequence[str]
) -> tuple[np.ndarray, Candidates]:
    """`Division.candidates` of `rows` of the table, whose ledger gets the warnings.

    Raises:
        InputError: there is no such column, or no cell of it can be used.
    """
    table, cells = files[0], None
    with _named(table):
        if division.by is not None:
            at = column_index(table.columns, division.by)
            cells = [table.rows[row].cells[at] for row in rows]
        numbers = [table.rows[row].number for row in rows]
        return division.candidates(cells, numbers, smiles, table.ledger)


def spread(task: Task, y: np.ndarray) -> np.ndarray | None:
    """The classes that folds spread evenly: those of a single target."""
    return y[:, 0].astype(int) if isinstance(task, NumberTask) and task.discrete and y.shape[1] == 1 else None


def _first_error(files: Sequence[File]) -> str:
    return next((message for file in files for message in file.ledger.errors.values()), "no error noted")
