"""How much say rows have, read from a column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gtx.data.columns import column_index
from gtx.data.ledger import Ledger
from gtx.data.magnitude import LARGEST
from gtx.data.rows import Row
from gtx.data.targets import parse_number


def read_weights(rows: Sequence[Row], columns: Sequence[str], name: str, ledger: Ledger) -> np.ndarray:
    """The weights in a column, float64 `[n]`, 0 or more; a blank or anything else is an error of its row, which gets 0.

    Raises:
        InputError: there is no such column, or several.
    """
    place = column_index(columns, name)
    weights = np.array([0.0 if row.error else parse_number(row.cells[place]) for row in rows], np.float64)
    bad = ~((weights >= 0) & (weights <= LARGEST))
    for i in np.flatnonzero(bad):
        reason = "is no weight: a number of 0 or more was expected"
        ledger.error(rows[i].number, name, rows[i].cells[place], reason, kind="with a bad weight")
    return np.where(bad, 0, weights)
