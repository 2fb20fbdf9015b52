"""Columns of a task: how the cells of a table become values, bounds, classes or lists, and what cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch

from gtx.base.errors import InputError, printable
from gtx.data.cells import (
    BLANK_WORDS,
    LARGEST,
    LIMIT,
    attach_lists,
    comma_advice,
    has_comma,
    no_numbers,
    parse_list,
    parse_number,
    split_list,
    too_large,
)
from gtx.data.rows import Row, RowLog, find_column, find_columns, format_row_message, named, plural
from gtx.tasks.bounds import RELATION_WORDS, RelationColumns, join_relation, parse_bound, read_bounds
from gtx.tasks.levels import LEVELS, Level

if TYPE_CHECKING:
    from gtx.data import MoleculeStore
    from gtx.data.rows import InputFile

BAD_TARGET = "with a bad target"
NO_NUMBER = f"is not a finite number, nor blank: {BLANK_WORDS}"


@dataclass(frozen=True)
class Columns:
    """T target columns whose cells are numbers, or, for atoms and bonds, lists of numbers.

    A subclass reads other cells: it overrides `values` (and `items`, the same for a list), `complaint`, and, if the
    values of a row belong together, `check_rows` and `row_complaint`.

    Attributes:
        targets: names of the columns.
        level: level of the targets; a cell of atoms or bonds is a list.
        censored: whether cells such as `>5` are bounds to learn from, or errors; None for values that have no bounds.
        relation_column: column with the relation of each value of the one target, such as `>`, which makes it a bound.
    """

    targets: tuple[str, ...]
    level: Level = LEVELS["molecule"]
    censored: bool | None = field(default=None, kw_only=True)
    relation_column: str | None = field(default=None, kw_only=True)

    discrete: ClassVar[bool] = False
    """True if values are numbers of classes."""
    nouns: ClassVar[tuple[str, str]] = ("number", "numbers")
    """Singular and plural of an item of a list."""
    joint_words: ClassVar[str] = "values that do not fit together"
    """What a row has whose values `check_rows` refuses, after "have"."""

    # what a kind of column defines

    def values(self, target: int, cells: Sequence[str]) -> np.ndarray:
        """Parse the cells of a target, float64 `[n]`: NaN for blanks, infinity for any other text without a value."""
        numbers = np.array([parse_number(cell) for cell in cells], np.float64)
        if self.censored:
            numbers[[i for i in np.flatnonzero(np.isinf(numbers)).tolist() if parse_bound(cells[i])]] = np.nan
        return numbers

    def items(self, target: int, cell: str) -> np.ndarray | None:
        """Parse the list of a cell, float64 `[a]`, NaN for blanks; None for a blank cell.

        Raises:
            InputError: it is no such list.
        """
        return parse_list(cell, parse_bound)

    def complaint(self, target: int, cell: str) -> str:
        """Describe the error of a cell that is not a value of a target."""
        if self.censored is False and parse_bound(cell):
            return "is a bound, not a number; --censored learns from bounds too"
        if self.relation_column is not None:
            relation = f"the relation of column {self.relation_column!r} before it: {RELATION_WORDS}"
            return f"{NO_NUMBER}; expected a number, and {relation}"
        return NO_NUMBER

    def unread_words(self, target: int, cell: str) -> str:
        """Say what a cell has that is not a value of a target, after "have"."""
        if self.level.lists:
            return f"no list of {self.nouns[1]}"
        if self.censored is not None and parse_bound(cell):
            return "a bound in place of a number"
        return "no number" if np.isinf(parse_number(cell)) else f"a number beyond {LARGEST:g}"

    def check_rows(self, y: np.ndarray) -> np.ndarray:
        """Check the values of each row `[n, T]` together, NaN for blanks; infinity where they do not fit."""
        return y

    def row_complaint(self, y: np.ndarray) -> str:
        """Say why `check_rows` refuses the values of a row, `[T]`."""
        return self.joint_words

    # what follows from it

    def cells(self, target: int, rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
        """Return the cells of a target, with their relations; blank for broken rows.

        Raises:
            InputError: there is no such column, or several.
        """
        place = find_column(columns, self.targets[target])
        cells = ["" if row.error else row.cells[place] for row in rows]
        for at in find_columns(columns, [self.relation_column] if self.relation_column else []).values():
            pairs = zip(rows, cells, strict=True)
            cells = ["" if row.error else join_relation(cell, row.cells[at]) for row, cell in pairs]
        return cells

    def relations(self, columns: Sequence[str]) -> RelationColumns:
        """Return the columns of a table that may hold relations of the targets; none for columns without bounds."""
        if self.censored is None or self.level.lists:
            return RelationColumns((), ())
        return RelationColumns(columns, self.targets, self.relation_column)

    def infer(self, files: Sequence[InputFile]) -> dict[str, Any]:
        """Return the fields of the task that depend on the cells of the tables, such as the names of classes.

        Raises:
            InputError: a column is missing or cannot be learned.
        """
        for t, name in enumerate(self.targets):
            with named(files[0]):
                cells = self.cells(t, files[0].rows, files[0].columns)
            if self.level.lists:
                if all(self.items_or_none(t, cell) is None for cell in cells):
                    raise InputError(
                        f"target column {name!r} holds no list of {self.nouns[1]} in any of the {len(cells)} rows; "
                        f"one {self.nouns[0]} for each {self.level.name} was expected"
                    )
            elif not np.isfinite(values := self.values(t, cells)).any():
                for cell in (cell for cell, value in zip(cells, values, strict=True) if np.isinf(value)):
                    if (complaint := self.complaint(t, cell)) != NO_NUMBER:
                        raise InputError(f"target column {name!r} holds no value: '{printable(cell)}' {complaint}")
                raise InputError(no_numbers(cells, name))
        return {}

    def items_or_none(self, target: int, cell: str) -> np.ndarray | None:
        """Parse the list of a cell; None if it is blank or no list."""
        try:
            return self.items(target, cell)
        except InputError:
            return None

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        """Parse the targets of all rows, float64 `[n, T]`, NaN for blanks; a wrong cell is an error of its row.

        Of lists it is the mean, by which duplicates and blank rows are recognised.
        """
        if self.level.lists:
            return self._means(rows, columns, row_log)
        if self.relation_column is not None:
            find_column(columns, self.relation_column)
        cells = [self.cells(t, rows, columns) for t in range(len(self.targets))]
        y = np.stack([self.values(t, column) for t, column in enumerate(cells)], axis=1)
        bad = np.isinf(y)
        wrong = [[column[i] for i in np.flatnonzero(bad[:, t])] for t, column in enumerate(cells)]
        advice = ["" if self.discrete else comma_advice(column) for column in wrong]
        for i, t in zip(*np.nonzero(bad), strict=True):
            cell = cells[t][i]
            reason = self.complaint(t, cell) + (advice[t] if has_comma(cell) else "")
            row_log.error(rows[i].number, self.targets[t], cell, reason, category=BAD_TARGET)
        y[bad.any(axis=1)] = np.nan
        if place := too_large(y):
            row, name, cell = rows[place[0]], self.targets[place[1]], cells[place[1]][place[0]]
            raise InputError(format_row_message(row.number, name, cell, f"is too large: {LIMIT}"))
        joined = self.check_rows(y)
        for i in np.flatnonzero(np.isinf(joined).any(1)).tolist():
            row_log.error(rows[i].number, None, None, self.row_complaint(y[i]), category=BAD_TARGET)
        return np.where(np.isinf(joined), np.nan, joined)

    def _means(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        y = np.full((len(rows), len(self.targets)), np.nan)
        places = [find_column(columns, name) for name in self.targets]
        for i, row in enumerate(rows):
            means: list[float] = []
            for t, place in enumerate(() if row.error else places):
                cell = row.cells[place]
                try:
                    means.append(_mean(self.items(t, cell)))
                except InputError as reason:
                    row_log.error(row.number, self.targets[t], cell, str(reason), category=BAD_TARGET)
                    break
                number = 0 if self.discrete else sum(parse_bound(item) is not None for item in split_list(cell))
                if number:
                    words = f"left out as blank: of {self.level.name}s only exact values are learned"
                    row_log.warn(row.number, self.targets[t], cell, f"{plural(number, 'bound')} {words}")
            if len(means) == len(places):
                y[i] = means
        return y

    def parse_bounds(self, rows: Sequence[Row], columns: Sequence[str]) -> np.ndarray | None:
        """Parse bounds of values that were not measured, see `bounds_in`."""
        return self.bounds_in([self.cells(t, rows, columns) for t in range(len(self.targets))])

    def bounds_in(self, columns: Sequence[Sequence[str]]) -> np.ndarray | None:
        """Parse the bounds in the cells of T targets, float64 `[n, 2T]`: T lower, then T upper; NaN without a bound.

        None if the columns have no bounds.
        """
        if not self.censored:
            return None
        return np.stack([read_bounds(cells) for cells in columns], axis=2).reshape(len(columns[0]), -1)

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]] | None:
        """Parse the lists of each row by target, float64 `[a]`; None if cells are no lists."""
        if not self.level.lists:
            return None
        places = [find_column(columns, name) for name in self.targets]
        parts: list[dict[str, np.ndarray]] = []
        for row in rows:
            cells = [] if row.error else [row.cells[place] for place in places]
            items = [self.items_or_none(t, cell) for t, cell in enumerate(cells)]
            pairs = zip(self.targets, items, strict=False)  # a broken row has none
            parts.append({name: values for name, values in pairs if values is not None})
        return parts

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        """Add the lists of `parse_lists` to the molecules of a store.

        Returns:
            The store, and for each molecule whose list does not fit, by its index, the target and the reason.
        """
        ptr = self.level.ptr(store).numpy()
        y, wrong = attach_lists(lists, self.targets, ptr, "bond" if self.level.name == "bond" else "atom", self.nouns)
        return self.level.with_targets(store, torch.from_numpy(y)), wrong


def _mean(values: np.ndarray | None) -> float:
    """Average the known values, independent of the order of the atoms; NaN if none is known."""
    measured = np.empty(0) if values is None else np.sort(values[~np.isnan(values)])
    return float(measured.mean()) if len(measured) else np.nan
