"""Scores of a table that is read in portions, and the count of cells that are not scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gtx.base.errors import InputError, printable
from gtx.data.columns import Row, find_columns
from gtx.data.delimited import LARGEST
from gtx.tasks.bounds import RelationColumns, read_bounds

if TYPE_CHECKING:
    from gtx.tasks.columns import Columns
    from gtx.tasks.objective import NumericObjective

MOST_LINES = 10
"""Largest number of targets whose cells are told of."""


@dataclass
class CellCount:
    """Number of cells of a target with a value, with a bound, and with something else by reason, with the first."""

    scored: int = 0
    bounds: int = 0
    others: dict[str, tuple[int, str]] = field(default_factory=dict)

    def leave_out(self, row: Row, cell: str, reason: str) -> None:
        """Count a cell that is not scored; the reason is what it has in place of a value."""
        number, first = self.others.get(reason, (0, f"row {row.number}: '{printable(cell, 40)}'"))
        self.others[reason] = number + 1, first

    def line(self, target: str, rows: int) -> str:
        """State how many cells are scored and why the others are not."""
        words = [
            f"{number} {'has' if number == 1 else 'have'} {reason}, first {first}"
            for reason, (number, first) in self.others.items()
        ]
        blank = rows - self.scored - self.bounds - sum(number for number, _ in self.others.values())
        for number, what in ((self.bounds, "a bound"), (blank, "blank")):
            words += [f"{number} {'is' if number == 1 else 'are'} {what}"] if number else []
        return f"{target}: scored on {self.scored} of {rows} rows; {'; '.join(words)}"


class TableScores:
    """Collection of predictions and measured values, if the table has them: 16 bytes per value.

    Args:
        columns: target columns of the task.
        objective: objective of the task.
        names: names of the columns of the table.
    """

    def __init__(self, columns: Columns, objective: NumericObjective, names: Sequence[str]) -> None:
        self.columns = columns
        self.objective = objective
        self.names = names
        self.position: dict[int, int] = find_columns(names, columns.targets)
        self.counts: dict[int, CellCount] = {t: CellCount() for t in self.position}
        self.relations: RelationColumns = columns.relations(names)
        self.rows: int = 0
        self.y: list[np.ndarray] = []
        self.bounds: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []

    def add(self, rows: Sequence[Row], answers: Any) -> None:
        """Add some rows and their predictions; a cell that cannot be read, or does not fit, is not scored."""
        if not self.position:
            return
        self.relations.add(rows)
        self.rows += len(rows)
        if self.columns.level.lists:
            self.y += [self._items(row, len(mean)) for row, mean in zip(rows, answers.mean, strict=True)]
            self.prediction += answers.mean
        else:
            self.y.append(self._values(rows))
            self.prediction.append(answers.mean)

    def _values(self, rows: Sequence[Row]) -> np.ndarray:
        """Read the values of some rows, `[n, T]`, and keep their bounds."""
        targets = len(self.columns.targets)
        y, bounds = np.full((len(rows), targets), np.nan), np.full((len(rows), 2, targets), np.nan)
        for t, count in self.counts.items():
            cells = self.columns.cells(t, rows, self.names)
            values = self.columns.values(t, cells)
            if self.columns.censored:
                bounds[:, :, t] = read_bounds(cells)
                count.bounds += int((~np.isnan(bounds[:, :, t])).any(axis=1).sum())
            bad = np.abs(values) > LARGEST  # and what is no number is infinite
            for i in np.flatnonzero(bad).tolist():
                count.leave_out(rows[i], cells[i], self.columns.unread_words(t, cells[i]))
            y[:, t] = np.where(bad, np.nan, values)
        joined = self.columns.joined(y)
        for i, t in np.argwhere(np.isinf(joined) & ~np.isnan(y)).tolist():
            self.counts[t].leave_out(rows[i], rows[i].cells[self.position[t]], self.columns.joint_words)
        joined = np.where(np.isinf(joined), np.nan, joined)
        for t, count in self.counts.items():
            count.scored += int((~np.isnan(joined[:, t])).sum())
        if self.columns.censored:
            self.bounds.append(bounds.reshape(len(rows), -1))
        return joined

    def _items(self, row: Row, items: int) -> np.ndarray:
        """Read the lists of a row, one value for each of its atoms or bonds, `[items, T]`."""
        y = np.full((items, len(self.columns.targets)), np.nan)
        for t, position in self.position.items():
            count, cell, level = self.counts[t], row.cells[position], self.columns.level.name
            try:
                values = self.columns.items(t, cell)
            except InputError:
                count.leave_out(row, cell, self.columns.unread_words(t, cell))
                continue
            if values is not None and len(values) != items:
                length = f"a list of another length than one {self.columns.nouns[0]} for each {level}"
                count.leave_out(row, cell, length)
            elif values is not None:
                y[:, t] = values
                count.scored += int(not np.isnan(values).all())
        return y

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None without a single measured value or bound."""
        if not self.y:
            return None
        y, prediction = np.concatenate(self.y), np.concatenate(self.prediction)
        bounds = np.concatenate(self.bounds) if self.bounds else np.empty(0)
        if np.isnan(y).all() and np.isnan(bounds).all():
            return None
        scores = self.objective.evaluate(y, prediction)
        if self.bounds:
            scores = add_bound_scores(scores, self.columns.targets, bounds, prediction)
        names = [self.columns.targets[t] for t in self.position]
        return {**scores, "per_target": {name: scores["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """State how many cells of the first few targets are not scored, and why."""
        counts = [(self.columns.targets[t], count) for t, count in self.counts.items() if count.others]
        lines = [count.line(target, self.rows) for target, count in counts[:MOST_LINES]]
        if len(counts) > MOST_LINES:
            lines.append(f"{len(counts) - MOST_LINES} more targets have cells that are not scored")
        return lines + self.relations.lines()


def add_bound_scores(
    scores: dict[str, Any], targets: Sequence[str], bounds: np.ndarray, prediction: np.ndarray
) -> dict[str, Any]:
    """Add to the scores of each target the number of its `bounds` and `bounds_kept`, the share satisfied."""
    above, below = np.split(bounds, 2, axis=1)
    known, kept = ~np.isnan(above) | ~np.isnan(below), (prediction >= above) | (prediction <= below)
    for t, name in enumerate(targets):
        if count := int(known[:, t].sum()):
            scores["per_target"][name] |= {"bounds": count, "bounds_kept": float(kept[:, t].sum() / count)}
    return scores
