"""Settings of a split, and the split that follows from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from gtx.base.errors import InputError
from gtx.data.row_log import RowLog, format_row_message
from gtx.data.splits import (
    SPLIT_METHODS,
    SPLIT_PARTS,
    RowsToSplit,
    Split,
    SplitMethod,
    assign_folds,
    check_split_shares,
    count_shared_molecules,
    get_split_method,
    repeated_cross_validation_splits,
)


@dataclass(frozen=True)
class SplitSettings:
    """Settings of a split: the method, the sizes of the parts, the seed, and the column that the method reads.

    Attributes:
        split: name of the split method in `SPLIT_METHODS`.
        by: column that the split method reads, if any.
        sizes: shares of train, val and test, which add up to 1.
        test_folds: number of folds of a cross-validation. One of them has the test rows, and a tenth of the other rows
            are validation rows. None for a split by sizes.
        test_fold: number of the fold with the test rows, 1 to `test_folds`.
        seed: seed of random choices.
        group_duplicates: whether a random split puts all rows of a molecule into one part.

    Raises:
        InputError: a setting is out of range, or two settings contradict each other.
    """

    split: str = "random"
    by: str | None = None
    sizes: tuple[float, float, float] = (0.8, 0.1, 0.1)
    test_folds: int | None = None
    test_fold: int = 1
    seed: int = 0
    group_duplicates: bool = True

    def __post_init__(self) -> None:
        method = self.method
        check_split_shares(self.sizes)
        if self.seed < 0:
            raise InputError(f"split_seed: expected a value 0 or more, got {self.seed}")
        if self.by is not None and method.reads is None:
            able = " and ".join(name for name, one in SPLIT_METHODS.items() if one.reads)
            raise InputError(f"split {self.split} reads no column; --split-by goes with {able}")
        if self.by is None and method.reads is not None:
            raise InputError(f"split {self.split} reads a column: say which with --split-by")
        if self.test_folds is not None:
            if self.test_folds < 2:
                raise InputError(f"test_folds: expected 2 or more, got {self.test_folds}")
            self.grouping()
        if not 1 <= self.test_fold <= (self.test_folds or 1):
            expected = "only with test_folds" if self.test_folds is None else f"1 to {self.test_folds}"
            raise InputError(f"test_fold: expected {expected}, got {self.test_fold}")

    def grouping(self) -> Callable[[RowsToSplit], Sequence[str]]:
        """Return the function that labels the rows by group, from which folds are made.

        Raises:
            InputError: the method makes no groups.
        """
        if self.method.groups is None:
            able = ", ".join(name for name, one in SPLIT_METHODS.items() if one.groups)
            raise InputError(f"split {self.split} makes no folds; these do: {able}")
        return self.method.groups

    def without(self, parts: Collection[str]) -> Self:
        """Return the settings without some parts, such as "test", to which the split then gives no rows."""
        sizes = [0.0 if part in parts else size for part, size in zip(SPLIT_PARTS, self.sizes, strict=True)]
        train, val, test = (size / sum(sizes) for size in sizes)
        return replace(self, sizes=(train, val, test))

    @property
    def method(self) -> SplitMethod:
        """Split method with the name `split`."""
        return get_split_method(self.split)

    def candidates(
        self, cells: Sequence[str], numbers: Sequence[int], smiles: Sequence[str], row_log: RowLog
    ) -> tuple[np.ndarray, RowsToSplit]:
        """Select the rows that the method can divide.

        Args:
            cells: cells of the column `by`, one per row; empty if the method reads no column.
            numbers: numbers of the rows, from 1.
            smiles: canonical SMILES of each row.
            row_log: row log that gets a message for each row whose cell cannot be used; such a row is in no part of the
                split.

        Returns:
            Indices of the rows, int64, and their molecules and values.

        Raises:
            InputError: no cell can be used.
        """
        method, rows, values = self.method, np.arange(len(smiles)), np.zeros(0)
        if method.reads is not None:
            values, usable = method.reads(cells)
            for number, cell, good in zip(numbers, cells, usable, strict=True):
                if not good:
                    row_log.leave_out(number, self.by, cell, f"is not {method.expects}")
            self._check_enough(cells, numbers, values, usable)
            rows, values = rows[usable], values[usable]
        candidates = RowsToSplit(
            [smiles[i] for i in rows.tolist()], self.sizes, self.seed, values, self.group_duplicates
        )
        return rows, candidates

    def _check_enough(
        self, cells: Sequence[str], numbers: Sequence[int], values: np.ndarray, usable: np.ndarray
    ) -> None:
        """Raise an `InputError` with the first unreadable cell if too few cells can be read."""
        expected = self.method.expects
        if not usable.any():
            raise InputError(f"split {self.split}: no cell of column {self.by!r} is {expected}")
        bad = [i for i in np.flatnonzero(~usable).tolist() if cells[i].strip()]
        if bad and self.test_folds is None and len(set(values[usable].tolist())) < len(SPLIT_PARTS):
            first = format_row_message(int(numbers[bad[0]]), self.by, cells[bad[0]], f"is not {expected}")
            few = f"only {usable.sum()} of the {len(cells)} cells of column {self.by!r} can be read"
            raise InputError(f"split {self.split}: {few}; the first that cannot: {first}")

    def divide(self, rows: RowsToSplit, classes: np.ndarray | None = None) -> Split:
        """Make the split, by sizes or with one fold as test rows; for `classes`, see `repeated`."""
        if self.test_folds is None:
            return self.method.divide(rows)
        return self.repeated(rows, self.test_folds, 1, classes)[0][self.test_fold - 1]

    def repeated(
        self, rows: RowsToSplit, folds: int, repeats: int, classes: np.ndarray | None = None
    ) -> list[list[Split]]:
        """Divide the rows into folds, `repeats` times; all rows of a group, such as a scaffold, are in one fold.

        Args:
            rows: the n rows to divide.
            folds, repeats: as for `gtx.data.repeated_cross_validation_splits`.
            classes: class of each row, int `[n]`; a random split distributes each class evenly over the folds.
        """
        groups = self.grouping()(rows)
        return repeated_cross_validation_splits(
            groups, folds, repeats, self.seed, classes if self.method.spreads else None
        )

    def folds(self, rows: RowsToSplit, count: int, classes: np.ndarray | None = None) -> list[np.ndarray]:
        """Divide rows into folds by the rule of the split: no group of rows is divided, and times are consecutive.

        Args:
            rows: the n rows to divide.
            count: number of folds, 2 or more.
            classes: as in `repeated`.

        Raises:
            InputError: the method makes no folds, or there are fewer groups of rows than folds.
        """
        if self.method.folds is not None:
            return self.method.folds(rows, count)
        return assign_folds(self.grouping()(rows), count, self.seed, classes if self.method.spreads else None)

    def describe(self, smiles: Sequence[str], split: Split) -> str:
        """Describe how rows with these SMILES were divided."""
        parts = [self.split if self.by is None else f"{self.split} by column {self.by!r}"]
        if self.test_folds is not None:
            parts.append(f"fold {self.test_fold} of {self.test_folds}")
        if self.method.seeded or self.test_folds is not None:
            parts.append(f"seed {self.seed}")
        if len(set(smiles)) < len(smiles) and not count_shared_molecules(smiles, split):
            parts.append("each repeated molecule in one part")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values; different splits have different ones."""
        marks: dict[str, Any] = {"split": self.split, "split_sizes": list(self.sizes), "split_seed": self.seed}
        if self.split == "random" and self.group_duplicates:
            marks["group_duplicates"] = True
        if self.by is not None:
            marks["split_by"] = self.by
        if self.test_folds is not None:
            marks |= {"test_folds": self.test_folds, "test_fold": self.test_fold}
        return marks
