"""Loading: a table read, featurised and divided into training, validation and test rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from gtx.base.errors import InputError, printable
from gtx.data import FeaturisationResult, Row, RowLog, featurise, open_table
from gtx.data.columns import find_column, listed
from gtx.data.row_log import InputFile, format_row_message, named, plural
from gtx.data.splits import SPLIT_PARTS, split_by_column
from gtx.data.targets import add_component_columns, find_duplicates, read_weights
from gtx.molecules.perception import list_order_doubt
from gtx.tasks import Task
from gtx.tasks.inferred import InferredTask
from gtx.training_data.settings import Dataset, DataSettings

# --- Outliers among the targets: typing errors, other units, or values that span magnitudes.

OUTLIER_RANGES = 20
"""Distance of an outlier from the median, in interquartile ranges; a normal distribution has none."""


def outlier_lines(dataset: Dataset) -> list[str]:
    """Return a warning for each target with outliers."""
    if "outliers" not in dataset.task.supports:
        return []
    lines = []
    for name, y in zip(dataset.task.targets, dataset.y.T, strict=True):
        measured = np.flatnonzero(~np.isnan(y))
        low, median, high = np.percentile(y[measured], (25, 50, 75)) if len(measured) else (0, 0, 0)
        distance = np.abs(y[measured] - median)
        far = int((distance > OUTLIER_RANGES * (high - low)).sum())
        if high > low and far:
            first = measured[distance.argmax()]
            most = f"{plural(far, 'value')} far from the others, half of which lie from {low:.4g} to {high:.4g}"
            lines.append(
                f"warning: {name} has {most}; the farthest is {y[first]:.4g} in {dataset.describe_place(first)}: a "
                "typing error, or another unit? Of values that span magnitudes, train on the logarithm"
            )
    return lines


def left_out_lines(dataset: Dataset) -> list[str]:
    """Return a warning for each reason why rows are in no part of the split, with their number and the first row."""
    return [
        f"warning: {file.source}: {len(messages)} of {plural(file.row_log.rows, 'row')} "
        f"{'is' if len(messages) == 1 else 'are'} in no part of the split; the first: {messages[0]}"
        for file in dataset.files
        for messages in file.row_log.left_out.values()
    ]


# --- Molecules with conflicting rows.

MAX_NAMED = 3  # molecules, and rows of each, that a line names
_LONGEST = 30  # characters of a value


def describe_duplicates(dataset: Dataset) -> str:
    """Report the number of molecules in several rows, and the first conflicts of labels; "" if there are none."""
    duplicates = dataset.duplicates
    if not duplicates.molecules:
        return ""
    conflicts = []
    for target, values in islice(_conflicts(dataset), MAX_NAMED):
        rows = [f"{value} in {place}" for _, _, place, value in values[:MAX_NAMED]]
        more = f" and {len(values) - MAX_NAMED} more" if len(values) > MAX_NAMED else ""
        conflicts.append(f"{target} is {', '.join(rows)}{more}")
    if not conflicts:
        return str(duplicates)
    first = ", the first" if len(duplicates.conflicts) > MAX_NAMED else ""
    return f"{duplicates}{first}: {'; '.join(conflicts)}"


def warn_of_conflicts(dataset: Dataset) -> None:
    """Warn in the row log of each row whose value differs from that of another row with the same molecule."""
    for target, values in _conflicts(dataset):
        for file, number, place, value in values:
            other = next(((p, v) for _, _, p, v in values if v != value), values[0][2:])
            reason = f"{other[0]}, of the same molecule, has {other[1]}"
            if other[0] != place:
                file.row_log.warn(number, target, value, reason)


def _conflicts(dataset: Dataset) -> Iterator[tuple[str, list[tuple[InputFile, int, str, str]]]]:
    """Yield the target of each conflict, and the file, number, description and cell of each of its rows."""
    for t, molecules in dataset.duplicates.conflicts:
        target, values = dataset.task.targets[t], []
        for molecule in molecules:
            file, row = dataset.place(molecule)
            cell = row.cells[find_column(file.columns, target)].strip()
            values.append((file, row.number, dataset.describe_place(molecule), printable(cell, _LONGEST)))
        yield target, values


# --- The split.


def divide(dataset: Dataset, settings: DataSettings) -> Dataset:
    """Divide the molecules by a column of the table, by the files of validation and test rows, or by a split method."""
    first, *others = dataset.files
    if settings.split_column is not None:
        if settings.val or settings.test:
            raise InputError("the split is given twice: by a column and by files; give one of them")
        index = dataset.labelled
        cells, numbers = dataset.column(settings.split_column, index)
        split = split_by_column(cells, first.row_log, settings.split_column, numbers)
        split = {part: index[rows] for part, rows in split.items()}
        return dataset.with_split(split, f"column {settings.split_column!r}")
    files = [(part, source) for part, source in (("val", settings.val), ("test", settings.test)) if source]
    fixed = {part: dataset.labelled_in(file) for (part, _), file in zip(files, others, strict=True)}
    if len(fixed) == 2:
        split = {"train": dataset.labelled_in(first), **fixed}
        return dataset.with_split(split, f"files {settings.val} and {settings.test}")
    rows = dataset.labelled_in(first)
    if len({dataset.smiles[i] for i in rows}) < len(SPLIT_PARTS) and first.row_log.errors:
        raise _too_few_rows(dataset.files, f"only {plural(len(rows), 'row')}")
    divided = dataset.divided(settings.split_settings.without(fixed))
    if not fixed:
        return divided
    ((part, source),) = files
    return divided.with_split(divided.split | fixed, f"{divided.split_summary}; {part} from {source}")


# --- Loading: from a table to molecules with labels.


def load_training_table(settings: DataSettings, cache: str | Path | None = None, progress: bool = False) -> Dataset:
    """Load a table for training: read and check its rows, featurise the molecules, and split them.

    Args:
        settings: settings of the data.
        cache: folder for featurised molecules, see `gtx.data.featurise`.
        progress: whether a progress bar is shown.

    Raises:
        InputError: a file, column, target or split cannot be used; with `on_error="fail"` also for a bad row.
    """
    files = _read(settings)
    rows = [(file, row) for file in files for row in file.rows]
    if not settings.target_columns:
        names = listed(files[0].columns)
        raise InputError(f"say what to predict: give --target-columns out of the columns {names}")
    task, remarks, y, bounds = _targets(files, settings)
    lists = [task.columns.parse_lists(file.rows, file.columns) for file in files]
    of_rows = None if lists[0] is None else [each for of_file in lists for each in of_file or ()]
    _check_atom_order(rows, settings, of_rows)
    weights = _weights(files, settings, task)
    molecules = _featurise(files, rows, settings, cache, progress)
    store = molecules.store
    if of_rows is not None:
        store, wrong = task.columns.attach_lists(store, [of_rows[i] for i in molecules.good])
        for molecule, (target, reason) in wrong.items():  # a list whose length does not fit its molecule
            file, row = rows[molecules.good[molecule]]
            cell = row.cells[find_column(file.columns, target)]
            file.row_log.error(row.number, target, cell, reason, category="with a bad target")
    if settings.on_error == "fail":
        for file in files:
            if file.row_log.errors:  # the first by row, of any check
                raise InputError(f"{file.source}: {file.row_log.errors[min(file.row_log.errors)]}")
    refused = np.array([row.number in file.row_log.errors for file, row in rows], bool)
    good = molecules.good[~refused[molecules.good]]  # rows with a readable molecule and no other error
    if not len(good):
        raise _too_few_rows(files, "no row")
    smiles = [text for text in (molecules.smiles[i] for i in good) if text is not None]
    store = store.subset(np.searchsorted(molecules.good, good)).with_targets(y[good])
    store = replace(
        store,
        bounds=None if bounds is None else torch.from_numpy(bounds[good]),
        weights=None if weights is None else torch.from_numpy(weights[good]),
    )
    dataset = Dataset(
        task=task,
        store=store,
        smiles=smiles,
        split={},
        split_summary="",
        smiles_column=files[0].smiles_column,
        files=files,
        rows=good,
        duplicates=find_duplicates(smiles, y[good]),
        remarks=remarks,
    )
    dataset = divide(dataset, settings)
    if not len(dataset.split["train"]):
        raise InputError(f"none of the training rows can be used: {files[0].row_log.summary()}")
    warn_of_conflicts(dataset)
    return dataset


def _read(settings: DataSettings) -> list[InputFile]:
    files, start = [], 0
    for source in (settings.data, settings.val, settings.test):
        if source is None:
            continue
        components = settings.featuriser.components
        first, *others = components or (settings.smiles_column,)
        table = open_table(source, first)
        table = add_component_columns(table, others) if others else table
        if settings.features:
            table = settings.features.read_table(table)
        rows, row_log = list(table.rows), RowLog()
        row_log.enter(rows)
        files.append(InputFile(source, table.columns, table.smiles_column, rows, row_log, start, components))
        start += len(rows)
    if not files[0].rows:
        raise InputError(f"{settings.data} has a header and no rows; there is nothing to train on")
    if all(row.error for row in files[0].rows):
        raise _too_few_rows(files, "no row")
    return files


def _targets(
    files: Sequence[InputFile], settings: DataSettings
) -> tuple[Task, list[str], np.ndarray, np.ndarray | None]:
    """Infer the task, with remarks on the choice, and parse the targets of all rows, `[n, T]`, and bounds, `[n, 2T]`.

    The bounds are None if there are none.
    """
    for file in files:
        for name in (file.smiles_column, *settings.featuriser.components):
            if name in settings.target_columns:
                raise InputError(f"{name!r} holds the molecules; it cannot be a target too")
        for name in settings.features.columns if settings.features else ():
            if name in settings.target_columns:
                raise InputError(f"{name!r} is a target; it cannot be a feature too")
    wanted = settings.task or InferredTask(settings.target_columns)
    if settings.relation_column is not None:
        if settings.relation_column in settings.target_columns:
            raise InputError(f"{settings.relation_column!r} is a target; it cannot have the relations too")
        wanted = wanted.with_relation(settings.relation_column)
    remarks = wanted.remarks(files) if isinstance(wanted, InferredTask) else []
    task = wanted.infer_from_table(files).with_features(settings.features)
    targets, bounds = [], []
    for file in files:
        with named(file):
            targets.append(task.columns.parse(file.rows, file.columns, file.row_log))
            file_bounds = task.columns.parse_bounds(file.rows, file.columns)
            if file_bounds is not None:
                bounds.append(file_bounds)
    relations = task.columns.relations(files[0].columns)
    relations.add(files[0].rows)
    remarks += [f"warning: {line}; --relation-column learns from bounds of one target" for line in relations.lines()]
    has_bounds = any(not np.isnan(each).all() for each in bounds)
    return task, remarks, np.concatenate(targets), np.concatenate(bounds) if has_bounds else None


def _check_atom_order(
    rows: Sequence[tuple[InputFile, Row]], settings: DataSettings, lists: Sequence[Mapping[str, np.ndarray]] | None
) -> None:
    """Refuse the first row with values of atoms or bonds whose order is not clear, unless the user said what it is."""
    if lists is not None and settings.featuriser.standardise:
        raise InputError("targets of atoms and bonds are of the atoms as they are written: leave out --standardise")
    for i, (file, row) in enumerate(rows):
        has_values = row.features is not None and (row.features.atoms or row.features.bonds)
        if row.error or not (has_values or (lists is not None and lists[i])):
            continue
        if doubt := list_order_doubt(settings.featuriser, row.text):
            why = f"{doubt.reason}: {doubt.remedy}"
            place = format_row_message(row.number, file.smiles_column, row.message_text, why)
            raise InputError(f"{file.source}: {place}")


def _weights(files: Sequence[InputFile], settings: DataSettings, task: Task) -> np.ndarray | None:
    """Read the weights of all rows, float64 `[n]`; a cell that is not a weight is an error of its row."""
    name = settings.weight_column
    if name is None:
        return None
    if task.writes:
        raise InputError(f"--weight-column: the task {task.name} has no weights of rows")
    if name in task.targets:
        raise InputError(f"{name!r} is a target; it cannot be the weight of its row too")
    parts = []
    for file in files:
        with named(file):
            parts.append(read_weights(file.rows, file.columns, name, file.row_log))
    return np.concatenate(parts)


def _featurise(
    files: Sequence[InputFile],
    rows: Sequence[tuple[InputFile, Row]],
    settings: DataSettings,
    cache: str | Path | None,
    progress: bool,
) -> FeaturisationResult:
    fail = settings.on_error == "fail"
    bad = [file.start + min(file.row_log.errors) for file in files if file.row_log.errors]
    if fail and bad:
        rows, cache = rows[: bad[0]], None  # rows after the first bad one are not read
    texts, coordinates = [row.readable for _, row in rows], [row.coordinates for _, row in rows]
    molecules = featurise(
        settings.featuriser,
        texts,
        coordinates if any(each is not None for each in coordinates) else None,
        workers=settings.workers,
        cache=cache,
        progress=progress,
        to_first_error=fail,
    )
    if settings.features:
        molecules = settings.features.joined(molecules, [row.features for _, row in rows], texts, settings.featuriser)
    for (file, row), error, warnings in zip(rows, molecules.errors, molecules.warnings, strict=False):
        column, text = row.locate(file.smiles_column)
        if error and not row.error:
            file.row_log.error(row.number, column, text, error)
        for warning in warnings:
            file.row_log.warn(row.number, column, text, warning)
    return molecules


def _too_few_rows(files: Sequence[InputFile], number: str) -> InputError:
    first = next((message for file in files for message in file.row_log.errors.values()), "no error noted")
    return InputError(f"{number} of {files[0].source} can be used; {files[0].row_log.summary()}: {first}")
