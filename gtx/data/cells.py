"""Cells: numbers, weights, and lists of numbers or labels, as people write them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from gtx.base.errors import InputError, printable
from gtx.data.rows import Row, RowLog, find_column
from gtx.molecules.reading import BLANKS, is_blank

# --- Numbers, with blanks distinct from mistakes.

_COMMAS = re.compile(r"[<>=\u2264\u2265~ ]*[+-]?\d*(,\d+)+(\.\d+)?([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[<>=\u2264\u2265~ ]*[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d+)?")


def has_comma(cell: str) -> bool:
    """Return whether a cell is a number with commas, for decimals or for thousands."""
    return _COMMAS.fullmatch(cell.strip()) is not None


def comma_advice(cells: Iterable[str]) -> str:
    """Say how to write the numbers with commas in some cells, which separate thousands or decimals; or nothing."""
    numbers = [cell.strip() for cell in cells if has_comma(cell)]
    if not numbers:
        return ""
    first = printable(numbers[0])
    if all(map(_THOUSANDS.fullmatch, numbers)):
        joined, decimal = first.replace(",", ""), first.replace(",", ".")
        other = "" if decimal.count(".") > 1 else f", or {decimal} if its comma is a decimal comma"
        return f"; if its commas separate thousands, write {joined} and not {first}{other}"
    return "; write numbers with a decimal point: 1.5 and not 1,5"


BLANK_WORDS = "an empty cell, NA, N/A, NaN, None, null, #N/A or #NV"


def parse_number(cell: str) -> float:
    """Parse the number in a cell: NaN for a blank, infinity for anything that is not a finite number.

    A target that is blank is masked, never imputed. The minus sign of printed text, U+2212, is read as a hyphen.
    """
    cell = cell.strip().replace("\u2212", "-")
    if is_blank(cell):
        return np.nan
    try:
        number = float(cell)
    except ValueError:
        return np.inf
    # Python reads "1_000" as a number; nobody who writes a table means that
    return number if np.isfinite(number) and "_" not in cell else np.inf


# --- The largest absolute value of a target.

LARGEST = 1e30
"""The largest target, with either sign. Squares and their sums stay far below the largest float64, 1.8e308, and the
target itself below the largest float32, 3.4e38. What file formats write for a missing number (9.97e36, 1.8e308) is
larger."""

LIMIT = f"a target lies between -{LARGEST:g} and {LARGEST:g}; where there is none, leave it blank, in Python NaN"


# --- Weights of rows in the loss, read from a column.


def read_weights(rows: Sequence[Row], columns: Sequence[str], name: str, row_log: RowLog) -> np.ndarray:
    """Parse the row weights in a column, float64 `[n]`, 0 or more; any other cell is an error, with weight 0."""
    place = find_column(columns, name)
    weights = np.array([0.0 if row.error else parse_number(row.cells[place]) for row in rows], np.float64)
    bad = ~((weights >= 0) & (weights <= LARGEST))
    advice = comma_advice(rows[i].cells[place] for i in np.flatnonzero(bad).tolist())
    for i in np.flatnonzero(bad).tolist():
        reason = f"is no weight: a number of 0 or more was expected{advice if has_comma(rows[i].cells[place]) else ''}"
        row_log.error(rows[i].number, name, rows[i].cells[place], reason, category="with a bad weight")
    return np.where(bad, 0, weights)


# --- Lists in a cell: a number, or the label of a class, for each atom or bond of a molecule.


def parse_list(cell: str, is_blank: Callable[[str], object] = lambda item: False) -> np.ndarray | None:
    """Parse the list of numbers in a cell: JSON, such as `[0.1, null, -0.2]`, or an atom property list of an SDF file,
    such as `0.1 n/a -0.2`, with or without brackets and quotes; items that are `is_blank` are blanks too.

    Returns float64 `[a]`, NaN for blanks; None for a blank cell. An `InputError` says what is wrong with an item.
    """
    text = cell.strip()
    if text.lower() in BLANKS:
        return None

    def number(item: str) -> float:
        if item == "":
            return np.inf
        return np.nan if is_blank(item) else parse_number(item)

    items = split_list(text)
    values = np.array(list(map(number, items)), np.float64)
    for i in np.flatnonzero(np.abs(values) > LARGEST)[:1]:
        item = f"item {i + 1}, '{printable(items[i], 20)}',"
        if np.isfinite(values[i]):
            raise InputError(f"{item} is too large: a number lies between -{LARGEST:g} and {LARGEST:g}")
        raise InputError(f"is no list of numbers: {item} is neither a finite number nor null")
    return values


def parse_labels(cell: str) -> list[str | None] | None:
    """Parse the list of class labels in a cell: a text for each item, None for blanks; None for a blank cell.

    The cell has JSON, such as `["sp3", null, "sp2"]`, `[0, 1, 1]` or `[true, false]`, or a Python list, such as
    `['sp3', None]`, or words separated by commas or white space. A word in quotes is always a label, even `"Na"`;
    without quotes, `Na` is a blank, see `gtx.molecules.reading.is_blank`. An `InputError` says what is wrong with an
    item.
    """
    text = cell.strip()
    if is_blank(text):
        return None
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):  # not JSON
        return [_label(i, item) for i, item in enumerate(_items(text), 1)]
    items = items if isinstance(items, list) else [items]
    for i, item in enumerate(items, 1):
        if isinstance(item, (list, dict)):
            raise InputError(f"is no list of classes: item {i} is neither a word nor a number nor null")
    return [item.strip() or None if isinstance(item, str) else _label(0, _item_text(item)) for item in items]


def _items(text: str) -> list[str]:
    """Split a list at commas, or at white space if it has no comma; brackets are optional."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1].strip()
    return [item.strip() for item in text.split(",")] if "," in text else text.split()


def split_list(text: str) -> list[str]:
    """Split a list of numbers into its items, without quotes."""
    return [item.strip("'\"").strip() for item in _items(text.strip())]


def _label(number: int, item: str) -> str | None:
    """Parse a label in a list, in quotes or not; None for a blank. Python's True and False become those of JSON."""
    quote = item[:1]
    if quote in ("'", '"'):
        if len(item) == 1 or item[-1] != quote:
            raise InputError(f"is no list of classes: item {number}, {printable(item, 20)}, has a quote on one side")
        return item[1:-1].strip() or None
    if "[" in item or "{" in item:
        raise InputError(f"is no list of classes: item {number}, '{printable(item, 20)}', is a list in the list")
    if is_blank(item):
        return None
    return item.lower() if item in ("True", "False") else item


def list_text(values: np.ndarray) -> str:
    """Write numbers with nine digits, or labels with quotes unless they are numbers, as a JSON list."""
    if values.dtype == object:
        labels = (each if np.isfinite(parse_number(each)) else json.dumps(each, ensure_ascii=False) for each in values)
        return f"[{', '.join(labels)}]"
    return f"[{', '.join(f'{value:.9g}' for value in values)}]"


def cell_text(value: Any) -> str:
    """Write a value of a data frame or of a request as the text of a cell; a list becomes a JSON list."""
    if isinstance(value, (list, tuple, np.ndarray)):
        items = np.atleast_1d(np.asarray(value, dtype=object)).tolist()
        return f"[{', '.join(map(_item_text, items))}]"
    return "" if value is None else str(value)


def _item_text(item: Any) -> str:
    """Write an item as text: words in quotes, numbers and blanks unchanged."""
    if isinstance(item, str):
        bare = item in BLANKS or np.isfinite(parse_number(item))
        return item if bare else json.dumps(item, ensure_ascii=False)
    if isinstance(item, (bool, np.bool_)):
        return str(item).lower()
    return "null" if item is None else str(item)


def attach_lists(
    lists: Sequence[Mapping[str, np.ndarray]],
    names: Sequence[str],
    ptr: np.ndarray,
    per: Literal["atom", "bond"],
    items: tuple[str, str] = ("number", "numbers"),
) -> tuple[np.ndarray, dict[int, tuple[str, str]]]:
    """Concatenate the lists of M molecules, by column, into an array with a row per atom or per directed bond.

    Molecule m has the rows `ptr[m]` to `ptr[m + 1]` (int64 `[M + 1]`); `items` are words for what the lists contain.

    Returns float64 `[R, T]`, NaN without a value; and, by the number of the molecule, the name of a list whose length
    is not that of the atoms or bonds, and the reason. Such a molecule has no values.
    """
    each = 2 if per == "bond" else 1
    values, errors = np.full((int(ptr[-1]), len(names)), np.nan), {}
    for molecule, (by_name, start, stop) in enumerate(zip(lists, ptr.tolist(), ptr[1:].tolist(), strict=False)):
        expected = (stop - start) // each
        for t, name in enumerate(names):
            if (items_of_molecule := by_name.get(name)) is None:
                continue
            if len(items_of_molecule) != expected:
                count, parts = len(items_of_molecule), f"{expected} {per}{'' if expected == 1 else 's'}"
                hint = "; --hydrogens makes atoms of hydrogens too" if per == "atom" and count > expected else ""
                reason = f"has {count} {items[count != 1]}; expected one for each of the molecule's {parts}{hint}"
                errors[molecule] = name, reason
                values[start:stop] = np.nan
                break
            values[start:stop, t] = items_of_molecule.repeat(each)
    return values, errors
