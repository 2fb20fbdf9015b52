"""Lists of numbers in a cell: one for each atom or bond of a molecule."""

from __future__ import annotations

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
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1].strip()
    items = [item.strip() for item in text.split(",")] if "," in text else text.split()
    values = np.array([np.inf if item == "" else parse_number(item) for item in items], np.float64)
    for i in np.flatnonzero(np.abs(values) > LARGEST)[:1]:
        item = f"item {i + 1}, '{printable(items[i], 20)}',"
        if np.isfinite(values[i]):
            raise InputError(f"{item} is too large: a number lies between -{LARGEST:g} and {LARGEST:g}")
        raise InputError(f"is no list of numbers: {item} is neither a finite number nor null")
    return values


def list_text(values: np.ndarray) -> str:
    """Numbers as a JSON list, nine digits each."""
    return f"[{', '.join(f'{value:.9g}' for value in values)}]"


def cell_text(value: Any) -> str:
    """A list of numbers as a frame or a request holds it, in the text of a cell; anything else as its own text."""
    if isinstance(value, (list, tuple, np.ndarray)):
        items = np.atleast_1d(np.asarray(value, dtype=object)).tolist()
        return f"[{', '.join('null' if item is None else str(item) for item in items)}]"
    return "" if value is None else str(value)


def place_lists(
    lists: Sequence[Mapping[str, np.ndarray]], names: Sequence[str], ptr: np.ndarray, per: Literal["atom", "bond"]
) -> tuple[np.ndarray, dict[int, tuple[str, str]]]:
    """The lists of M molecules, laid at the rows of their atoms or bonds.

    Args:
        lists: of each molecule by name; a name that it lacks has no values.
        names: of the T columns.
        ptr: int64 `[M + 1]`, of a `gtx.data.MoleculeStore`; molecule m has the rows `ptr[m]` to `ptr[m + 1]`, a bond
            one in each direction.
        per: what has a number each.

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
                wrong[molecule] = name, _misfit(per, expected, len(given))
                values[start:stop] = np.nan
                break
            values[start:stop, t] = given.repeat(each)
    return values, wrong


def _misfit(per: str, expected: int, found: int) -> str:
    parts = f"{expected} {per}{'' if expected == 1 else 's'}"
    hint = "; --hydrogens makes atoms of hydrogens too" * (per == "atom" and found > expected)
    return f"has {found} number{'' if found == 1 else 's'}; expected one for each of the molecule's {parts}{hint}"
