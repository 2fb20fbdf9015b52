"""Ridge regression with a kernel, in closed form: the weights, the ridge and the leave-one-out predictions."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

RIDGES = torch.logspace(-4, 2, 25, dtype=torch.float64)
"""Ridges to choose from: the variance of noise over that of the signal."""
_NOTHING = 1e-10  # eigenvalues below this share of the largest are rounding errors


class Solution(NamedTuple):
    """What `solve` finds for C targets, of n rows and m of them that predictions are made of.

    Attributes:
        dual: float64 `[m, C]`; a prediction is `centre + k @ dual` with k the kernel between a molecule and the m rows.
        centre: float64 `[C]`, each target's mean.
        ridge: float64 `[C]`, as chosen.
        scale: float64 `[C]`, the variance of the signal.
        left_out: float64 `[n, C]`, the prediction of each row by all others; NaN where it has no value.
    """

    dual: Tensor
    centre: Tensor
    ridge: Tensor
    scale: Tensor
    left_out: Tensor


class _Spectrum(NamedTuple):
    """A kernel between n rows as `vectors @ diag(values) @ vectors.T`, and what leads from there to the m rows."""

    vectors: Tensor  # [n, r]
    values: Tensor  # [r]
    back: Tensor  # [m, r]


def solve(kernel: Tensor, chosen: Tensor, y: Tensor) -> Solution:
    r"""Kernel ridge regression, the mean of a Gaussian process; each target learns from the rows that have a value.

    With the kernel K of the rows and \(\lambda\) the ridge that has the least squared error when each row is left out,

    \[ \alpha = (K + \lambda I)^{-1} (y - \bar y), \qquad
       y_i - \hat y_i^{(-i)} = \frac{\alpha_i}{[(K + \lambda I)^{-1}]_{ii}} \]

    Where m < n rows are chosen, \(K_{nm} K_{mm}^{-1} K_{mn}\) stands for K (Nyström); the row that is left out then
    still is one of the m, whose values are not used.

    Sources: Rasmussen & Williams 2006, equations 2.25, 5.12 and 8.14 (http://gaussianprocess.org/gpml).

    Args:
        kernel: float64 `[n, m]`, between all rows and the chosen ones.
        chosen: int64 `[m]`, which rows these are, ascending; all of them is exact.
        y: float64 `[n, C]`, NaN for blanks; every column has a value.
    """
    n, m = kernel.shape
    found = Solution(
        y.new_zeros(m, y.shape[1]),
        y.nanmean(0),
        y.new_ones(y.shape[1]),
        y.new_zeros(y.shape[1]),
        torch.full_like(y, torch.nan),
    )
    root = None if m == n else _root(kernel[chosen])
    for rows, columns in _patterns(~y.isnan()):
        spectrum = _exact(kernel, rows) if root is None else _nystroem(kernel[rows] @ root, root)
        for column in columns:
            _fill(found, spectrum, y[rows, column], rows, column)
    return found


def num_patterns(y: Tensor) -> int:
    """In how many different ways the C columns `[n, C]` have blanks."""
    return y.isnan().unique(dim=1).shape[1]


def _patterns(known: Tensor) -> list[tuple[Tensor, list[int]]]:
    """The rows that have a value, and the columns for which they are these."""
    patterns, which = known.unique(dim=1, return_inverse=True)
    return [
        (patterns[:, p].nonzero().flatten(), (which == p).nonzero().flatten().tolist())
        for p in range(patterns.shape[1])
    ]


def _root(kernel: Tensor) -> Tensor:
    """`[m, r]` whose product with its transpose is the inverse of a kernel `[m, m]`, as far as that has one."""
    values, vectors = torch.linalg.eigh(kernel)
    kept = values > _NOTHING * values[-1]
    return vectors[:, kept] / values[kept].sqrt()


def _exact(kernel: Tensor, rows: Tensor) -> _Spectrum:
    values, vectors = torch.linalg.eigh(kernel[rows][:, rows])
    back = vectors.new_zeros(len(kernel), len(rows)).index_copy_(0, rows, vectors)
    return _Spectrum(vectors, values.clamp(min=0), back)


def _nystroem(features: Tensor, root: Tensor) -> _Spectrum:
    """The spectrum of `features @ features.T`, `[n, n]`, without that matrix."""
    values, turned = torch.linalg.eigh(features.T @ features)
    kept = values > _NOTHING * values[-1]
    values, turned = values[kept], turned[:, kept]
    return _Spectrum(features @ turned / values.sqrt(), values, root @ turned * values.sqrt())


def _fill(found: Solution, spectrum: _Spectrum, y: Tensor, rows: Tensor, column: int) -> None:
    """Enter what is found for one column."""
    centred = y - found.centre[column]
    along, squares = spectrum.vectors.T @ centred, spectrum.vectors.square()
    kept = spectrum.values / (spectrum.values + RIDGES[:, None])  # [ridges, r]
    off = (centred[:, None] - spectrum.vectors @ (kept * along).T) / (1 - squares @ kept.T).clamp(min=1e-12)
    best = int(off.square().mean(0).argmin())
    weights = along / (spectrum.values + RIDGES[best])
    found.dual[:, column] = spectrum.back @ weights
    found.ridge[column] = RIDGES[best]
    # the signal's variance by maximum likelihood, yᵀ (K + λ)⁻¹ y / n, with what lies outside of the spectrum
    outside = (centred.square().sum() - along.square().sum()).clamp(min=0) / RIDGES[best]
    found.scale[column] = (along @ weights + outside) / len(y)
    found.left_out[rows, column] = y - off[:, best]
