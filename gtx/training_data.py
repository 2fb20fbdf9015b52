"""Training data: a table, read, featurised and divided into training, validation and test rows."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.data.cells import read_weights
from gtx.data.feature_columns import NO_FEATURES, FeatureColumns
from gtx.data.featurising import FeaturisationResult, featurise
from gtx.data.rows import (
    InputFile,
    Row,
    RowLog,
    add_component_columns,
    find_column,
    format_row_message,
    listed,
    named,
    plural,
)
from gtx.data.similarity import NearestTrainingMolecules, find_nearest_training_molecules
from gtx.data.splits import SPLIT_PARTS, RowsToSplit, Split, SplitSettings, count_shared_molecules, split_by_column
from gtx.data.store import MoleculeStore
from gtx.data.tables import open_table
from gtx.molecules import Featuriser
from gtx.molecules.perception import list_order_doubt
from gtx.tasks import Regression, Task
from gtx.tasks.classification import ClassTask
from gtx.tasks.columns import TargetCells
from gtx.tasks.combined import InferredTask

__all__ = ["DataSettings", "Dataset", "load_training_table"]

# --- Settings.

LONGEST_UNIT = 40  # characters


@dataclass(frozen=True)
class DataSettings(SplitSettings):
    """Settings of a data set: the table, its columns, the featuriser and the split, unless a column or files define it.

    Attributes:
        data: path of the table, or name of a public data set.
        target_columns: names of the target columns, unless `task` names the targets.
        smiles_column: name of the column of molecules; for the default, see `gtx.data.open_table`.
        task: kind of target; default: inferred, see `gtx.tasks.InferredTask`.
        split_column: column with the part (train, val, test) of each row.
        val: path of a file with validation rows.
        test: path of a file with test rows.
        on_error: "report" records the error of a bad row and continues; "fail" stops at the first bad row.
        featuriser: featuriser of the molecules.
        workers: number of processes that read molecules; default: the number of cores.
        units: units of targets, by name, for display.
        features: extra feature columns that the model reads.
        weight_column: weights of the rows in the loss, 0 or more; a training row of weight 0 is left out.

    Raises:
        InputError: the settings of the split are out of range or contradict each other, see
            `gtx.data.SplitSettings`; or a table is standard input.
    """

    data: str
    target_columns: tuple[str, ...] = ()
    smiles_column: str | None = None
    task: Task | InferredTask | None = None
    split_column: str | None = None
    val: str | None = None
    test: str | None = None
    on_error: Literal["report", "fail"] = "report"
    featuriser: Featuriser = field(default_factory=Featuriser)
    workers: int | None = None
    units: dict[str, str] = field(default_factory=dict)
    weight_column: str | None = None
    features: FeatureColumns = NO_FEATURES

    def __post_init__(self) -> None:
        super().__post_init__()
        RowLog(self.on_error)  # refuses another word
        if self.smiles_column and self.featuriser.components:
            several = " ".join(self.featuriser.components)
            raise InputError(f"`smiles_column` {self.smiles_column} and `smiles_columns` {several}: give one of them")
        task = self.task
        if (
            self.featuriser.unit != "molecule"
            and task is not None
            and (task.writes or task.level != "molecule" or task.also)
        ):
            remedy = "leave out `smiles_columns` and `reaction_column`"
            raise InputError(f"task {task.name} does not support several molecules a row or reactions: {remedy}")
        self.features.check(self.featuriser)
        if "-" in (self.data, self.val, self.test):  # a run would resume with the table of another pipe
            raise InputError("expected a file, by whose content a run resumes, got - for standard input: save it first")
        ways = {"test folds": self.test_folds, "a column": self.split_column, "files": self.val or self.test}
        if len(twice := [way for way, value in ways.items() if value is not None]) > 1:
            raise InputError(f"the split is given twice: by {' and by '.join(twice)}; give one of them")
        if self.task is not None:
            if self.target_columns and tuple(self.target_columns) != self.task.targets:
                raise InputError(f"target_columns {self.target_columns} are not those of the task, {self.task.targets}")
            object.__setattr__(self, "target_columns", self.task.targets)
        for name, unit in self.units.items():
            if name not in self.target_columns:
                raise InputError(f"units: {name!r} is not predicted{did_you_mean(name, self.target_columns)}")
            if not unit or not unit.isprintable() or len(unit) > LONGEST_UNIT:
                expected = f"expected a text of 1 to {LONGEST_UNIT} characters, such as kcal/mol"
                raise InputError(f"units: {expected}, for {name!r}, got {unit!r}")


def collect_data_config(settings: DataSettings) -> dict[str, Any]:
    """Return values that identify the table, featuriser and split, as `config.yaml` of a run records them."""

    def file_marks(source: str | None) -> dict[str, str] | None:
        if source is None:
            return None
        path = Path(source)
        return {"file": path.name, "sha256": hash_file(path)} if path.is_file() else None

    names = ["weight_column"]
    if settings.split_column:
        names.append("split_column")
        marks: dict[str, Any] = {}
    else:
        names += ["split_by", *(["test_folds", "test_fold"] if settings.test_folds is not None else [])]
        marks = {"split": settings.split, "split_sizes": list(settings.split_sizes), "split_seed": settings.seed}
        if settings.split == "random" and settings.group_duplicates:
            marks["group_duplicates"] = True
    marks |= {name: getattr(settings, name) for name in names if getattr(settings, name)}
    if settings.features.columns:
        marks["features"] = settings.features.to_dict()
    return {
        "data": file_marks(settings.data),
        "val": file_marks(settings.val),
        "test": file_marks(settings.test),
        "smiles_column": settings.smiles_column,
        **marks,
        "featuriser": {**settings.featuriser.to_dict(), "hash": settings.featuriser.hash},
    }


def hash_file(path: str | Path) -> str:
    """Return the SHA-256 hash of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- Molecules in several rows.


class DuplicateSummary(NamedTuple):
    """Summary of the molecules that occur in more than one row of a table, and of contradictions between their targets.

    Attributes:
        molecules, rows: number of different molecules that are repeated, and of their rows.
        conflicts: for each molecule with different values of a target in two rows, the first such target and the
            numbers of the rows that have a value.
    """

    molecules: int
    rows: int
    conflicts: Sequence[tuple[int, list[int]]] = ()


def find_duplicates(smiles: Sequence[str | None], y: np.ndarray) -> DuplicateSummary:
    """Find molecules, by canonical SMILES, in several rows, and those with contradicting targets `[n, T]`."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(smiles):
        if text:
            groups[text].append(i)
    repeated = [rows for rows in groups.values() if len(rows) > 1]
    conflicts = []
    for rows in repeated:
        known = ((t, [i for i in rows if not np.isnan(y[i, t])]) for t in range(y.shape[1]))
        conflicts += list(islice(((t, own) for t, own in known if len(set(y[own, t])) > 1), 1))
    return DuplicateSummary(len(repeated), sum(map(len, repeated)), conflicts)


class MeasurementNoise(NamedTuple):
    r"""Standard deviation of repeated measurements of the same molecule, pooled over molecules:

    \[ s^2 = \frac{\sum_j \sum_i (y_{ji} - \bar y_j)^2}{\sum_j (k_j - 1)} \]

    for molecules j with \(k_j\) values each; with two values each, the root mean square difference over \(\sqrt 2\).

    Attributes:
        sd: s, in the unit of the target.
        molecules: how many molecules have two values or more.
        identical: of how many of these all values are equal, as copies of one measurement are.
    """

    sd: float
    molecules: int
    identical: int


FEWEST_REPEATED = 10
"""Fewest molecules with repeated measurements whose noise is estimated."""


def measure_noise(smiles: Sequence[str | None], y: np.ndarray) -> MeasurementNoise | None:
    """Measure the noise of a target `[n]`, NaN for blanks; None with fewer than `FEWEST_REPEATED` such molecules."""
    import pandas as pd

    values = pd.Series(y)[[bool(text) for text in smiles]].dropna()
    repeated = values.groupby([smiles[i] for i in values.index]).agg(["count", "var", "nunique"]).query("count > 1")
    if len(repeated) < FEWEST_REPEATED:
        return None
    freedom = repeated["count"] - 1
    variance = (repeated["var"] * freedom).sum() / freedom.sum()
    return MeasurementNoise(float(variance**0.5), len(repeated), int((repeated["nunique"] == 1).sum()))


# --- Molecules with labels and their split; of a table, with its files and rows.


@dataclass(frozen=True)
class Dataset:
    """Featurised molecules with targets and a split, all data that a training reads; of tables, with their rows.

    Attributes:
        task: the task, inferred from the table but not fitted.
        store: the m readable molecules, with targets `[m, T]` in their own units, NaN for blanks.
        smiles: canonical SMILES of the m molecules.
        split: indices of the molecules in "train", "val" and "test"; molecules without any label are in no part.
        split_summary: description of the split.
        smiles_column: name of the column with the molecules.
        folds: indices of the validation molecules of each network, int64, if several networks each leave out one of
            these folds. Each molecule of "train" is then in one fold and also in "val", because the network of its fold
            predicts it out-of-fold.
        files: the training table, then the files of validation and test rows, if any; none for a data frame.
        rows: int64 `[m]`, index of the row of each molecule among all rows of the files.
        remarks: lines about how the task was chosen from the cells, for the user.
        unit: word for what a row holds, see `gtx.molecules.Featuriser.unit`.
    """

    task: Task
    store: MoleculeStore
    smiles: Sequence[str]
    split: Split
    split_summary: str
    smiles_column: str
    folds: Sequence[np.ndarray] = ()
    files: Sequence[InputFile] = ()
    rows: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    remarks: Sequence[str] = ()
    unit: str = "molecule"

    # --- Molecules, their labels and rows.

    @property
    def y(self) -> np.ndarray:
        """Targets in their own units, float64 `[m, T]`."""
        if self.store.y is None:
            raise ValueError("expected molecules with targets, got a store without")
        return self.store.y.numpy()

    @cached_property
    def with_labels(self) -> np.ndarray:
        """Indices of the molecules with a value or a bound of any target, int64."""
        return np.flatnonzero(self.task.objective.known(self.store))

    @property
    def unlabelled(self) -> int:
        """Number of readable molecules with neither a value nor a bound for any target."""
        return len(self.store) - len(self.with_labels)

    @cached_property
    def duplicates(self) -> DuplicateSummary:
        """Molecules in several rows."""
        return find_duplicates(self.smiles, self.y)

    def place(self, molecule: int) -> tuple[InputFile, Row]:
        """Return the input file and the row of a molecule."""
        at = self.rows[molecule]
        file = next(file for file in reversed(self.files) if file.start <= at)
        return file, file.rows[at - file.start]

    def row_number(self, molecule: int) -> int:
        """Return the number of the row of a molecule, from 1."""
        return self.place(molecule)[1].number if self.files else molecule + 1

    def cells(self, molecule: int) -> list[str]:
        """Return the cells of the targets of a molecule; those of a data frame are written anew."""
        if self.files:
            file, row = self.place(molecule)
            return [self.task.columns.cells(t, [row], file.columns)[0] for t in range(len(self.task.targets))]
        lower, upper = np.full((2, self.y.shape[1]), np.nan)
        if self.store.bounds is not None:
            lower, upper = self.store.bounds[molecule].numpy().reshape(2, -1)

        def cell(t: int, value: float) -> str:
            if np.isnan(value):
                bounds = ((">", lower[t]), ("<", upper[t]))
                return "".join(f"{sign}{bound:.9g}" for sign, bound in bounds if not np.isnan(bound))
            return self.task.columns.labels(t)[int(value)] if isinstance(self.task, ClassTask) else f"{value:.9g}"

        return [cell(t, value) for t, value in enumerate(self.y[molecule].tolist())]

    # --- The split.

    def rows_to_split(self, settings: SplitSettings, index: np.ndarray | None = None) -> tuple[np.ndarray, RowsToSplit]:
        """Return the molecules that the split method can divide, by default of those with a label in the first file,
        and what it reads of them; the row log names the others.
        """
        if index is None:
            index = _labelled_in(self, self.files[0]) if self.files else self.with_labels
        rows = RowsToSplit([self.smiles[i] for i in index])
        if settings.split_by is not None:
            column = _column(self, settings.split_by, index)
            with named(self.files[0].source):
                usable, rows = settings.candidates(*column, rows.smiles)
            index = index[usable]
        if self.task.discrete and self.task.level == "molecule" and self.y.shape[1] == 1:
            rows = replace(rows, classes=self.y[index, 0].astype(int))
        return index, rows

    def divide(self, settings: SplitSettings) -> Self:
        """Divide the molecules with a label into training, validation and test molecules."""
        index, rows = self.rows_to_split(settings)
        split = settings.divide(rows) if len(index) else dict.fromkeys(SPLIT_PARTS, index)
        summary = settings.describe(rows.smiles, split, self.unit)
        return self.with_split({part: index[own] for part, own in split.items()}, summary)

    def with_split(self, split: Split, summary: str) -> Self:
        """Return the molecules with a split and its description; training molecules of weight 0 are left out."""
        if self.store.weights is not None:
            split = split | {"train": split["train"][self.store.weights.numpy()[split["train"]] > 0]}
        return replace(self, split={part: split[part] for part in SPLIT_PARTS}, split_summary=summary)

    def in_folds(self, count: int, settings: SplitSettings) -> Self:
        """Divide the molecules that are not test into folds by the rule of a split; one fold changes nothing."""
        if count == 1:
            return self
        rows = np.union1d(self.split["train"], self.split["val"])
        if self.store.weights is not None:
            rows = rows[self.store.weights.numpy()[rows] > 0]
        rows, divisible = self.rows_to_split(settings, rows)
        folds = settings.folds(divisible, count)
        summary = f"{self.split_summary}; {count} folds of {min(map(len, folds))} to {max(map(len, folds))}"
        split = self.split | {"train": rows, "val": rows}
        return replace(self, split=split, split_summary=summary, folds=tuple(rows[fold] for fold in folds))

    def without_test(self) -> Dataset:
        """Leave out the test rows, so that no choice can depend on them."""
        index = np.union1d(self.split["train"], self.split["val"])
        split = {part: np.searchsorted(index, self.split[part]) for part in ("train", "val")}
        return replace(
            self,
            store=self.store.subset(index),
            rows=self.rows[index],
            smiles=[self.smiles[i] for i in index],
            split={**split, "test": np.array([], np.int64)},
        )

    @property
    def networks(self) -> list[Split]:
        """Indices of the molecules that train and validate each network: of one, or of one for each fold."""
        if not self.folds:
            return [self.split]
        return [{"train": np.setdiff1d(self.split["train"], fold), "val": fold} for fold in self.folds]

    @property
    def train(self) -> MoleculeStore:
        """Training molecules."""
        return self.store.subset(self.split["train"])

    def fit_task(self) -> Task:
        """Fit the task to the training rows, see `Task.fit`."""
        return self.task.fit(self.task.drop_blanks(self.train))

    @property
    def counts(self) -> dict[str, int]:
        """Number of molecules in each part."""
        return {part: len(index) for part, index in self.split.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """Number of molecules in each part, without those of folds, which are in "train" already."""
        return {part: count for part, count in self.counts.items() if part != "val" or not self.folds}

    @cached_property
    def leaked(self) -> dict[tuple[str, str], int]:
        """Number of molecules that two parts share."""
        apart = {part: index for part, index in self.split.items() if not self.folds or part != "val"}
        return count_shared_molecules(self.smiles, apart)

    @cached_property
    def nearest(self) -> NearestTrainingMolecules | None:
        """Similarity of test molecules (or, without any, validation molecules) to the training molecules."""
        parts = ("test",) if self.folds else ("test", "val")  # a molecule of a fold is its own nearest
        part = next((part for part in parts if len(self.split[part])), None)
        return None if part is None else find_nearest_training_molecules(self.store, self.split, part)


def _labelled_in(dataset: Dataset, file: InputFile) -> np.ndarray:
    """Return the indices of the molecules with a label in one of the files."""
    rows = dataset.rows[dataset.with_labels]
    return dataset.with_labels[(rows >= file.start) & (rows < file.start + len(file.rows))]


def count_weightless(dataset: Dataset) -> int:
    """Count the molecules that would be training molecules, and are left out as their weight is 0."""
    if dataset.store.weights is None:
        return 0
    rest = np.setdiff1d(dataset.with_labels, np.concatenate(list(dataset.split.values())))
    return int((dataset.store.weights.numpy()[rest] == 0).sum())


def name_parts(dataset: Dataset) -> dict[int, str]:
    """Name the part of each molecule in a part: train, val or test, or its fold, such as "fold 3"."""
    parts = {part: index for part, index in dataset.split.items() if not dataset.folds or part == "test"}
    parts |= {f"fold {k}": fold for k, fold in enumerate(dataset.folds, 1)}
    return {molecule: part for part, index in parts.items() for molecule in index.tolist()}


def _column(dataset: Dataset, name: str, index: np.ndarray) -> tuple[list[str], list[int], list[RowLog]]:
    """Return the cells of a column for some molecules, the numbers of their rows, and the row logs of their files."""
    places = [dataset.place(molecule) for molecule in index.tolist()]
    at = {}
    for file in {file.start: file for file, _ in places}.values():
        with named(file.source):
            at[file.start] = find_column(file.columns, name)
    cells = [row.cells[at[file.start]] for file, row in places]
    return cells, [row.number for _, row in places], [file.row_log for file, _ in places]


def _describe_place(dataset: Dataset, molecule: int) -> str:
    """Name the row of a molecule, and its file, if there are several."""
    file, row = dataset.place(molecule)
    return f"row {row.number}" + (f" of {file.source}" if len(dataset.files) > 1 else "")


# --- The split.


def split_table(dataset: Dataset, settings: DataSettings) -> Dataset:
    """Divide the molecules by a column of the table, by the files of validation and test rows, or by a split method."""
    first, *others = dataset.files
    if settings.split_column is not None:
        index = dataset.with_labels
        cells, numbers, _ = _column(dataset, settings.split_column, index)
        split = split_by_column(cells, first.row_log, settings.split_column, numbers)
        split = {part: index[rows] for part, rows in split.items()}
        return dataset.with_split(split, f"column {settings.split_column!r}")
    files = [(part, source) for part, source in (("val", settings.val), ("test", settings.test)) if source]
    fixed = {part: _labelled_in(dataset, file) for (part, _), file in zip(files, others, strict=True)}
    if len(fixed) == 2:
        split = {"train": _labelled_in(dataset, first), **fixed}
        return dataset.with_split(split, f"files {settings.val} and {settings.test}")
    rows = _labelled_in(dataset, first)
    if len({dataset.smiles[i] for i in rows}) < len(SPLIT_PARTS) and first.row_log.errors:
        raise _too_few_rows(dataset.files, f"only {plural(len(rows), 'row')}")
    divided = dataset.divide(settings.without(fixed))
    if not fixed:
        return divided
    ((part, source),) = files
    return divided.with_split(divided.split | fixed, f"{divided.split_summary}; {part} from {source}")


# --- Loading: from a table to molecules with labels.


def load_training_table(settings: DataSettings, cache: str | Path | None = None, progress: bool = False) -> Dataset:
    """Load a table for training: read and check its rows, featurise the molecules, and split them.

    Args:
        settings: settings of the data.
        cache: folder for featurised molecules, see `gtx.data.featurise`.
        progress: whether a progress bar is shown.

    Raises:
        InputError: a file, column, target or split cannot be used; with `on_error="fail"` also for a bad row.
    """
    files = _read(settings)
    rows = [(file, row) for file in files for row in file.rows]
    if not settings.target_columns:
        names = listed(files[0].columns)
        raise InputError(f"say what to predict: give `target_columns` out of the columns {names}")
    task, remarks, (y, bounds, lists, _) = _targets(files, settings)
    _check_atom_order(rows, settings, lists)
    weights = _weights(files, settings, task)
    molecules = _featurise(files, rows, settings, cache, progress)
    store = molecules.store
    if lists is not None:
        store, wrong = task.columns.attach_lists(store, [lists[i] for i in molecules.good])
        for molecule, (target, reason) in wrong.items():  # a list whose length does not fit its molecule
            file, row = rows[molecules.good[molecule]]
            cell = row.cells[find_column(file.columns, target)]
            file.row_log.error(row.number, target, cell, reason, category="with a bad target")
    if settings.on_error == "fail":
        for file in files:
            if file.row_log.errors:  # the first by row, of any check
                raise InputError(f"{file.source}: {file.row_log.errors[min(file.row_log.errors)]}")
    refused = np.array([row.number in file.row_log.errors for file, row in rows], bool)
    good = molecules.good[~refused[molecules.good]]  # rows with a readable molecule and no other error
    if not len(good):
        raise _too_few_rows(files, "no row")
    smiles = [text for text in (molecules.smiles[i] for i in good) if text is not None]
    store = store.subset(np.searchsorted(molecules.good, good)).with_targets(y[good])
    store = replace(
        store,
        bounds=None if bounds is None else torch.from_numpy(bounds[good]),
        weights=None if weights is None else torch.from_numpy(weights[good]),
    )
    dataset = Dataset(
        task=task,
        store=store,
        smiles=smiles,
        split={},
        split_summary="",
        smiles_column=files[0].smiles_column,
        files=files,
        rows=good,
        remarks=[*(f"{file.source}: {note}" for file in files for note in file.notes), *remarks],
        unit=settings.featuriser.unit,
    )
    dataset = split_table(dataset, settings)
    if not len(dataset.split["train"]):
        number = count_weightless(dataset)
        weightless = f"; {plural(number, 'training row')} of weight 0" if number else ""
        raise InputError(f"none of the training rows can be used: {files[0].row_log.summary()}{weightless}")
    warn_of_conflicts(dataset)
    return dataset


def _read(settings: DataSettings) -> list[InputFile]:
    files, start = [], 0
    for source in (settings.data, settings.val, settings.test):
        if source is None:
            continue
        components = settings.featuriser.components
        first, *others = components or (settings.smiles_column,)
        table = open_table(source, first)
        with named(source):
            table = add_component_columns(table, others) if others else table
            for feature in settings.features.columns:  # a user's words, to which a model's advice does not apply
                find_column(table.columns, feature)
        table = settings.features.read_table(table)
        rows, row_log = list(table.rows), RowLog()
        row_log.enter(rows)
        files.append(
            InputFile(source, table.columns, table.smiles_column, rows, row_log, start, components, table.notes)
        )
        start += len(rows)
    if not files[0].rows:
        raise InputError(f"{settings.data} has a header and no rows; there is nothing to train on")
    if all(row.error for row in files[0].rows):
        raise _too_few_rows(files, "no row")
    return files


def _targets(files: Sequence[InputFile], settings: DataSettings) -> tuple[Task, list[str], TargetCells]:
    """Infer the task, with remarks on the choice, and parse the targets of all rows; bounds are None without any."""
    for file in files:
        for name in (file.smiles_column, *settings.featuriser.components):
            if name in settings.target_columns:
                raise InputError(f"{name!r} holds the molecules; it cannot be a target too")
        for name in settings.features.columns:
            if name in settings.target_columns:
                raise InputError(f"{name!r} is a target; it cannot be a feature too")
    wanted = settings.task or InferredTask(settings.target_columns)
    remarks = wanted.remarks(files) if isinstance(wanted, InferredTask) else []
    task = wanted.infer_from_table(files).with_features(settings.features)
    parts = []
    for file in files:
        with named(file.source):
            parts.append(task.columns.parse(file.rows, file.columns, file.row_log))
    relations = task.columns.relations(files[0].columns)
    relations.add(files[0].rows)
    remarks += [f"warning: {line}; --relation-column learns from bounds of one target" for line in relations.lines()]
    bounds = [part.bounds for part in parts if part.bounds is not None]
    has_bounds = any(not np.isnan(each).all() for each in bounds)
    lists = [each for part in parts for each in part.lists or ()]
    y = np.concatenate([part.y for part in parts])
    return task, remarks, TargetCells(y, np.concatenate(bounds) if has_bounds else None, lists or None)


def _check_atom_order(
    rows: Sequence[tuple[InputFile, Row]], settings: DataSettings, lists: Sequence[Mapping[str, np.ndarray]] | None
) -> None:
    """Refuse the first row with values of atoms or bonds whose order is not clear, unless the user said what it is."""
    if lists is not None and settings.featuriser.standardise:
        raise InputError("targets of atoms and bonds are of the atoms as they are written: leave out `standardise`")
    for i, (file, row) in enumerate(rows):
        has_values = row.features is not None and row.features.lists
        if row.error or not (has_values or (lists is not None and lists[i])):
            continue
        if doubt := list_order_doubt(settings.featuriser, row.text):
            why = f"{doubt.reason}: {doubt.remedy}"
            place = format_row_message(row.number, *row.locate(file.smiles_column), why)
            raise InputError(f"{file.source}: {place}")


def _weights(files: Sequence[InputFile], settings: DataSettings, task: Task) -> np.ndarray | None:
    """Read the weights of all rows, float64 `[n]`; a cell that is not a weight is an error of its row."""
    name = settings.weight_column
    if name is None:
        return None
    if task.writes:
        raise InputError(f"weight_column: the task {task.name} has no weights of rows")
    if name in task.targets:
        raise InputError(f"{name!r} is a target; it cannot be the weight of its row too")
    parts = []
    for file in files:
        with named(file.source):
            parts.append(read_weights(file.rows, file.columns, name, file.row_log))
    return np.concatenate(parts)


def _featurise(
    files: Sequence[InputFile],
    rows: Sequence[tuple[InputFile, Row]],
    settings: DataSettings,
    cache: str | Path | None,
    progress: bool,
) -> FeaturisationResult:
    fail = settings.on_error == "fail"
    bad = [file.start + min(file.row_log.errors) for file in files if file.row_log.errors]
    if fail and bad:
        rows, cache = rows[: bad[0]], None  # rows after the first bad one are not read
    texts, coordinates = [row.readable for _, row in rows], [row.coordinates for _, row in rows]
    molecules = featurise(
        settings.featuriser,
        texts,
        coordinates if any(each is not None for each in coordinates) else None,
        workers=settings.workers,
        cache=cache,
        progress=progress,
        to_first_error=fail,
    )
    molecules = settings.features.attach(molecules, [row.features for _, row in rows], texts, settings.featuriser)
    for (file, row), error, warnings in zip(rows, molecules.errors, molecules.warnings, strict=False):
        file.row_log.add(row, file.smiles_column, error, warnings)
    return molecules


def _too_few_rows(files: Sequence[InputFile], number: str) -> InputError:
    """Make the error of a table without enough usable rows, which quotes the first row of the commonest error."""
    row_log = files[0].row_log
    ((category, _),) = row_log.error_counts.most_common(1)
    first = row_log.first_errors[category]
    return InputError(f"{number} of {files[0].source} can be used; {row_log.summary()}: {first}")


# --- Outliers among the targets: typing errors, other units, or values that span magnitudes.

OUTLIER_RANGES = 20
"""Distance of an outlier from the median, in interquartile ranges; a normal distribution has none."""


def outlier_lines(dataset: Dataset) -> list[str]:
    """Return a warning for each target with outliers."""
    if not isinstance(dataset.task, Regression) or dataset.task.level != "molecule":
        return []
    lines = []
    for name, y in zip(dataset.task.targets, dataset.y.T, strict=True):
        measured = np.flatnonzero(~np.isnan(y))
        low, median, high = np.percentile(y[measured], (25, 50, 75)) if len(measured) else (0, 0, 0)
        distance = np.abs(y[measured] - median)
        far = int((distance > OUTLIER_RANGES * (high - low)).sum())
        if high > low and far:
            first = measured[distance.argmax()]
            most = f"{plural(far, 'value')} far from the others, half of which lie from {low:.4g} to {high:.4g}"
            lines.append(
                f"warning: {name} has {most}; the farthest is {y[first]:.4g} in {_describe_place(dataset, first)}: a "
                "typing error, or another unit? Of values that span magnitudes, train on the logarithm"
            )
    return lines


def left_out_lines(dataset: Dataset) -> list[str]:
    """Return a warning for each reason why rows are in no part of the split, with their number and the first row."""
    return [
        f"warning: {file.source}: {len(messages)} of {plural(file.row_log.rows, 'row')} "
        f"{'is' if len(messages) == 1 else 'are'} in no part of the split; the first: {messages[0]}"
        for file in dataset.files
        for messages in file.row_log.left_out.values()
    ]


# --- Molecules with conflicting rows.

MAX_NAMED = 3  # molecules, and rows of each, that a line names
_LONGEST = 30  # characters of a value


def describe_duplicates(dataset: Dataset) -> str:
    """Report the number of molecules in several rows, and the first conflicts of labels; "" if there are none."""
    molecules, count, told = dataset.duplicates
    if not molecules:
        return ""
    filled = f"{plural(molecules, dataset.unit)} {'fills' if molecules == 1 else 'fill'} {count} rows"
    filled += f", {len(told)} of them with conflicting labels"
    conflicts = []
    for target, values in islice(_conflicts(dataset), MAX_NAMED):
        rows = [f"{value} in {place}" for _, _, place, value in values[:MAX_NAMED]]
        more = f" and {len(values) - MAX_NAMED} more" if len(values) > MAX_NAMED else ""
        conflicts.append(f"{target} is {', '.join(rows)}{more}")
    if not conflicts:
        return filled
    first = ", the first" if len(told) > MAX_NAMED else ""
    return f"{filled}{first}: {'; '.join(conflicts)}"


def warn_of_conflicts(dataset: Dataset) -> None:
    """Warn in the row log of each row whose value differs from that of another row with the same molecule."""
    for target, values in _conflicts(dataset):
        for file, number, place, value in values:
            other = next(((p, v) for _, _, p, v in values if v != value), values[0][2:])
            reason = f"{other[0]}, of the same {dataset.unit}, has {other[1]}"
            if other[0] != place:
                file.row_log.warn(number, target, value, reason)


def _conflicts(dataset: Dataset) -> Iterator[tuple[str, list[tuple[InputFile, int, str, str]]]]:
    """Yield the target of each conflict, and the file, number, description and cell of each of its rows."""
    for t, molecules in dataset.duplicates.conflicts:
        target, values = dataset.task.targets[t], []
        for molecule in molecules:
            file, row = dataset.place(molecule)
            cell = row.cells[find_column(file.columns, target)].strip()
            values.append((file, row.number, _describe_place(dataset, molecule), printable(cell, _LONGEST)))
        yield target, values
