"""Two rows of a table compared on the test molecules they share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from experiments.paired import Difference, Split, difference
from experiments.summary import Row, places


def compared(row: Row, other: Row) -> str:
    """`+0.123 [0.045, 0.201]`: the score of one minus that of the other; empty where they share no split."""
    splits = shared(row, other)
    return told(apart(splits, row), other) if splits else ""


def apart(splits: Sequence[Split], row: Row) -> Difference:
    """`difference` by the metric and the sizes of a row's set."""
    ratio = None
    if len(splits) > 1:
        counts = row.results[0]["rows"]
        ratio = counts["test"] / (counts["train"] + counts["val"])
    return difference(splits, row.metric, ratio)


def told(found: Difference, other: Row) -> str:
    """With the decimals of the other's score."""
    value, low, high = (f"{part:+.{places(other.mean() or 0.0)}f}" for part in found)
    return f"{value} [{low}, {high}]"


def shared(row: Row, other: Row) -> list[Split]:
    """What both predicted of each split that both were run on, for runs that kept their predictions."""
    found = []
    for split in sorted({result["split"] for result in row.results}):
        ones, others = (
            [r["predictions"] for r in each.results if r["split"] == split and "predictions" in r]
            for each in (row, other)
        )
        if ones and others:
            first = ones[0]
            if any(not np.array_equal(one.rows, first.rows) for one in (*ones, *others)):
                raise ValueError(f"{row.folder}, {split}: {row.model} and {other.model} were tested on different rows")
            y = first.measured
            if y is None:  # the set is a table
                y = truth(row.results[0]["set"], first.names)[first.rows]
            found.append(Split(y, *(np.array([one.values for one in each]) for each in (ones, others))))
    return found


@cache
def truth(name: str, targets: tuple[str, ...]) -> np.ndarray:
    """Measured values `[rows of the table, T]` of a named set, NaN for blanks."""
    from gtx.data import open_table
    from gtx.data.named_sets import load_set

    named = load_set(name)
    table = open_table(named.path, named.smiles_column)
    columns = [table.index(target) for target in targets]
    return np.array([[float(row.cells[at] or "nan") for at in columns] for row in table.rows])
