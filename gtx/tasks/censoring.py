"""Values of which a bound is all that is known: cells such as `>5`, and what they cost."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from gtx.data.magnitude import LARGEST
from gtx.data.targets import parse_number

SIGNS = {">=": 1, "<=": -1, ">": 1, "<": -1, "≥": 1, "≤": -1}
"""What stands before a bound: 1 where values are above it, -1 where they are below."""
_STEPS = 8  # of the search for the spread
_LEAST = 1e-6  # variance, of z-scores


def parse_bound(cell: str) -> tuple[int, float] | None:
    """`>5`, `<= 0.1` and their like as the side, 1 or -1, and the number; None for anything else."""
    cell = cell.strip()
    sign = next((sign for sign in SIGNS if cell.startswith(sign)), None)
    if sign is None:
        return None
    number = parse_number(cell[len(sign) :])
    return (SIGNS[sign], number) if abs(number) <= LARGEST else None  # a blank is NaN, a text infinite


def read_bounds(columns: list[list[str]]) -> np.ndarray:
    """The bounds in the cells of T columns, float64 `[n, 2T]`: T that values are above, then T that they are below."""
    count = len(columns)
    bounds = np.full((len(columns[0]), 2 * count), np.nan)
    for t, cells in enumerate(columns):
        for i, cell in enumerate(cells):
            if found := parse_bound(cell):
                side, number = found
                bounds[i, t if side > 0 else count + t] = number
    return bounds


def with_bounds(y: Tensor, bounds: Tensor | None) -> tuple[Tensor, Tensor]:
    """Values with bounds in their place where these are all that is known.

    Args:
        y: `[n, T]`, NaN where nothing was measured.
        bounds: `[n, 2T]`, see `gtx.data.MoleculeStore`.

    Returns:
        `[n, T]`, and the sides, `[n, T]`: 1 where the value is above, -1 where it is below, 0 where it is exact.
    """
    if bounds is None:
        return y, torch.zeros_like(y)
    above, below = bounds.to(y).chunk(2, dim=1)
    lacking = y.isnan()
    side = (lacking & ~above.isnan()).to(y) - (lacking & above.isnan() & ~below.isnan()).to(y)
    return torch.where(side > 0, above, torch.where(side < 0, below, y)), side


def kept(bounds: np.ndarray, prediction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of bounds `[n, 2T]`, how many each target has, and the share that predictions `[n, T]` keep; NaN of none."""
    above, below = np.split(bounds, 2, axis=1)
    given = (~np.isnan(above) | ~np.isnan(below)).sum(0)
    good = ((prediction >= above) | (prediction <= below)).sum(0)
    return given, np.where(given > 0, good / np.maximum(given, 1), np.nan)


def censored_squares(output: Tensor, value: Tensor, side: Tensor, say: Tensor) -> Tensor:
    r"""Squared errors, and for bounds what they are in a Gaussian likelihood.

    With errors of one spread \(\sigma\), an exact value y costs \(\sigma^2\) times twice its negative log-likelihood,
    but for a constant, and so does a bound c:

    \[ (y - f)^2, \qquad -2 \sigma^2 \ln \Phi\!\left(\frac{f - c}{\sigma}\right) \;\text{for } y > c, \qquad
       -2 \sigma^2 \ln \Phi\!\left(\frac{c - f}{\sigma}\right) \;\text{for } y < c \]

    With a small spread a bound costs nothing on the side that it allows, and the squared distance on the other; with
    the spread as it is, f is the mean of what was censored, which that rule would miss (Tobin 1958,
    https://doi.org/10.2307/1907382). The spread is the most likely one of the rows given, see `censored_spread`, and
    has no gradient.

    Args:
        output: f, `[B, T]`.
        value: y, or c, `[B, T]`, any number for blanks.
        side: 1 for y > c, -1 for y < c, 0 for y, `[B, T]`.
        say: how much each entry weighs in the spread, `[B, T]`, 0 for blanks.
    """
    error = output - value
    spread = censored_spread(error.detach(), side, say)
    unlikely = -2 * spread.square() * torch.special.log_ndtr(side * error / spread)
    return torch.where(side == 0, error.square(), unlikely)


def censored_spread(error: Tensor, side: Tensor, say: Tensor) -> Tensor:
    r"""The standard deviation of errors some of which are censored, by expectation and maximisation, `[T]`.

    \[ \sigma^2 \leftarrow \frac{\sum_{exact} e^2 + \sum_{bounds} \sigma^2 (1 - z \lambda(z))}{n}, \qquad
       z = \pm \frac{e}{\sigma}, \quad \lambda = \frac{\varphi(z)}{\Phi(z)} \]

    (Dempster, Laird & Rubin 1977). Arguments as of `censored_squares`, errors being output minus value; 1 where
    there is no exact value.
    """
    exact, bound = say * (side == 0), say * (side != 0)
    squares, measured, total = (exact * error.square()).sum(0), exact.sum(0), say.sum(0)
    known = measured > 0
    variance = torch.where(known, squares / torch.where(known, measured, 1), 1).clamp(min=_LEAST)
    for _ in range(_STEPS):
        z = side * error / variance.sqrt()
        ratio = (-z.square() / 2 - 0.5 * math.log(2 * math.pi) - torch.special.log_ndtr(z)).exp()
        found = (squares + variance * (bound * (1 - z * ratio)).sum(0)) / torch.where(known, total, 1)
        variance = torch.where(known, found, variance).clamp(min=_LEAST)
    return variance.sqrt()
