"""Targets, weights and components: the columns that a model learns from."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from gtx.base.errors import printable
from gtx.data.columns import Row, Table, damage, find_column
from gtx.data.delimited import LARGEST
from gtx.data.row_log import RowLog, plural

# --- Rows with several components, such as a solute and a solvent, one per column.


def add_component_columns(table: Table, columns: Sequence[str]) -> Table:
    """Add the molecules of further columns to each row, as components such as solute and solvent."""
    places = [table.index(column) for column in columns]

    def rows() -> Iterator[Row]:
        for row in table.rows:
            others = tuple(row.cells[place] for place in places)
            named = zip(columns, map(damage, others), strict=True)
            reason = next((f'column "{printable(name)}" {why}' for name, why in named if why), None)
            yield row._replace(others=others, error=row.error or reason)

    return replace(table, rows=rows())


# --- Targets: cells to numbers, with blanks distinct from mistakes; and molecules that occur more than once.

BLANKS = frozenset({"", "nan", "na", "n/a", "<na>", "#n/a", "#nv", "none", "null"})
"""Spellings of a blank cell, in lower case; such a target is masked, never imputed."""


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
    """Parse the number in a cell: NaN for a blank, infinity for anything that is not a finite number."""
    cell = cell.strip()
    if cell.lower() in BLANKS:
        return np.nan
    try:
        number = float(cell)
    except ValueError:
        return np.inf
    # Python reads "1_000" as a number; nobody who writes a table means that
    return number if np.isfinite(number) and "_" not in cell else np.inf


def no_numbers(cells: Sequence[str], name: str) -> str:
    """Describe the error of a target column without a number: text, or blank in all rows."""
    text = [cell for cell in cells if np.isinf(parse_number(cell))]
    held = f"holds text, e.g. '{printable(text[0])}'" if text else f"is blank in all of the {len(cells)} rows"
    return f"target column {name!r} {held}; numbers were expected{comma_advice(cells)}"


class DuplicateSummary(NamedTuple):
    """Summary of the molecules that occur in more than one row of a table, and of contradictions between their targets.

    Attributes:
        molecules, rows: number of different molecules that are repeated, and of their rows.
        conflicts: for each molecule with different values of a target in two rows, the first such target and the
            numbers of the rows that have a value.
    """

    molecules: int
    rows: int
    conflicts: Sequence[tuple[int, list[int]]] = ()

    def __str__(self) -> str:
        filled = f"{plural(self.molecules, 'molecule')} {'fills' if self.molecules == 1 else 'fill'} {self.rows} rows"
        return f"{filled}, {len(self.conflicts)} of them with conflicting labels"


def find_duplicates(smiles: Sequence[str | None], y: np.ndarray) -> DuplicateSummary:
    """Find molecules, by canonical SMILES, in several rows, and those with contradicting targets `[n, T]`."""
    groups: dict[str, list[int]] = defaultdict(list)
    for i, text in enumerate(smiles):
        if text:
            groups[text].append(i)
    repeated = [rows for rows in groups.values() if len(rows) > 1]
    conflicts = []
    for rows in repeated:
        known = ((t, [i for i in rows if not np.isnan(y[i, t])]) for t in range(y.shape[1]))
        conflicts += list(islice(((t, own) for t, own in known if len(set(y[own, t])) > 1), 1))
    return DuplicateSummary(len(repeated), sum(map(len, repeated)), conflicts)


class MeasurementNoise(NamedTuple):
    r"""Standard deviation of repeated measurements of the same molecule, pooled over molecules:

    \[ s^2 = \frac{\sum_j \sum_i (y_{ji} - \bar y_j)^2}{\sum_j (k_j - 1)} \]

    for molecules j with \(k_j\) values each; with two values each, the root mean square difference over \(\sqrt 2\).

    Attributes:
        sd: s, in the unit of the target.
        molecules: how many molecules have two values or more.
        identical: of how many of these all values are equal, as copies of one measurement are.
    """

    sd: float
    molecules: int
    identical: int


FEWEST_REPEATED = 10
"""Fewest molecules with repeated measurements whose noise is estimated."""


def measure_noise(smiles: Sequence[str | None], y: np.ndarray) -> MeasurementNoise | None:
    """Measure the noise of a target `[n]`, NaN for blanks; None with fewer than `FEWEST_REPEATED` such molecules."""
    import pandas as pd

    values = pd.Series(y)[[bool(text) for text in smiles]].dropna()
    repeated = values.groupby([smiles[i] for i in values.index]).agg(["count", "var", "nunique"]).query("count > 1")
    if len(repeated) < FEWEST_REPEATED:
        return None
    freedom = repeated["count"] - 1
    variance = (repeated["var"] * freedom).sum() / freedom.sum()
    return MeasurementNoise(float(variance**0.5), len(repeated), int((repeated["nunique"] == 1).sum()))


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
