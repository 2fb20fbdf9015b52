"""Which rows of a table of predictions are kept: those that fulfil conditions, and of these the best."""

from __future__ import annotations

import heapq
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gtx.data.columns import column_index
from gtx.data.table_writer import Cell
from gtx.data.targets import parse_number
from gtx.errors import InputError

if TYPE_CHECKING:
    from gtx.data.rows import Record

Line = tuple[Sequence[Cell], "Record | None"]
"""The cells of a row, and of a row out of a Parquet file the cells as they are there."""

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": lambda value, number: value < number or value > number,  # which NaN is not
    "<": operator.lt,
    ">": operator.gt,
}
_CONDITION = re.compile(rf"\s*(.+?)\s*({'|'.join(_SIGNS)})\s*(\S+)\s*")


class Condition(NamedTuple):
    """A column, a sign and a number; a cell that holds no number does not fulfil it."""

    column: str
    sign: str
    number: float

    @classmethod
    def read(cls, text: str) -> Condition:
        """Of a text such as `y_pred > 7`."""
        found = _CONDITION.fullmatch(text)
        if found is None or not math.isfinite(number := parse_number(found[3])):
            raise InputError(f"filter: expected a column, one of {' '.join(_SIGNS)} and a number, got {text!r}")
        return cls(found[1], found[2], number)


@dataclass(frozen=True)
class Selection:
    """What to keep of the rows of a table; by default all.

    Attributes:
        conditions: every one of them holds for a row that is kept.
        top: how many rows are kept at most, the best first; None for all, in order.
        by: the column that says how good a row is. A row without a number there is not kept.
        lowest: the lowest number is the best, and not the highest.

    Raises:
        InputError: `top` without `by`, `by` without `top`, or `top` below 1.
    """

    conditions: tuple[Condition, ...] = ()
    top: int | None = None
    by: str | None = None
    lowest: bool = False

    def __post_init__(self) -> None:
        if (self.top is None) != (self.by is None):
            raise InputError("top and by belong together: how many rows, and by which column, such as y_pred")
        if self.top is not None and self.top < 1:
            raise InputError(f"top: expected 1 or more, got {self.top}")
        if self.lowest and self.top is None:
            raise InputError("lowest says which rows are the best: it needs top and by")

    @classmethod
    def read(cls, text: str | None, top: int | None = None, by: str | None = None, lowest: bool = False) -> Selection:
        """With the conditions of a text such as `y_pred > 7 and y_std < 0.5`; None has none."""
        parts = () if text is None else re.split(r"\s+and\s+", text)
        return cls(tuple(map(Condition.read, parts)), top, by, lowest)

    @property
    def keeps_all(self) -> bool:
        """Whether nothing is left out."""
        return not self.conditions and self.top is None

    def over(self, header: Sequence[str]) -> Sieve:
        """For rows of these columns.

        Raises:
            InputError: there is no such column.
        """
        places = [(column_index(header, c.column), _SIGNS[c.sign], c.number) for c in self.conditions]
        return Sieve(places, self.top, None if self.by is None else column_index(header, self.by), self.lowest)


class Sieve:
    """A `Selection` at work; it holds no more than the best rows so far.

    Attributes:
        kept: how many rows were let through.
    """

    def __init__(
        self,
        places: Sequence[tuple[int, Callable[[float, float], bool], float]],
        top: int | None,
        by: int | None,
        lowest: bool,
    ) -> None:
        self._places, self._top, self._by, self._lowest = places, top, by, lowest
        self._best: list[tuple[float, int, Line]] = []
        self._seen = 0
        self.kept = 0

    def passed(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Of these rows, the ones that are kept whatever comes."""
        for line in lines:
            if not all(holds(number_of(line[0][place]), number) for place, holds, number in self._places):
                continue
            if self._top is None:
                self.kept += 1
                yield line
            else:
                self._offer(line)

    def best(self) -> Iterator[Line]:
        """At the end: the best rows, the best first, and of equal ones the earlier first."""
        for _, _, line in sorted(self._best, key=lambda one: one[:2], reverse=True):
            self.kept += 1
            yield line

    def _offer(self, line: Line) -> None:
        self._seen += 1
        value = goodness(line[0][self._by], self._lowest)
        key = (value, -self._seen)
        if math.isnan(value) or (len(self._best) == self._top and key < self._best[0][:2]):
            return
        cells, record = line
        if record is not None:  # a copy: a row must not hold the thousands that were read with it
            record = record[0].take([record[1]]), 0
        change = heapq.heappush if len(self._best) < self._top else heapq.heapreplace
        change(self._best, (*key, (cells, record)))


def goodness(cell: Cell, lowest: bool) -> float:
    """How good a row is by a cell of it: the higher the better; NaN where there is no number."""
    return -number_of(cell) if lowest else number_of(cell)


def number_of(cell: Cell) -> float:
    """The number in a cell; NaN, which no condition holds for, where there is none."""
    if cell is None:
        return math.nan
    number = parse_number(cell) if isinstance(cell, str) else float(cell)
    return number if math.isfinite(number) else math.nan
