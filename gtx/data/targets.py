"""Targets: cells to numbers, blanks kept apart from mistakes, and which task the numbers pose."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gtx.data.columns import column_index
from gtx.data.ledger import Ledger
from gtx.data.rows import Row
from gtx.errors import InputError, printable

BLANKS = frozenset({"", "nan", "na", "n/a", "<na>", "#n/a", "none", "null"})
"""What a cell without a value may say, in any case; such a target is masked, never imputed."""

TASKS = ("regression", "classification")


def parse_targets(
    rows: Sequence[Row],
    columns: Sequence[str],
    names: Sequence[str],
    ledger: Ledger,
    task: str | None = None,
    trains: bool = True,
) -> np.ndarray:
    """The targets of all rows of a table, checked.

    Args:
        rows: all rows; those that came with an error get no numbers.
        columns: the names of their cells.
        names: the T target columns.
        ledger: gets a row error for a cell that is no finite number, or for a class other than 0 and 1.
        task: "regression" or "classification"; by default what `infer_task` says.
        trains: the rows are for training, so that a column without numbers or with a single class is of no use.

    Returns:
        float64 `[n, T]`, NaN for blanks and for rows with an error.

    Raises:
        InputError: for a missing or repeated column, a column of text, of blanks, or one with a single class.
    """
    if repeated := [name for i, name in enumerate(names) if name in names[:i]]:
        raise InputError(f"target column {repeated[0]!r} is named twice")
    if task not in (None, *TASKS):
        raise InputError(f"the task must be one of {', '.join(TASKS)}, not {task!r}")
    y = _numbers(rows, columns, names)
    y[[bool(row.error) for row in rows]] = np.nan
    places = [column_index(columns, name) for name in names]
    for column, place, name in zip(y.T, places, names, strict=True):
        if trains and not np.isfinite(column).any():
            raise InputError(_no_numbers([row.cells[place] for row in rows if not row.error], name))
    bad, reason = np.isinf(y), "is not a finite number, nor blank"
    if task == "classification":
        bad, reason = ~np.isnan(y) & ~np.isin(y, (0, 1)), "is neither 0 nor 1, nor blank"
    for i, t in zip(*np.nonzero(bad), strict=True):
        ledger.error(rows[i].number, names[t], rows[i].cells[places[t]], reason, kind="with a bad target")
    y[bad.any(axis=1)] = np.nan
    if trains and (task or infer_task(y)) == "classification":
        _refuse_single_class(y, names)
    return y


def read_targets(rows: Sequence[Row], columns: Sequence[str], names: Sequence[str], task: str) -> np.ndarray:
    """float64 `[n, T]`, the targets of rows that are only scored: NaN for whatever is no finite number, or no class."""
    y = _numbers(rows, columns, names)
    return np.where(np.isin(y, (0, 1)) if task == "classification" else np.isfinite(y), y, np.nan)


def parse_number(cell: str) -> float:
    """The number in a cell: NaN for a blank, infinity for anything that is not a finite number."""
    cell = cell.strip()
    if cell.lower() in BLANKS:
        return np.nan
    try:
        number = float(cell)
    except ValueError:
        return np.inf
    # Python reads "1_000" as a number; nobody who writes a table means that
    return number if np.isfinite(number) and "_" not in cell else np.inf


def infer_task(y: np.ndarray) -> str:
    """The task that targets pose: "classification" if all of them are 0 or 1, else "regression".

    Args:
        y: `[n, T]`, NaN for blanks.
    """
    values = y[~np.isnan(y)]
    return "classification" if len(values) and np.isin(values, (0, 1)).all() else "regression"


def _numbers(rows: Sequence[Row], columns: Sequence[str], names: Sequence[str]) -> np.ndarray:
    places = [column_index(columns, name) for name in names]
    y = [[parse_number(row.cells[place]) for place in places] for row in rows]
    return np.array(y, np.float64).reshape(-1, len(names))


def _no_numbers(cells: Sequence[str], name: str) -> str:
    text = [cell for cell in cells if np.isinf(parse_number(cell))]
    held = f"holds text, e.g. '{printable(text[0])}'" if text else f"is blank in all of the {len(cells)} rows"
    return f"target column {name!r} {held}; numbers were expected"


def _refuse_single_class(y: np.ndarray, names: Sequence[str]) -> None:
    for column, name in zip(y.T, names, strict=True):
        classes = np.unique(column[~np.isnan(column)])
        if len(classes) < 2:
            held = f"only the class {classes[0]:.0f}" if len(classes) else "no class at all"
            raise InputError(f"target column {name!r} holds {held}; classification needs both 0 and 1")


class Duplicates(NamedTuple):
    """Molecules that a table holds more than once.

    Attributes:
        molecules: how many different molecules are repeated.
        rows: how many rows they fill.
        conflicting: for how many of the molecules two rows give a target different values.
    """

    molecules: int
    rows: int
    conflicting: int

    def __str__(self) -> str:
        return f"{self.molecules} molecules fill {self.rows} rows, {self.conflicting} of them with conflicting labels"


def conflicting_duplicates(smiles: Sequence[str | None], y: np.ndarray) -> Duplicates:
    """Count repeated molecules and those whose labels contradict each other; a blank contradicts nothing.

    Args:
        smiles: canonical SMILES of the n rows; None, or an empty one, is no molecule.
        y: `[n, T]`, NaN for blanks.
    """
    groups: dict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(smiles):
        if text:
            groups[text].append(i)
    repeated = [rows for rows in groups.values() if len(rows) > 1]
    conflicting = sum(any(len(set(column[~np.isnan(column)])) > 1 for column in y[rows].T) for rows in repeated)
    return Duplicates(len(repeated), sum(map(len, repeated)), conflicting)
