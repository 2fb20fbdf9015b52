"""Settings and rows of a data set: which columns are read, and what came of each row."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from gtx.data import (
    Duplicates,
    FeatureColumns,
    MoleculeStore,
    Nearest,
    Row,
    Split,
    SplitSettings,
    column_index,
    nearest,
)
from gtx.data.ledger import File
from gtx.errors import InputError, did_you_mean
from gtx.lazy import annex
from gtx.molecules import Featuriser
from gtx.tasks import Inferred, Task

# --- Settings.

LONGEST_UNIT = 40


@dataclass(frozen=True)
class DataSettings:
    """Settings of the data: table, columns, featuriser, and split.

    Attributes:
        data: what `gtx.data.open_table` reads.
        target_columns: the targets, where `task` does not name them.
        smiles_column: default as `gtx.data.open_table` says; of several components, see `featuriser`, their names are
            those of their columns.
        task: the kind of target; default: as `gtx.tasks.Inferred` says.
        split: a name of `gtx.data.SPLIT_METHODS`, unless a column or files define the split.
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
        units: of targets, by name, as people are to see them.
        features: columns that the model reads beside the molecule.
        weight_column: weights of the rows in the loss, 0 or more; a training row of weight 0 is left out.

    Raises:
        InputError: the settings of the split are out of range or contradict each other, see
            `gtx.data.SplitSettings`.
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
        _ = self.split_settings  # is checked
        if self.smiles_column and self.featuriser.components:
            several = " ".join(self.featuriser.components)
            raise InputError(f"--smiles-column {self.smiles_column} and --smiles-columns {several}: give one of them")
        whole = not getattr(self.task, "writes", False) and getattr(self.task, "per", "molecule") == "molecule"
        if self.featuriser.components and not (whole and not getattr(self.task, "also", None)):
            raise InputError(f"task {self.task.name} reads one molecule a row: leave out --smiles-columns")
        if self.features:
            self.features.check(self.featuriser)
        if self.folds is not None and (self.val or self.test or self.split_column):
            raise InputError("the split is given twice: by folds and by a column or files; give one of them")
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
        return SplitSettings(
            self.split, self.split_by, self.split_sizes, self.folds, self.fold, self.seed, self.group_duplicates
        )


def fingerprint(settings: DataSettings) -> dict[str, Any]:
    """Plain values that tell these data, read and divided this way, from any other; for a run's `config.yaml`."""

    def described(source: str | None) -> dict[str, str] | None:
        if source is None:
            return None
        path = Path(source)
        if path.is_dir():
            return {"file": path.name, "sha256": annex("library", "a store").store_marks(path)}
        return {"file": path.name, "sha256": sha256(path)} if path.is_file() else None

    how = {"split_column": settings.split_column} if settings.split_column else settings.split_settings.marks()
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
    """Hash the bytes of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- Labelled molecules and their split; of a table, with its files and rows.


@dataclass(frozen=True)
class LabelledMolecules:
    """Molecules with targets, divided into parts: all that training needs.

    Attributes:
        task: what is learned, settled by the table.
        store: the m molecules that could be read, with targets `[m, T]` in their own units, NaN for blanks.
        smiles: their canonical SMILES.
        split: molecule indices of "train", "val" and "test"; molecules without any label are in none.
        split_summary: how the rows were divided.
        smiles_column: what the column with the molecules is called.
    """

    task: Task
    store: MoleculeStore
    smiles: Sequence[str]
    split: Split
    split_summary: str
    smiles_column: str

    @property
    def y(self) -> np.ndarray:
        """float64 `[m, T]`: the targets in their own units."""
        return self.store.y.numpy()

    @property
    def train(self) -> MoleculeStore:
        """The molecules that train."""
        return self.store.subset(self.split["train"])

    @property
    def counts(self) -> dict[str, int]:
        """How many molecules each part has."""
        return {part: len(index) for part, index in self.split.items()}

    def fitted(self) -> Task:
        """Return the task with what it learns of the training rows before the network is, see `Task.fitted`."""
        train = self.task.labelled(self.train)
        if not len(train):
            raise InputError("there are no training molecules with a target value")
        return self.task.fitted(train)

    def row_number(self, molecule: int) -> int:
        """The number of a molecule's row, from 1."""
        return molecule + 1

    def cells(self, molecule: int) -> list[str]:
        """Cells of a molecule in the target columns."""
        cells = []
        for t, value in enumerate(self.y[molecule].tolist()):
            word = f"{value:.9g}" if not self.task.discrete or np.isnan(value) else self.task.labels(t)[int(value)]
            cells.append("" if np.isnan(value) else word)
        return cells


@dataclass(frozen=True)
class Dataset(LabelledMolecules):
    """All rows of the files, and the molecules that could be read.

    Attributes:
        files: the table, then the files of validation and test rows, if any.
        rows: int64 `[m]`, the molecules' row indices among all rows.
        duplicates: molecules found more than once.
        leaked: molecules on both sides of two parts.
    """

    files: list[File]
    rows: np.ndarray
    duplicates: Duplicates
    leaked: dict[tuple[str, str], int]

    @property
    def unlabelled(self) -> int:
        """Number of readable molecules with neither a value nor a bound for any target."""
        blank = self.store.y.isnan().all(1)
        if self.store.bounds is not None:
            blank &= self.store.bounds.isnan().all(1)
        return int(blank.sum())

    errors_stand: ClassVar[str] = "each stands in the row's predictions"
    """Place where all messages can be found, for the summary."""

    def row_number(self, molecule: int) -> int:
        return self.place(molecule)[1].number

    def cells(self, molecule: int) -> list[str]:
        file, row = self.place(molecule)
        return [row.cells[column_index(file.columns, name)] for name in self.task.targets]

    @cached_property
    def nearest(self) -> Nearest | None:
        """Similarity of test molecules (or, without any, validation molecules) to the training molecules."""
        judged = next((part for part in ("test", "val") if len(self.split[part])), None)
        return None if judged is None else nearest(self.smiles, self.split, judged)

    def without_test(self) -> Dataset:
        """Leave out the test rows, so that no choice can depend on them."""
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
        """Return the file and the row of a molecule."""
        at = self.rows[molecule]
        file = next(file for file in reversed(self.files) if file.start <= at)
        return file, file.rows[at - file.start]

    def describe_place(self, molecule: int) -> str:
        """Name the row of a molecule, and its file, if there are several."""
        file, row = self.place(molecule)
        return f"row {row.number}" + (f" of {file.source}" if len(self.files) > 1 else "")
