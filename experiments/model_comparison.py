"""The difference of two models' scores on the test molecules that both predicted."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from experiments.paired import Difference, Split, difference
from experiments.summary import ModelRuns, places


def difference_text(row: ModelRuns, other: ModelRuns) -> str:
    """`+0.123 [0.045, 0.201]`: the score of one minus that of the other; empty where they share no split."""
    splits = shared_splits(row, other)
    return formatted(split_difference(splits, row), other) if splits else ""


def split_difference(splits: Sequence[Split], row: ModelRuns) -> Difference:
    """`difference`, with the metric and the sizes of the row's set."""
    ratio = None
    if len(splits) > 1:
        counts = row.results[0]["rows"]
        ratio = counts["test"] / (counts["train"] + counts["val"])
    return difference(splits, row.metric, ratio)


def formatted(found: Difference, other: ModelRuns) -> str:
    """With the decimals of the other's score."""
    value, low, high = (f"{part:+.{places(other.mean() or 0.0)}f}" for part in found)
    return f"{value} [{low}, {high}]"


def shared_splits(row: ModelRuns, other: ModelRuns) -> list[Split]:
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
