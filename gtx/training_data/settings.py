"""Settings of a data set, and its molecules with their targets, split and rows."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from gtx.base.errors import InputError, did_you_mean
from gtx.data import (
    FeatureColumns,
    MoleculeStore,
    NearestTrainingMolecules,
    Row,
    Split,
    SplitSettings,
    find_nearest_training_molecules,
)
from gtx.data.columns import find_column
from gtx.data.row_log import InputFile, format_row_message, named
from gtx.data.splits import SPLIT_PARTS, RowsToSplit, count_shared_molecules
from gtx.data.targets import DuplicateSummary
from gtx.molecules import Featuriser
from gtx.tasks import Task
from gtx.tasks.classification import ClassTask
from gtx.tasks.inferred import InferredTask
from gtx.tasks.task import check_task_capability

# --- Settings.

LONGEST_UNIT = 40  # characters


@dataclass(frozen=True)
class DataSettings:
    """Settings of a data set: the table, its columns, the featuriser and the split.

    Attributes:
        data: path of the table, or name of a public data set.
        target_columns: names of the target columns, unless `task` names the targets.
        smiles_column: name of the column of molecules; for the default, see `gtx.data.open_table`.
        task: kind of target; default: inferred, see `gtx.tasks.inferred.InferredTask`.
        split: a name of `gtx.data.SPLIT_METHODS`, unless a column or files define the split.
        split_by: column that the split reads: groups for the split "group", numbers or dates for the split "time".
        split_column: column with the part (train, val, test) of each row.
        val: path of a file with validation rows.
        test: path of a file with test rows.
        split_sizes: shares of training, validation and test rows, which add up to 1.
        test_folds: number of folds of a cross-validation, of which one is the test part, and a tenth of the other rows
            the validation part; None for a split by `split_sizes`.
        test_fold: fold that is the test part, 1 to `test_folds`; they are those of the first repeat of `gtx benchmark`.
        seed: seed of the split.
        group_duplicates: whether a random split puts all rows of a molecule into one part.
        on_error: "report" records the error of a bad row and continues; "fail" stops at the first bad row.
        featuriser: featuriser of the molecules.
        workers: number of processes that read molecules; default: the number of cores.
        units: units of targets, by name, for display.
        features: extra feature columns that the model reads.
        relation_column: relations of the values of the one target, such as `>` and `=`, which make bounds of values.
        weight_column: weights of the rows in the loss, 0 or more; a training row of weight 0 is left out.

    Raises:
        InputError: the settings of the split are out of range or contradict each other, see
            `gtx.data.SplitSettings`.
    """

    data: str
    target_columns: tuple[str, ...] = ()
    smiles_column: str | None = None
    task: Task | InferredTask | None = None
    split: str = "random"
    split_by: str | None = None
    split_column: str | None = None
    val: str | None = None
    test: str | None = None
    split_sizes: tuple[float, float, float] = (0.8, 0.1, 0.1)
    test_folds: int | None = None
    test_fold: int = 1
    seed: int = 0
    group_duplicates: bool = True
    on_error: Literal["report", "fail"] = "report"
    featuriser: Featuriser = field(default_factory=Featuriser)
    workers: int | None = None
    units: dict[str, str] = field(default_factory=dict)
    relation_column: str | None = None
    weight_column: str | None = None
    features: FeatureColumns | None = None

    def __post_init__(self) -> None:
        _ = self.split_settings  # raises if it is out of range
        if self.smiles_column and self.featuriser.components:
            several = " ".join(self.featuriser.components)
            raise InputError(f"--smiles-column {self.smiles_column} and --smiles-columns {several}: give one of them")
        if self.featuriser.components or self.featuriser.reaction:
            check_task_capability(self.task, "components")
        if self.features:
            self.features.check(self.featuriser)
        if self.test_folds is not None and (self.val or self.test or self.split_column):
            raise InputError("the split is given twice: by test folds and by a column or files; give one of them")
        if self.task is not None:
            if self.target_columns and tuple(self.target_columns) != self.task.targets:
                raise InputError(f"target_columns {self.target_columns} are not those of the task, {self.task.targets}")
            object.__setattr__(self, "target_columns", self.task.targets)
        for name, unit in self.units.items():
            if name not in self.target_columns:
                raise InputError(f"--units: {name!r} is not predicted{did_you_mean(name, self.target_columns)}")
            if not unit or not unit.isprintable() or len(unit) > LONGEST_UNIT:
                raise InputError(
                    f"--units {name}: expected a text of 1 to {LONGEST_UNIT} characters, such as kcal/mol, got {unit!r}"
                )

    @property
    def split_settings(self) -> SplitSettings:
        """Split of the rows, unless a column or files define it."""
        folds = self.test_folds, self.test_fold
        return SplitSettings(self.split, self.split_by, self.split_sizes, *folds, self.seed, self.group_duplicates)


def collect_data_config(settings: DataSettings) -> dict[str, Any]:
    """Return values that identify the table, featuriser and split, as `config.yaml` of a run records them."""

    def file_marks(source: str | None) -> dict[str, str] | None:
        if source is None:
            return None
        path = Path(source)
        return {"file": path.name, "sha256": hash_file(path)} if path.is_file() else None

    marks: dict[str, Any] = settings.split_settings.to_dict()
    if settings.split_column:
        marks = {"split_column": settings.split_column}
    if settings.relation_column:
        marks["relation_column"] = settings.relation_column
    if settings.weight_column:
        marks["weight_column"] = settings.weight_column
    if settings.features:
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


# --- Labelled molecules and their split; of a table, with its files and rows.


@dataclass(frozen=True)
class LabelledMolecules:
    """Featurised molecules with targets and a split: all data that a training reads.

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
    """

    task: Task
    store: MoleculeStore
    smiles: Sequence[str]
    split: Split
    split_summary: str
    smiles_column: str
    folds: Sequence[np.ndarray] = field(default=(), kw_only=True)

    @property
    def y(self) -> np.ndarray:
        """Targets in their own units, float64 `[m, T]`."""
        if self.store.y is None:
            raise ValueError("expected molecules with targets, got a store without")
        return self.store.y.numpy()

    @cached_property
    def labelled(self) -> np.ndarray:
        """Indices of the molecules with a value or a bound of any target, int64."""
        labelled = ~np.isnan(self.y).all(1)
        if self.store.bounds is not None:
            labelled |= ~self.store.bounds.isnan().all(1).numpy()
        return np.flatnonzero(labelled)

    def candidates(self, settings: SplitSettings) -> tuple[np.ndarray, RowsToSplit]:
        """Return the indices of the molecules that a split method divides, and their values for the method."""
        return self.labelled, self.rows_to_split(settings, self.labelled)

    def rows_to_split(self, settings: SplitSettings, index: np.ndarray) -> RowsToSplit:
        """Return the values of molecules for a split method that reads no column."""
        smiles = [self.smiles[i] for i in index]
        return RowsToSplit(smiles, settings.sizes, settings.seed, group_duplicates=settings.group_duplicates)

    def in_folds(self, count: int, settings: SplitSettings) -> Self:
        """Divide the molecules that are not test into folds by the rule of a split; one fold changes nothing."""
        if count == 1:
            return self
        rows = np.union1d(self.split["train"], self.split["val"])
        if self.store.weights is not None:
            rows = rows[self.store.weights.numpy()[rows] > 0]
        folds = settings.folds(self.rows_to_split(settings, rows), count, self.strata(rows))
        summary = f"{self.split_summary}; {count} folds of {min(map(len, folds))} to {max(map(len, folds))}"
        split = self.split | {"train": rows, "val": rows}
        return replace(self, split=split, split_summary=summary, folds=tuple(rows[fold] for fold in folds))

    @property
    def networks(self) -> list[Split]:
        """Indices of the molecules that train and validate each network: of one, or of one for each fold."""
        if not self.folds:
            return [self.split]
        return [{"train": np.setdiff1d(self.split["train"], fold), "val": fold} for fold in self.folds]

    def part_names(self) -> dict[int, str]:
        """Name the part of each molecule in a part: train, val or test, or its fold, such as "fold 3"."""
        parts = {part: index for part, index in self.split.items() if not self.folds or part == "test"}
        parts |= {f"fold {k}": fold for k, fold in enumerate(self.folds, 1)}
        return {molecule: part for part, index in parts.items() for molecule in index.tolist()}

    def divided(self, settings: SplitSettings) -> Self:
        """Divide the molecules with a label into training, validation and test molecules."""
        index, rows = self.candidates(settings)
        split = settings.divide(rows, self.strata(index)) if len(index) else dict.fromkeys(SPLIT_PARTS, index)
        summary = settings.describe(rows.smiles, split)
        return self.with_split({part: index[own] for part, own in split.items()}, summary)

    def with_split(self, split: Split, summary: str) -> Self:
        """Return the molecules with a split and its description; training molecules of weight 0 are left out."""
        if self.store.weights is not None:
            split = split | {"train": split["train"][self.store.weights.numpy()[split["train"]] > 0]}
        return replace(self, split={part: split[part] for part in SPLIT_PARTS}, split_summary=summary)

    def strata(self, index: np.ndarray) -> np.ndarray | None:
        """Return the classes of molecules for stratified folds, int; None unless the task has one target of classes."""
        discrete = self.task.discrete and self.task.level == "molecule" and self.y.shape[1] == 1
        return self.y[index, 0].astype(int) if discrete else None

    @cached_property
    def leaked(self) -> dict[tuple[str, str], int]:
        """Number of molecules that two parts share."""
        apart = {part: index for part, index in self.split.items() if not self.folds or part != "val"}
        return count_shared_molecules(self.smiles, apart)

    @property
    def train(self) -> MoleculeStore:
        """Training molecules."""
        return self.store.subset(self.split["train"])

    @property
    def counts(self) -> dict[str, int]:
        """Number of molecules in each part."""
        return {part: len(index) for part, index in self.split.items()}

    @property
    def sizes(self) -> dict[str, int]:
        """Number of molecules in each part, without those of folds, which are in "train" already."""
        return {part: count for part, count in self.counts.items() if part != "val" or not self.folds}

    def fitted(self) -> Task:
        """Fit the task to the training rows, see `Task.fitted`."""
        train = self.task.labelled(self.train)
        if not len(train):
            raise InputError("there are no training molecules with a target value")
        return self.task.fitted(train)

    def row_number(self, molecule: int) -> int:
        """Return the number of the row of a molecule, from 1."""
        return molecule + 1

    def cells(self, molecule: int) -> list[str]:
        """Format the targets of a molecule as cells of a table."""
        lower, upper = np.full((2, self.y.shape[1]), np.nan)
        if self.store.bounds is not None:
            lower, upper = self.store.bounds[molecule].numpy().reshape(2, -1)

        def cell(t: int, value: float) -> str:
            if np.isnan(value):
                bounds = ((">", lower[t]), ("<", upper[t]))
                return "".join(f"{sign}{bound:.9g}" for sign, bound in bounds if not np.isnan(bound))
            return self.task.columns.labels(t)[int(value)] if isinstance(self.task, ClassTask) else f"{value:.9g}"

        return [cell(t, value) for t, value in enumerate(self.y[molecule].tolist())]


@dataclass(frozen=True)
class Dataset(LabelledMolecules):
    """Labelled molecules that were read from tables, with the row number of each molecule.

    Attributes:
        files: the training table, then the files of validation and test rows, if any.
        rows: int64 `[m]`, index of the row of each molecule among all rows.
        duplicates: summary of repeated molecules.
        remarks: lines about how the task was chosen from the cells, for the user.
    """

    files: list[InputFile]
    rows: np.ndarray
    duplicates: DuplicateSummary
    remarks: Sequence[str] = ()

    @property
    def unlabelled(self) -> int:
        """Number of readable molecules with neither a value nor a bound for any target."""
        return len(self.store) - len(self.labelled)

    @property
    def weightless(self) -> int:
        """Number of molecules that would be training molecules, and are left out as their weight is 0."""
        if self.store.weights is None:
            return 0
        rest = np.setdiff1d(self.labelled, np.concatenate(list(self.split.values())))
        return int((self.store.weights.numpy()[rest] == 0).sum())

    def labelled_in(self, file: InputFile) -> np.ndarray:
        """Return the indices of the molecules with a label in one of the files."""
        rows = self.rows[self.labelled]
        return self.labelled[(rows >= file.start) & (rows < file.start + len(file.rows))]

    def column(self, name: str, index: np.ndarray) -> tuple[list[str], list[int]]:
        """Return the cells of a column for molecules of the first file, and the numbers of their rows."""
        first = self.files[0]
        with named(first):
            place = find_column(first.columns, name)
        rows = [first.rows[i] for i in self.rows[index].tolist()]
        return [row.cells[place] for row in rows], [row.number for row in rows]

    def candidates(self, settings: SplitSettings) -> tuple[np.ndarray, RowsToSplit]:
        """Return the molecules of the first file that the split method can divide; its row log names the others."""
        index = self.labelled_in(self.files[0])
        cells, numbers = ([], []) if settings.by is None else self.column(settings.by, index)
        smiles = [self.smiles[i] for i in index]
        with named(self.files[0]):
            usable, rows = settings.candidates(cells, numbers, smiles, self.files[0].row_log)
        return index[usable], rows

    def rows_to_split(self, settings: SplitSettings, index: np.ndarray) -> RowsToSplit:
        rows = super().rows_to_split(settings, index)
        if settings.by is None or settings.method.reads is None:
            return rows
        cells, numbers = self.column(settings.by, index)
        values, usable = settings.method.reads(cells)
        if not usable.all():
            first = int(usable.argmin())
            why = f"is not {settings.method.expects}"
            raise InputError(format_row_message(numbers[first], settings.by, cells[first], why))
        return replace(rows, values=values)

    def row_number(self, molecule: int) -> int:
        return self.place(molecule)[1].number

    def cells(self, molecule: int) -> list[str]:
        file, row = self.place(molecule)
        return [self.task.columns.cells(t, [row], file.columns)[0] for t in range(len(self.task.targets))]

    @cached_property
    def nearest(self) -> NearestTrainingMolecules | None:
        """Similarity of test molecules (or, without any, validation molecules) to the training molecules."""
        parts = ("test",) if self.folds else ("test", "val")  # a molecule of a fold is its own nearest
        part = next((part for part in parts if len(self.split[part])), None)
        return None if part is None else find_nearest_training_molecules(self.store, self.split, part)

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

    def place(self, molecule: int) -> tuple[InputFile, Row]:
        """Return the input file and the row of a molecule."""
        at = self.rows[molecule]
        file = next(file for file in reversed(self.files) if file.start <= at)
        return file, file.rows[at - file.start]

    def describe_place(self, molecule: int) -> str:
        """Name the row of a molecule, and its file, if there are several."""
        file, row = self.place(molecule)
        return f"row {row.number}" + (f" of {file.source}" if len(self.files) > 1 else "")
