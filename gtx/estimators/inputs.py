"""Conversion of X, y and weights of scikit-learn's interface."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.multiclass import check_classification_targets

from gtx.base.errors import InputError, printable
from gtx.data.cells import LARGEST, LIMIT, cell_text, comma_advice, parse_number
from gtx.prediction.inputs import as_frame, is_gap
from gtx.tasks import NumericTask
from gtx.tasks.columns import NO_NUMBER, check_count, in_order, label


def as_targets(y: Any, what: str = "y") -> tuple[np.ndarray, list[str]]:
    """Convert y to an array `[n]` or `[n, T]` of numbers or objects, and name its columns; one column is `[n]`."""
    y = as_frame(y)
    names = [str(name) for name in y.columns] if isinstance(y, pd.DataFrame) else None
    try:
        array = np.asarray(y)
    except ValueError:
        raise InputError(f"{what} must be of shape [n] or [n, T], and its rows differ in length") from None
    array = array if array.dtype.kind in "fiub" else np.asarray(y, dtype=object)
    array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if array.ndim not in (1, 2):
        got = list(array.shape) if array.ndim else f"a value of type {type(y).__name__}"
        raise InputError(f"{what} must be of shape [n] or [n, T], not {got}")
    name = getattr(y, "name", None) or what
    return array, names or ([str(name)] if array.ndim == 1 else [f"y{t}" for t in range(array.shape[1])])


def as_cells(column: Iterable[Any]) -> list[str]:
    """Write the values of a column of y as the cells of a table; NaN, None and NA are blanks."""
    return ["" if is_gap(value) else cell_text(value) for value in column]


def read_numbers(y: np.ndarray, task: NumericTask) -> tuple[np.ndarray, np.ndarray | None]:
    """Read the numbers in y, `[n]` or `[n, T]`, as a task reads the cells of a table.

    Returns:
        float64 of the same shape, NaN for blanks and bounds; and the bounds `[n, 2T]`, None without any.

    Raises:
        InputError: y contains something else, or the task reads relations, for which y has no column.
    """
    if task.columns.relation_column is not None:
        raise InputError('relation_column: y has no other column; with censored, texts such as ">5" are bounds')
    if y.dtype.kind in "fiub":
        numbers = y.astype(np.float64)
        for index in np.argwhere(np.abs(numbers) > LARGEST).tolist()[:1]:
            raise InputError(f"y holds {numbers[tuple(index)]:g} at {tuple(index)}: {LIMIT}")
        return numbers, None
    cells = [
        as_cells([float(value) if isinstance(value, (Real, np.bool_)) else value for value in column])
        for column in as_columns(y).T
    ]
    numbers = np.stack([task.columns.values(t, column) for t, column in enumerate(cells)], axis=1).reshape(y.shape)
    for index in np.argwhere(np.isinf(numbers)).tolist()[:1]:
        row, t = (*index, 0)[:2]
        where = f"row {row}" + (f", column {t}" if y.ndim > 1 else "")
        cell = cells[t][row]
        complaint = task.columns.complaint(t, cell).replace("--censored", "task_options={'censored': True}")
        advice = comma_advice([cell]) if complaint == NO_NUMBER else f": it {complaint}"
        place = f"y must be numbers: {where}, counted from 0, holds {printable(repr(y[tuple(index)]))}{advice}"
        raise InputError(f"{place}; for classes there is MoleculeClassifier")
    return numbers, task.columns.bounds_in(cells)


def check_classes(column: np.ndarray, cells: Sequence[str], name: str) -> None:
    """Raise an `InputError` if a column of y has too few or too many classes, measured numbers, or text and numbers."""
    values = [value for value, cell in zip(column, cells, strict=True) if label(cell) is not None]
    if len({isinstance(value, str) for value in values}) > 1:
        raise InputError(f"{name}: expected classes that are all text or all numbers, got both")
    if values:
        try:
            check_classification_targets(np.array(values))
        except ValueError as reason:
            message = str(reason).rstrip(".")
            raise InputError(f"{name}: {message}; for numbers there is MoleculeRegressor") from None
    labels = in_order(map(label, cells))
    if len(labels) < 2:
        raise InputError(f"{name}: expected two classes or more, got {', '.join(labels) or 'none'}")
    check_count(labels, name, "MoleculeClassifier")


def values_of_classes(column: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Return the value that stands for each class in a column of y: the first, as it is there.

    The index is the number of the class of each row, float `[n]`, NaN for blanks; every class occurs.
    """
    measured = ~np.isnan(index)
    return np.array(column[measured][np.unique(index[measured], return_index=True)[1]].tolist())


def as_weights(sample_weight: Any, rows: int) -> np.ndarray:
    """Convert `sample_weight` to float64 `[rows]`; None to ones.

    Raises:
        InputError: the shape is another, or a weight is negative or too large.
    """
    if sample_weight is None:
        return np.ones(rows)
    values, _ = as_targets(sample_weight, "sample_weight")
    if values.dtype.kind not in "fiub" and values.ndim == 1:
        values = np.array([parse_number(cell) for cell in as_cells(values)])
    weights = values.astype(np.float64)
    if weights.shape != (rows,):
        raise InputError(f"sample_weight must be of shape [{rows}], one for each row, not {list(weights.shape)}")
    fitting = (weights >= 0) & (weights <= LARGEST)
    if not fitting.all():
        index = int(fitting.argmin())
        raise InputError(f"sample_weight must be numbers from 0 to {LARGEST:g}: number {index} is {weights[index]:g}")
    return weights


def as_columns(y: np.ndarray) -> np.ndarray:
    """Convert y `[n]` or `[n, T]` to `[n, T]`."""
    return y[:, None] if y.ndim == 1 else y


def describe_warnings(rows: np.ndarray, warnings: Sequence[Sequence[str]], what: str) -> list[str]:
    """Make a message with the number of molecules that have a warning and the first of them, by the numbers of their
    `rows`; `what` has the warnings, such as "predictions". Empty without any.
    """
    warned = [i for i, texts in enumerate(warnings) if texts]
    if not warned:
        return []
    first = f"the first is number {rows[warned[0]]}, counted from 0: {'; '.join(warnings[warned[0]])}"
    return [f"{len(warned)} of {len(rows)} {what} with a warning; {first}"]
