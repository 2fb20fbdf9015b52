"""The files of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gtx.data import TableWriter, fresh_name
from gtx.data.table_writer import output_header, output_row
from gtx.dataset import Dataset
from gtx.prediction.answering import NOT_FINITE
from gtx.report.words import TITLES
from gtx.tasks import NumberTask
from gtx.workflow.fold import OWN


def write_out_of_fold(path: Path, dataset: Dataset, names: Sequence[str], results: Sequence[dict[str, Any]]) -> None:
    """Every row as it was, then `<target>_<method>` from models that had not seen it, then error and warning."""
    (file,) = dataset.files
    methods = list(results[0]["predictions"])
    mean, times = _out_of_fold(len(dataset.smiles), methods, results)
    numbers = np.full((len(file.rows), mean.shape[1]), np.nan)
    numbers[dataset.rows] = mean
    for m, i in enumerate(dataset.rows.tolist()):
        row = file.rows[i]
        if np.isnan(dataset.y[m]).all():
            file.ledger.warn(row.number, None, None, "there is no target value; the row is in no fold")
        elif times[m] and np.isnan(mean[m]).any():
            file.ledger.warn(row.number, *row.place(file.smiles_column), f"of a method: {NOT_FINITE}")
    columns = list(file.columns)
    for name in names:
        for method in methods:
            columns.append(fresh_name(columns, f"{name}_{method}"))
    with TableWriter(path, output_header(file.columns, columns[len(file.columns) :])) as writer:
        for row, values in zip(file.rows, numbers, strict=True):
            notes = file.ledger.errors.get(row.number), file.ledger.warnings.get(row.number, [])
            writer.write(output_row(row, values.tolist(), *notes))


def write_comparison(path: Path, table: Sequence[dict[str, Any]]) -> None:
    """The rows of `gtx.report.comparison.compare`; an empty cell is what is not defined."""

    def cell(value: Any) -> str:
        return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)

    with TableWriter(path, list(table[0])) as writer:
        for row in table:
            writer.write([cell(value) for value in row.values()])


def write_picture(
    path: Path,
    results: Sequence[dict[str, Any]],
    table: Sequence[dict[str, Any]],
    task: NumberTask,
    units: dict[str, str],
) -> None:
    """The leading metric, split by split, and the differences."""
    from gtx.report.comparison_figure import comparison_figure, write_figure

    metric, lead = next(iter(task.metrics.items()))
    scores = [result["scores"] for result in results]
    write_figure(comparison_figure(scores, table, metric, {OWN: OWN} | TITLES, lead.title, units), path)


def _out_of_fold(
    molecules: int, methods: Sequence[str], results: Sequence[dict[str, Any]]
) -> tuple[np.ndarray, np.ndarray]:
    """Mean predictions `[m, T * methods]` over repeats, target by target, and how often a molecule was test, `[m]`."""
    targets = len(results[0]["predictions"][methods[0]][0])
    total, times = np.zeros((molecules, targets, len(methods))), np.zeros(molecules, int)
    for result in results:
        each = [np.array(result["predictions"][method], dtype=float) for method in methods]  # None becomes NaN
        total[result["test"]] += np.stack(each, axis=-1)
        times[result["test"]] += 1
    mean = total / np.where(times > 0, times, np.nan)[:, None, None]
    return mean.reshape(molecules, -1), times
