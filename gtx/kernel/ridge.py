"""Ridge regression with a kernel, in closed form: the weights, the ridge and the leave-one-out predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

RIDGES = torch.logspace(-4, 2, 25, dtype=torch.float64)
"""Ridges to choose from: the variance of noise over that of the signal."""
MOST_SPECTRUM = 3_000
"""Maximum number of rows that choose the ridge, drawn at random: it takes all eigenvalues, which cost some ten times
as much as a solution for one ridge."""
_NOTHING = 1e-10  # eigenvalues below this share of the largest are rounding errors


class KernelRidgeSolution(NamedTuple):
    """Solution of kernel ridge regression for C targets: the weights of m reference molecules, fitted to n rows.

    Attributes:
        dual: weights of the m reference molecules, float64 `[m, C]`. A prediction is `centre + k @ dual`, with k the
            kernel between a molecule and the m reference molecules.
        centre: mean of each target, float64 `[C]`.
        ridge: chosen ridge of each target, float64 `[C]`.
        scale: variance of the signal, float64 `[C]`.
        left_out: leave-one-out predictions of each row from all other rows, float64 `[n, C]`; NaN for blanks.
    """

    dual: Tensor
    centre: Tensor
    ridge: Tensor
    scale: Tensor
    left_out: Tensor


class _Spectrum(NamedTuple):
    """Kernel between n rows as `vectors @ diag(values) @ vectors.T`, and the map from there to the m rows."""

    vectors: Tensor  # [n, r]
    values: Tensor  # [r]
    back: Tensor  # [m, r]


def solve_kernel_ridge(kernel: Tensor, chosen: Tensor, y: Tensor) -> KernelRidgeSolution:
    r"""Solve kernel ridge regression (the mean of a Gaussian process) in closed form; blanks of a target are left out.

    With the kernel K of the rows, and \(\lambda\) the ridge with the smallest squared leave-one-out error, the weights
    and the leave-one-out errors are

    \[ \alpha = (K + \lambda I)^{-1} (y - \bar y), \qquad
       y_i - \hat y_i^{(-i)} = \frac{\alpha_i}{[(K + \lambda I)^{-1}]_{ii}} \]

    If there are more rows than `MOST_SPECTRUM` (or fewer, where targets differ in their blanks), a sample chooses the
    ridge.

    If m < n rows are chosen, \(K_{nm} K_{mm}^{-1} K_{mn}\) replaces K (Nyström); a row that is left out may still be
    one of the m, whose values are not used.

    Sources: Rasmussen & Williams 2006, equations 2.25, 5.12 and 8.14 (http://gaussianprocess.org/gpml).

    Args:
        kernel: kernel between all n rows and the m chosen rows, float64 `[n, m]`.
        chosen: indices of the chosen rows, int64 `[m]`, ascending; with all rows the solution is exact.
        y: targets, float64 `[n, C]`, NaN for blanks; every column has a value.
    """
    n, m = kernel.shape
    mean, left_out = y.nanmean(0), torch.full_like(y, torch.nan)
    dual, ridge, scale = y.new_zeros(m, len(mean)), torch.ones_like(mean), torch.zeros_like(mean)
    solution = KernelRidgeSolution(dual, mean, ridge, scale, left_out)
    root = None if m == n else _root(kernel[chosen])
    many = rows_of_equal_cost(MOST_SPECTRUM, y)
    for rows, columns in _patterns(~y.isnan()):
        if root is None and len(rows) > many:
            _fill_by_factors(solution, kernel, y, rows, rows[draw(len(rows), many)], columns)
            continue
        spectrum = _exact(kernel, rows) if root is None else _nystroem(kernel[rows] @ root, root)
        for column in columns:
            _fill(solution, spectrum, y[rows, column], rows, column)
    return solution


def rows_of_equal_cost(most: int, y: Tensor) -> int:
    """Return the number of rows whose C columns `[n, C]` cost as much as `most` rows of one column.

    Each pattern of blanks is a problem of its own, of cubic cost.
    """
    patterns = y.isnan().unique(dim=1).shape[1]
    return int(most / patterns ** (1 / 3))


def cost(y: Tensor) -> float:
    """Estimate the cost of all rows of C columns `[n, C]`: the sum over patterns of blanks of their rows cubed."""
    return float((~y.isnan()).unique(dim=1).sum(0).double().pow(3).sum())


def draw(n: int, count: int) -> Tensor:
    """Draw `count` of n rows, ascending, always the same ones; all if there are fewer."""
    if n <= count:
        return torch.arange(n)
    return torch.randperm(n, generator=torch.Generator().manual_seed(0))[:count].sort().values


def _patterns(measured: Tensor) -> Iterator[tuple[Tensor, list[int]]]:
    """Yield the patterns of blanks: the rows with a value, and the columns that have values in just these rows."""
    patterns, which = measured.unique(dim=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        yield pattern.nonzero().flatten(), (which == number).nonzero().flatten().tolist()


def _root(kernel: Tensor) -> Tensor:
    """Compute R `[m, r]` with R Rᵀ the pseudo-inverse of a kernel `[m, m]`."""
    values, vectors = torch.linalg.eigh(kernel)
    kept = values > _NOTHING * values[-1]
    return vectors[:, kept] / values[kept].sqrt()


def _exact(kernel: Tensor, rows: Tensor) -> _Spectrum:
    values, vectors = torch.linalg.eigh(kernel[rows][:, rows])
    back = vectors.new_zeros(len(kernel), len(rows)).index_copy_(0, rows, vectors)
    return _Spectrum(vectors, values.clamp(min=0), back)


def _nystroem(features: Tensor, root: Tensor) -> _Spectrum:
    """Compute the spectrum of `features @ features.T`, `[n, n]`, without that matrix."""
    values, turned = torch.linalg.eigh(features.T @ features)
    kept = values > _NOTHING * values[-1]
    values, turned = values[kept], turned[:, kept]
    return _Spectrum(features @ turned / values.sqrt(), values, root @ turned * values.sqrt())


def _best(spectrum: _Spectrum, centred: Tensor) -> tuple[Tensor, Tensor]:
    """Choose the ridge of the least squared leave-one-out error; return it and the errors of the rows, `[n]`."""
    along, squares = spectrum.vectors.T @ centred, spectrum.vectors.square()
    kept = spectrum.values / (spectrum.values + RIDGES[:, None])  # [ridges, r]
    off = (centred[:, None] - spectrum.vectors @ (kept * along).T) / (1 - squares @ kept.T).clamp(min=1e-12)
    best = int(off.square().mean(0).argmin())
    return RIDGES[best], off[:, best]


def _fill(solution: KernelRidgeSolution, spectrum: _Spectrum, y: Tensor, rows: Tensor, column: int) -> None:
    """Enter the solution for one column."""
    centred = y - solution.centre[column]
    ridge, off = _best(spectrum, centred)
    along = spectrum.vectors.T @ centred
    weights = along / (spectrum.values + ridge)
    solution.dual[:, column] = spectrum.back @ weights
    solution.ridge[column] = ridge
    # the signal's variance by maximum likelihood, yᵀ (K + λ)⁻¹ y / n, with what lies outside of the spectrum
    outside = (centred.square().sum() - along.square().sum()).clamp(min=0) / ridge
    solution.scale[column] = (along @ weights + outside) / len(y)
    solution.left_out[rows, column] = y - off


def _fill_by_factors(
    solution: KernelRidgeSolution, kernel: Tensor, y: Tensor, rows: Tensor, some: Tensor, columns: Sequence[int]
) -> None:
    """Enter the solution for columns that have values in the same rows; the rows `some` choose the ridges."""
    spectrum = _exact(kernel, some)
    for column in columns:
        solution.ridge[column] = _best(spectrum, y[some, column] - solution.centre[column])[0]
    for ridge in solution.ridge[columns].unique():
        alike = [column for column in columns if solution.ridge[column] == ridge]
        centred = y[rows][:, alike] - solution.centre[alike]
        weights, off = leave_one_out(kernel[rows][:, rows], centred, ridge)
        for k, column in enumerate(alike):
            solution.dual[rows, column] = weights[:, k]
            solution.scale[column] = weights[:, k] @ centred[:, k] / len(rows)
            solution.left_out[rows, column] = y[rows, column] - off[:, k]


def leave_one_out(kernel: Tensor, centred: Tensor, ridge: float | Tensor) -> tuple[Tensor, Tensor]:
    r"""Compute the weights \((K + \lambda I)^{-1} (y - \bar y)\) for one ridge, and the errors of leaving out each row.

    Args:
        kernel: K, float64 `[n, n]`.
        centred: targets minus their means, float64 `[n, C]`, as are both results.
        ridge: the ridge.
    """
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(kernel + ridge * torch.eye(len(kernel), dtype=kernel.dtype)))
    weights = inverse @ centred
    return weights, weights / inverse.diagonal()[:, None]
