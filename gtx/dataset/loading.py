"""From a table to molecules with labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gtx.data import (
    Featurised,
    Ledger,
    MoleculeStore,
    Row,
    column_index,
    conflicting_duplicates,
    featurise,
    leakage,
    open_table,
    with_components,
)
from gtx.data.columns import listed
from gtx.data.weights import read_weights
from gtx.dataset.dividing import divided
from gtx.dataset.repeats import warn_of_conflicts
from gtx.dataset.rows import Dataset, File, named
from gtx.dataset.settings import DataSettings
from gtx.errors import InputError
from gtx.tasks import Inferred, Task


def load(settings: DataSettings, cache: str | Path | None = None, progress: bool = False) -> Dataset:
    """Read, check, featurise and divide.

    Args:
        settings: what and how.
        cache: folder for featurised molecules, see `gtx.data.featurise`.
        progress: show a progress bar.

    Raises:
        InputError: for a file, column, target or split that cannot be used; with `on_error="fail"` for a bad row.
    """
    files = _read(settings)
    if not settings.target_columns:
        names = listed(files[0].columns)
        raise InputError(f"say what to predict: give --target-columns out of the columns {names}")
    task, y, bounds = _targets(files, settings)
    lists = _lists(files, task)
    weights = _weights(files, settings, task)
    rows = [row for file in files for row in file.rows]
    done = _featurise(files, rows, settings, cache, progress)
    read = done.store if lists is None else _placed(files, task, done, lists)
    if settings.on_error == "fail":
        for file in files:
            if file.ledger.errors:  # the first by row, whichever check found it
                raise InputError(f"{file.source}: {file.ledger.errors[min(file.ledger.errors)]}")
    refused = np.array([file.ledger.errors.get(row.number) is not None for file in files for row in file.rows], bool)
    keep = done.good[~refused[done.good]]  # molecules whose row has no error of another kind
    if not len(keep):
        raise _nothing(files)
    labelled = keep[_labelled(y, bounds)[keep]]
    by_row, words = divided(files, settings, labelled, done, task, y)
    place = np.full(len(rows), -1)
    place[keep] = np.arange(len(keep))
    usable = set(labelled.tolist())
    split = {part: np.array([place[i] for i in index if i in usable], np.int64) for part, index in by_row.items()}
    if weights is not None:
        split["train"] = split["train"][weights[keep][split["train"]] > 0]
    if not len(split["train"]):
        raise InputError(f"none of the training rows can be used: {files[0].ledger.summary()}")
    smiles = [done.smiles[i] for i in keep]
    store = read.subset(np.searchsorted(done.good, keep)).with_targets(y[keep])
    store = replace(store, bounds=_kept(bounds, keep), weights=_kept(weights, keep))
    dataset = Dataset(
        files,
        task,
        store,
        keep,
        smiles,
        split,
        words,
        conflicting_duplicates(smiles, y[keep]),
        leakage(smiles, split),
    )
    warn_of_conflicts(dataset)
    return dataset


def _read(settings: DataSettings) -> list[File]:
    files, start = [], 0
    for source in (settings.data, settings.val, settings.test):
        if source is None:
            continue
        components = settings.featuriser.components
        first, *others = components or (settings.smiles_column,)
        table = open_table(source, first)
        table = with_components(table, others) if others else table
        if settings.features:
            table = settings.features.of_table(table)
        rows, ledger = list(table.rows), Ledger()
        ledger.enter(rows)
        files.append(File(source, table.columns, table.smiles_column, rows, ledger, start, components))
        start += len(rows)
    if not files[0].rows:
        raise InputError(f"{settings.data} has a header and no rows; there is nothing to train on")
    if all(row.error for row in files[0].rows):
        raise _nothing(files)
    return files


def _targets(files: Sequence[File], settings: DataSettings) -> tuple[Task, np.ndarray, np.ndarray | None]:
    """The task, settled, and the targets of all rows; and bounds of those that were not measured, if there are any."""
    for file in files:
        for name in (file.smiles_column, *settings.featuriser.components):
            if name in settings.target_columns:
                raise InputError(f"{name!r} holds the molecules; it cannot be a target too")
        if both := [
            name for name in settings.target_columns if settings.features and name in settings.features.columns
        ]:
            raise InputError(f"{both[0]!r} is a target; it cannot be a feature too")
    task = (settings.task or Inferred(settings.target_columns)).settle(files).reading(settings.features)
    parts, bounds = [], []
    for file in files:
        with named(file):
            parts.append(task.parse(file.rows, file.columns, file.ledger))
            bounds.append(task.parse_bounds(file.rows, file.columns))
    known = None if bounds[0] is None else np.concatenate(bounds)
    return task, np.concatenate(parts), None if known is None or np.isnan(known).all() else known


def _lists(files: Sequence[File], task: Task) -> list[dict[str, np.ndarray]] | None:
    """The targets of atoms or bonds of all rows; None where the task has none."""
    parts = [task.parse_lists(file.rows, file.columns) for file in files]
    return None if parts[0] is None else list(chain(*parts))


def _placed(
    files: Sequence[File], task: Task, done: Featurised, lists: Sequence[dict[str, np.ndarray]]
) -> MoleculeStore:
    """The molecules that could be read, with targets of their atoms or bonds; a list that does not fit its molecule is
    an error of the row."""
    store, wrong = task.placed(done.store, [lists[i] for i in done.good])
    for molecule, (target, reason) in wrong.items():
        at = done.good[molecule]
        file = next(file for file in reversed(files) if file.start <= at)
        row = file.rows[at - file.start]
        cell = row.cells[column_index(file.columns, target)]
        file.ledger.error(row.number, target, cell, reason, kind="with a bad target")
    return store


def _labelled(y: np.ndarray, bounds: np.ndarray | None) -> np.ndarray:
    """bool `[n]`: the rows of which anything is known."""
    known = ~np.isnan(y).all(axis=1)
    return known if bounds is None else known | ~np.isnan(bounds).all(axis=1)


def _kept(values: np.ndarray | None, rows: np.ndarray) -> Tensor | None:
    return None if values is None else torch.from_numpy(values[rows])


def _weights(files: Sequence[File], settings: DataSettings, task: Task) -> np.ndarray | None:
    """The weights of all rows, float64 `[n]`; a cell that is none is an error of its row."""
    name = settings.weight_column
    if name is None:
        return None
    if task.writes:
        raise InputError(f"--weight-column: the task {task.name} knows no weights of rows")
    if name in task.targets:
        raise InputError(f"{name!r} is a target; it cannot be the weight of its row too")
    parts = []
    for file in files:
        with named(file):
            parts.append(read_weights(file.rows, file.columns, name, file.ledger))
    return np.concatenate(parts)


def _featurise(
    files: Sequence[File], rows: Sequence[Row], settings: DataSettings, cache: str | Path | None, progress: bool
) -> Featurised:
    fail = settings.on_error == "fail"
    if fail and (bad := [file.start + min(file.ledger.errors) for file in files if file.ledger.errors]):
        rows, cache = rows[: bad[0]], None  # what follows the first bad row is not read
    done = featurise(
        settings.featuriser,
        [row.readable for row in rows],
        [row.coordinates for row in rows] if any(row.coordinates is not None for row in rows) else None,
        workers=settings.workers,
        cache=cache,
        progress=progress,
        to_first_error=fail,
    )
    if settings.features:
        done = settings.features.joined(done, [row.features for row in rows])
    for file in files:
        for i, row in enumerate(file.rows[: max(0, len(done.errors) - file.start)], file.start):
            if done.errors[i] and not row.error:
                file.ledger.error(row.number, *row.place(file.smiles_column), done.errors[i])
            for warning in done.warnings[i]:
                file.ledger.warn(row.number, *row.place(file.smiles_column), warning)
    return done


def _nothing(files: Sequence[File]) -> InputError:
    first = next((message for file in files for message in file.ledger.errors.values()), "no error noted")
    return InputError(f"no row of {files[0].source} can be used; {files[0].ledger.summary()}: {first}")
