"""Which table, which columns, how molecules are read and rows are divided."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from gtx.data import Division, FeatureColumns
from gtx.data.preparing import is_store, store_marks
from gtx.errors import InputError
from gtx.molecules import Featuriser
from gtx.tasks import Inferred, Task


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

    @property
    def division(self) -> Division:
        """How the rows are divided, where neither a column nor files say."""
        return Division(
            self.split, self.split_by, self.split_sizes, self.folds, self.fold, self.seed, self.group_duplicates
        )


def fingerprint(settings: DataSettings) -> dict[str, Any]:
    """Plain values that tell these data, read and divided this way, from any other; for a run's `config.yaml`."""

    def described(source: str | None) -> dict[str, str] | None:
        if source is None:
            return None
        path = Path(source)
        if is_store(path):
            return {"file": path.name, "sha256": store_marks(path)}
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
