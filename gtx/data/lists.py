"""Lists of numbers in a cell: one for each atom or bond of a molecule."""

from __future__ import annotations

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
            raise InputError(f"{item} is too large: a target lies between -{LARGEST:g} and {LARGEST:g}")
        raise InputError(f"is no list of numbers: {item} is neither a finite number nor null")
    return values


def list_text(values: np.ndarray) -> str:
    """Numbers as a JSON list, nine digits each."""
    return f"[{', '.join(f'{value:.9g}' for value in values)}]"
