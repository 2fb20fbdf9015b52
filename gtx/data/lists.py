"""Lists in a cell: a number, or the label of a class, for each atom or bond of a molecule."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from gtx.data.magnitude import LARGEST
from gtx.data.targets import BLANKS, parse_number
from gtx.errors import InputError, printable


def parse_list(cell: str) -> np.ndarray | None:
    """The numbers of a cell: JSON, such as `[0.1, null, -0.2]`, or an atom property list of an SDF file, such as
    `0.1 n/a -0.2`.

    Args:
        cell: numbers, and blanks such as `null`, in brackets or not, with commas or white space between.

    Returns:
        float64 `[a]`, NaN for blanks; None for a blank cell.

    Raises:
        InputError: what is wrong with an item.
    """
    text = cell.strip()
    if text.lower() in BLANKS:
        return None
    items = _items(text)
    values = np.array([np.inf if item == "" else parse_number(item) for item in items], np.float64)
    for i in np.flatnonzero(np.abs(values) > LARGEST)[:1]:
        item = f"item {i + 1}, '{printable(items[i], 20)}',"
        if np.isfinite(values[i]):
            raise InputError(f"{item} is too large: a number lies between -{LARGEST:g} and {LARGEST:g}")
        raise InputError(f"is no list of numbers: {item} is neither a finite number nor null")
    return values


def parse_labels(cell: str) -> list[str | None] | None:
    """The labels of a cell: JSON, such as `["sp3", null, "sp2"]`, `[0, 1, 1]` or `[true, false]`; the list as Python
    writes it, `['sp3', None]`; or words with commas or white space between.

    Args:
        cell: labels, and blanks such as `null`. A word in quotes is a label, even if it is `"Na"`; without quotes this
            is a blank, see `gtx.data.targets.BLANKS`.

    Returns:
        A text for each item, None for blanks; None for a blank cell.

    Raises:
        InputError: what is wrong with an item.
    """
    text = cell.strip()
    if text.lower() in BLANKS:
        return None
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):  # not JSON
        return [_label(i, item) for i, item in enumerate(_items(text), 1)]
    items = items if isinstance(items, list) else [items]
    for i, item in enumerate(items, 1):
        if isinstance(item, (list, dict)):
            raise InputError(f"is no list of classes: item {i} is neither a word nor a number nor null")
    return [item.strip() or None if isinstance(item, str) else _label(0, _own_text(item)) for item in items]


def _items(text: str) -> list[str]:
    """What stands between commas, or between white space where there is no comma, in brackets or not."""
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1].strip()
    return [item.strip() for item in text.split(",")] if "," in text else text.split()


def _label(number: int, item: str) -> str | None:
    """A label that stands in a list, in quotes or not; Python's True and False as JSON has them; None for a blank."""
    quote = item[:1]
    if quote in ("'", '"'):
        if len(item) == 1 or item[-1] != quote:
            raise InputError(f"is no list of classes: item {number}, {printable(item, 20)}, has a quote on one side")
        return item[1:-1].strip() or None
    if "[" in item or "{" in item:
        raise InputError(f"is no list of classes: item {number}, '{printable(item, 20)}', is a list in the list")
    if item.lower() in BLANKS:
        return None
    return item.lower() if item in ("True", "False") else item


def list_text(values: np.ndarray) -> str:
    """Numbers `[a]` as a JSON list, nine digits each; or texts, of which those that are numbers are written as such."""
    if values.dtype == object:
        return f"[{', '.join(map(_item_text, values))}]"
    return f"[{', '.join(f'{value:.9g}' for value in values)}]"


def _item_text(item: str) -> str:
    return item if np.isfinite(parse_number(item)) else json.dumps(item, ensure_ascii=False)


def cell_text(value: Any) -> str:
    """A list as a frame or a request holds it, in the text of a cell; anything else as its own text."""
    if isinstance(value, (list, tuple, np.ndarray)):
        items = np.atleast_1d(np.asarray(value, dtype=object)).tolist()
        return f"[{', '.join(map(_own_text, items))}]"
    return "" if value is None else str(value)


def _own_text(item: Any) -> str:
    """Of an item: words in quotes, numbers and blanks as they are."""
    if isinstance(item, str):
        bare = item in BLANKS or np.isfinite(parse_number(item))
        return item if bare else json.dumps(item, ensure_ascii=False)
    if isinstance(item, (bool, np.bool_)):
        return str(item).lower()
    return "null" if item is None else str(item)


def place_lists(
    lists: Sequence[Mapping[str, np.ndarray]],
    names: Sequence[str],
    ptr: np.ndarray,
    per: Literal["atom", "bond"],
    items: tuple[str, str] = ("number", "numbers"),
) -> tuple[np.ndarray, dict[int, tuple[str, str]]]:
    """The lists of M molecules, laid at the rows of their atoms or bonds.

    Args:
        lists: of each molecule by name; a name that it lacks has no values.
        names: of the T columns.
        ptr: int64 `[M + 1]`, of a `gtx.data.MoleculeStore`; molecule m has the rows `ptr[m]` to `ptr[m + 1]`, a bond
            one in each direction.
        per: what has a value each.
        items: what one value is called, and what several are.

    Returns:
        float64 `[R, T]`, NaN where there is no value; and of each molecule that has a list of another length than it
        has atoms or bonds, by its number, the name of that list and what is wrong. Such a molecule has no values.
    """
    each = 2 if per == "bond" else 1
    values, wrong = np.full((int(ptr[-1]), len(names)), np.nan), {}
    for molecule, (found, start, stop) in enumerate(zip(lists, ptr.tolist(), ptr[1:].tolist(), strict=False)):
        expected = (stop - start) // each
        for t, name in enumerate(names):
            if (given := found.get(name)) is None:
                continue
            if len(given) != expected:
                wrong[molecule] = name, _misfit(per, expected, len(given), items)
                values[start:stop] = np.nan
                break
            values[start:stop, t] = given.repeat(each)
    return values, wrong


def _misfit(per: str, expected: int, found: int, items: tuple[str, str]) -> str:
    parts = f"{expected} {per}{'' if expected == 1 else 's'}"
    hint = "; --hydrogens makes atoms of hydrogens too" * (per == "atom" and found > expected)
    return f"has {found} {items[found != 1]}; expected one for each of the molecule's {parts}{hint}"
