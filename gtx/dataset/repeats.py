"""Molecules whose rows contradict each other, named: which rows, with which values."""

from __future__ import annotations

from collections.abc import Iterator

from gtx.data import column_index
from gtx.dataset.rows import Dataset, File
from gtx.errors import printable

FIRST = 3  # molecules, and rows of each, that a line names
_LONGEST = 30  # characters of a value


def repeated_words(dataset: Dataset) -> str:
    """How many molecules stand in several rows, and the first with conflicting labels; "" if there are none."""
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
    """Of each conflict its target, and of each of its rows the file, the number, both in words, and the cell."""
    for t, molecules in dataset.duplicates.conflicts:
        target, values = dataset.task.targets[t], []
        for molecule in molecules:
            file, row = dataset.place(molecule)
            cell = row.cells[column_index(file.columns, target)].strip()
            values.append((file, row.number, dataset.place_words(molecule), printable(cell, _LONGEST)))
        yield target, values
