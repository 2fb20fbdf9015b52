"""Bounds of values that were not measured exactly, such as `>5`: their cells, relations and loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from gtx.base.errors import printable
from gtx.data.cells import BLANKS, LARGEST, parse_number
from gtx.data.rows import Row, find_columns

# --- Censored values: cells such as `>5`, and their loss.

SIGNS = {">=": 1, "<=": -1, ">": 1, "<": -1, "≥": 1, "≤": -1}
"""Prefixes of a bound: 1 where values are above it, -1 where they are below."""
_STEPS = 8  # of the search for the spread
_LEAST = 1e-6  # variance, of z-scores


def parse_bound(cell: str) -> tuple[int, float] | None:
    """Parse a bound such as `>5` or `<= 0.1` to its side, 1 or -1, and its number; None for anything else."""
    cell = cell.strip()
    sign = next((sign for sign in SIGNS if cell.startswith(sign)), None)
    if sign is None:
        return None
    number = parse_number(cell[len(sign) :])
    return (SIGNS[sign], number) if abs(number) <= LARGEST else None  # a blank is NaN, a text infinite


def read_bounds(cells: Sequence[str]) -> np.ndarray:
    """Parse the bounds in the cells of a column, float64 `[n, 2]`: lower bounds, and upper bounds."""
    bounds = np.full((len(cells), 2), np.nan)
    for i, cell in enumerate(cells):
        if bound := parse_bound(cell):
            bounds[i, 0 if bound[0] > 0 else 1] = bound[1]
    return bounds


RELATIONS = {
    **dict.fromkeys(("", "=", "==", "~", "\u2248"), ""),
    **dict.fromkeys((">", ">>"), ">"),
    **dict.fromkeys(("<", "<<"), "<"),
    **dict.fromkeys((">=", "\u2265"), ">="),
    **dict.fromkeys(("<=", "\u2264"), "<="),
}
"""Relations that a table has beside its values, and the signs of bounds that they are; no sign for an exact value."""
RELATION_WORDS = "=, ~, >, >=, <, <= or blank"


def parse_relation(cell: str) -> str | None:
    """Parse a relation, with or without quotes, as the sign of a bound; None for another text."""
    text = cell.strip().strip("'\"").strip()
    return RELATIONS.get("" if text.lower() in BLANKS else text)


def join_relation(cell: str, relation: str) -> str:
    """Write a value and its relation as one cell; what does not fit together is no number then."""
    sign = parse_relation(relation)
    if not cell.strip() or sign == "":
        return cell
    bound, own = parse_bound(cell), parse_bound(f"{sign}0") if sign else None
    if bound and own and bound[0] == own[0]:
        return cell
    return f"{relation.strip() if sign is None else sign}{cell.strip()}"


class RelationColumns:
    """Columns of a table whose cells are all relations, beside `targets` that are read without them; or the `named` one
    that they are read with, which may be missing.
    """

    def __init__(self, columns: Sequence[str], targets: Sequence[str], named: str | None = None) -> None:
        self.columns = columns
        self.places: list[int] = list(find_columns(columns, targets).values())
        others = [i for i in range(len(columns)) if i not in self.places and named is None]
        self.counts: dict[int, Counter[str]] = {i: Counter() for i in others}
        self.missing: str | None = None if named is None or find_columns(columns, [named]) else named

    def add(self, rows: Sequence[Row]) -> None:
        """Add some rows; a column with another cell is left out."""
        for place, counts in list(self.counts.items()):
            for row in rows:
                if row.error:
                    continue
                sign = parse_relation(row.cells[place])
                if sign is None:
                    del self.counts[place]
                    break
                counts[sign] += any(parse_number(row.cells[i]) < np.inf for i in self.places)

    def lines(self) -> list[str]:
        """Name the columns with the relation of a bound, or the relation column that is missing."""
        lines = []
        if self.missing is not None:
            lines.append(f"there is no column {self.missing!r} with relations, and all values are read as exact")
        for place, counts in self.counts.items():
            bounds = {sign: number for sign, number in counts.items() if sign and number}
            if bounds:
                signs = ", ".join(f"{number} {sign!r}" for sign, number in bounds.items())
                name = printable(self.columns[place])
                lines.append(f"column {name!r} has relations of bounds ({signs}) beside values that are read as exact")
        return lines


def with_bounds(y: Tensor, bounds: Tensor | None) -> tuple[Tensor, Tensor]:
    """Fill blanks among values `[n, T]` with their bounds, `[n, 2T]`.

    Returns:
        `[n, T]`, and the sides, `[n, T]`: 1 where the value is above, -1 where it is below, 0 where it is exact.
    """
    if bounds is None:
        return y, torch.zeros_like(y)
    above, below = bounds.to(y).chunk(2, dim=1)
    lacking = y.isnan()
    side = (lacking & ~above.isnan()).to(y) - (lacking & above.isnan() & ~below.isnan()).to(y)
    return torch.where(side > 0, above, torch.where(side < 0, below, y)), side


def censored_squares(output: Tensor, value: Tensor, side: Tensor, weights: Tensor) -> Tensor:
    r"""Compute squared errors, and for bounds their counterpart in a Gaussian likelihood.

    For errors with one standard deviation \(\sigma\), the loss of an exact value y is \(2 \sigma^2\) times its negative
    log-likelihood, up to a constant. The loss of a bound c is defined in the same way:

    \[ (y - f)^2, \qquad -2 \sigma^2 \ln \Phi\!\left(\frac{f - c}{\sigma}\right) \;\text{for } y > c, \qquad
       -2 \sigma^2 \ln \Phi\!\left(\frac{c - f}{\sigma}\right) \;\text{for } y < c \]

    For a small \(\sigma\), the loss of a bound is 0 on the allowed side and the squared distance on the other side.
    With the estimated \(\sigma\), f estimates the mean of the censored values (Tobin 1958,
    https://doi.org/10.2307/1907382). The standard deviation is the maximum-likelihood estimate from the rows, see
    `censored_spread`, and has no gradient.

    All arguments are `[B, T]`: f; y or c, any number for blanks; the side, 1 for y > c, -1 for y < c, 0 for y; and the
    weight of each entry in the spread, 0 for blanks.
    """
    error = output - value
    spread = censored_spread(error.detach(), side, weights)
    unlikely = -2 * spread.square() * torch.special.log_ndtr(side * error / spread)
    return torch.where(side == 0, error.square(), unlikely)


def censored_spread(error: Tensor, side: Tensor, weights: Tensor) -> Tensor:
    r"""Estimate the standard deviation of partly censored errors by expectation and maximisation, `[T]`.

    \[ \sigma^2 \leftarrow \frac{\sum_{exact} e^2 + \sum_{bounds} \sigma^2 (1 - z \lambda(z))}{n}, \qquad
       z = \pm \frac{e}{\sigma}, \quad \lambda = \frac{\varphi(z)}{\Phi(z)} \]

    (Dempster, Laird & Rubin 1977); 1 where there is no exact value. Arguments as of `censored_squares`, the error being
    output minus value.
    """
    exact, bound = weights * (side == 0), weights * (side != 0)
    squares, measured, total = (exact * error.square()).sum(0), exact.sum(0), weights.sum(0)
    has_exact = measured > 0
    variance = torch.where(has_exact, squares / torch.where(has_exact, measured, 1), 1).clamp(min=_LEAST)
    for _ in range(_STEPS):
        z = side * error / variance.sqrt()
        ratio = (-z.square() / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(z)).exp()
        estimate = (squares + variance * (bound * (1 - z * ratio)).sum(0)) / torch.where(has_exact, total, 1)
        variance = torch.where(has_exact, estimate, variance).clamp(min=_LEAST)
    return variance.sqrt()
