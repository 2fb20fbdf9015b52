"""Loading: a table read, featurised and divided into training, validation and test rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gtx.data import (
    Candidates,
    Featurised,
    Ledger,
    MoleculeStore,
    Row,
    Split,
    SplitSettings,
    column_index,
    column_split,
    conflicting_duplicates,
    featurise,
    leakage,
    open_table,
    with_components,
)
from gtx.data.columns import listed
from gtx.data.ledger import File, counted, named
from gtx.data.targets import read_weights
from gtx.dataset.settings import Dataset, DataSettings
from gtx.errors import InputError, printable
from gtx.tasks import Inferred, NumberTask, Regression, Task

# --- Outliers among the targets: typing errors, other units, or values that span magnitudes.

FAR = 20
"""Interquartile ranges from the median; of a normal distribution no value is so far off."""


def outlier_lines(dataset: Dataset) -> list[str]:
    """Return a line for each target with such values."""
    if not isinstance(dataset.task, Regression):
        return []
    lines = []
    for name, y in zip(dataset.task.targets, dataset.y.T, strict=True):
        known = np.flatnonzero(~np.isnan(y))
        low, middle, high = np.percentile(y[known], (25, 50, 75)) if len(known) else (0, 0, 0)
        off = np.abs(y[known] - middle)
        far = int((off > FAR * (high - low)).sum())
        if high > low and far:
            first = known[off.argmax()]
            most = f"{counted(far, 'value')} far from the others, half of which lie from {low:.4g} to {high:.4g}"
            lines.append(
                f"warning: {name} has {most}; the farthest is {y[first]:.4g} in {dataset.describe_place(first)}: a "
                "typing error, or another unit? Of values that span magnitudes, train on the logarithm"
            )
    return lines


# --- Molecules with conflicting rows.

FIRST = 3  # molecules, and rows of each, that a line names
_LONGEST = 30  # characters of a value


def describe_duplicates(dataset: Dataset) -> str:
    """Report the number of molecules in several rows, and the first conflicts of labels; "" if there are none."""
    found = dataset.duplicates
    if not found.molecules:
        return ""
    each = []
    for target, values in _conflicts(dataset):
        said = [f"{value} in {place}" for _, _, place, value in values[:FIRST]]
        more = f" and {len(values) - FIRST} more" if len(values) > FIRST else ""
        each.append(f"{target} is {', '.join(said)}{more}")
        if len(each) == FIRST:
            break
    named = f"{', the first' if len(found.conflicts) > FIRST else ''}: {'; '.join(each)}" if each else ""
    return f"{found}{named}"


def warn_of_conflicts(dataset: Dataset) -> None:
    """Enter in the ledger each row that gives a molecule another value than another row, with that one."""
    for target, values in _conflicts(dataset):
        for file, number, place, value in values:
            other = next(((p, v) for _, _, p, v in values if v != value), values[0][2:])
            reason = f"{other[0]}, of the same molecule, has {other[1]}"
            if other[0] != place:
                file.ledger.warn(number, target, value, reason)


def _conflicts(dataset: Dataset) -> Iterator[tuple[str, list[tuple[File, int, str, str]]]]:
    """Yield the target of each conflict, and the file, number, description and cell of each of its rows."""
    for t, molecules in dataset.duplicates.conflicts:
        target, values = dataset.task.targets[t], []
        for molecule in molecules:
            file, row = dataset.place(molecule)
            cell = row.cells[column_index(file.columns, target)].strip()
            values.append((file, row.number, dataset.describe_place(molecule), printable(cell, _LONGEST)))
        yield target, values


# --- The split.


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
    split_settings = settings.split_settings
    kept, rows = candidates(files, split_settings, rest, [done.smiles[i] for i in rest])
    rest = rest[kept]
    if fixed:  # the share of the part that a file gives falls to the one that is cut out here
        train, val, test = rows.sizes
        half = (val if "test" in fixed else test) / 2
        rows = replace(rows, sizes=(train, half, half))
    part = split_settings.divide(rows, spread(task, y[rest]))
    words = split_settings.describe(rows.smiles, part)
    part = {name: rest[index] for name, index in part.items()}
    if fixed:
        held_out = np.sort(np.concatenate([part["val"], part["test"]]))
        missing = "val" if "test" in fixed else "test"
        (name, source), *_ = [(name, getattr(settings, name)) for name in fixed]
        return {"train": part["train"], missing: held_out, **fixed}, f"{words}; {name} from {source}"
    return part, words


def candidates(
    files: Sequence[File], split_settings: SplitSettings, rows: np.ndarray, smiles: Sequence[str]
) -> tuple[np.ndarray, Candidates]:
    """`SplitSettings.candidates` of `rows` of the table, whose ledger gets the warnings.

    Raises:
        InputError: there is no such column, or no cell of it can be used.
    """
    table = files[0]
    cells: list[str] = []
    with named(table):
        if split_settings.by is not None:
            at = column_index(table.columns, split_settings.by)
            cells = [table.rows[row].cells[at] for row in rows]
        numbers = [table.rows[row].number for row in rows]
        return split_settings.candidates(cells, numbers, smiles, table.ledger)


def spread(task: Task, y: np.ndarray) -> np.ndarray | None:
    """Return the classes that folds spread evenly: those of a single target."""
    return y[:, 0].astype(int) if isinstance(task, NumberTask) and task.discrete and y.shape[1] == 1 else None


# --- Loading: from a table to molecules with labels.


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
    read = done.store if lists is None else _attach_lists(files, task, done, lists)
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
        task=task,
        store=store,
        smiles=smiles,
        split=split,
        split_summary=words,
        smiles_column=files[0].smiles_column,
        files=files,
        rows=keep,
        duplicates=conflicting_duplicates(smiles, y[keep]),
        leaked=leakage(smiles, split),
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
    """Infer the task, and parse the targets of all rows, and their bounds if there are any."""
    for file in files:
        for name in (file.smiles_column, *settings.featuriser.components):
            if name in settings.target_columns:
                raise InputError(f"{name!r} holds the molecules; it cannot be a target too")
        if both := [
            name for name in settings.target_columns if settings.features and name in settings.features.columns
        ]:
            raise InputError(f"{both[0]!r} is a target; it cannot be a feature too")
    task = (settings.task or Inferred(settings.target_columns)).infer_from_table(files).reading(settings.features)
    parts, bounds = [], []
    for file in files:
        with named(file):
            parts.append(task.parse(file.rows, file.columns, file.ledger))
            bounds.append(task.parse_bounds(file.rows, file.columns))
    known = None if bounds[0] is None else np.concatenate(bounds)
    return task, np.concatenate(parts), None if known is None or np.isnan(known).all() else known


def _lists(files: Sequence[File], task: Task) -> list[dict[str, np.ndarray]] | None:
    """Return the targets of atoms or bonds of all rows; None where the task has none."""
    parts = [task.parse_lists(file.rows, file.columns) for file in files]
    return None if parts[0] is None else list(chain(*parts))


def _attach_lists(
    files: Sequence[File], task: Task, done: Featurised, lists: Sequence[dict[str, np.ndarray]]
) -> MoleculeStore:
    """Attach targets of atoms or bonds to the readable molecules.

    A list whose length does not fit its molecule is an error of the row.
    """
    store, wrong = task.attach_lists(done.store, [lists[i] for i in done.good])
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
    """Return the weights of all rows, float64 `[n]`; a cell that is none is an error of its row."""
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
