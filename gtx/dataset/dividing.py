"""Which rows train, validate and test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from gtx.data import Candidates, Division, Featurised, Split, column_index, column_split
from gtx.dataset.rows import File, named
from gtx.dataset.settings import DataSettings
from gtx.errors import InputError
from gtx.tasks import NumberTask, Task


def divided(
    files: Sequence[File], settings: DataSettings, labelled: np.ndarray, done: Featurised, task: Task, y: np.ndarray
) -> tuple[Split, str]:
    """Row indices of each part, and how they were chosen, in words."""
    first = files[0]
    if settings.split_column is not None:
        if settings.val or settings.test:
            raise InputError("the split is given twice: by a column and by files; give one of them")
        at = column_index(first.columns, settings.split_column)
        cells = [row.cells[at] for row in first.rows]
        return column_split(cells, first.ledger, settings.split_column), f"column {settings.split_column!r}"
    own = {file.source: np.arange(file.start, file.start + len(file.rows)) for file in files}
    fixed = {part: own[source] for part, source in (("val", settings.val), ("test", settings.test)) if source}
    rest = labelled[labelled < len(first.rows)]
    if len(fixed) == 2:
        return {"train": rest, **fixed}, f"files {settings.val} and {settings.test}"
    division = settings.division
    kept, rows = candidates(files, division, rest, [done.smiles[i] for i in rest])
    rest = rest[kept]
    if fixed:  # the share of the part that a file gives falls to the one that is cut out here
        train, val, test = rows.sizes
        half = (val if "test" in fixed else test) / 2
        rows = replace(rows, sizes=(train, half, half))
    part = division.divide(rows, spread(task, y[rest]))
    words = division.words(rows.smiles, part)
    part = {name: rest[index] for name, index in part.items()}
    if fixed:
        held_out = np.sort(np.concatenate([part["val"], part["test"]]))
        missing = "val" if "test" in fixed else "test"
        (name, source), *_ = [(name, getattr(settings, name)) for name in fixed]
        return {"train": part["train"], missing: held_out, **fixed}, f"{words}; {name} from {source}"
    return part, words


def candidates(
    files: Sequence[File], division: Division, rows: np.ndarray, smiles: Sequence[str]
) -> tuple[np.ndarray, Candidates]:
    """`Division.candidates` of `rows` of the table, whose ledger gets the warnings.

    Raises:
        InputError: there is no such column, or no cell of it can be used.
    """
    table, cells = files[0], None
    with named(table):
        if division.by is not None:
            at = column_index(table.columns, division.by)
            cells = [table.rows[row].cells[at] for row in rows]
        numbers = [table.rows[row].number for row in rows]
        return division.candidates(cells, numbers, smiles, table.ledger)


def spread(task: Task, y: np.ndarray) -> np.ndarray | None:
    """The classes that folds spread evenly: those of a single target."""
    return y[:, 0].astype(int) if isinstance(task, NumberTask) and task.discrete and y.shape[1] == 1 else None
