"""The scale of targets, learned of training rows some at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from gtx.tasks.scaling import ELEMENTS, TargetScaler


@dataclass(frozen=True)
class Moments:
    r"""Sufficient statistics of n rows with a target y and compositions c, for `TargetScaler.fit`.

    Those of two groups of rows together follow from those of each (Chan, Golub & LeVeque 1983,
    https://doi.org/10.1080/00031305.1983.10483115): with d the difference of the means,
    \(S = S_1 + S_2 + d d^T n_1 n_2 / (n_1 + n_2)\).

    Attributes:
        count: n.
        mean: float64 `[K]`, of the counts of elements, where there are any, and then of y.
        scatter: float64 `[K, K]`, S, the sum of products of differences from the mean.
        size: the mean of \(|y|\).
    """

    count: int
    mean: Tensor
    scatter: Tensor
    size: float

    @classmethod
    def of(cls, y: Tensor, composition: Tensor | None) -> Moments:
        """Compute the moments of values `[n]`, without blanks, and compositions `[n, 119]`."""
        rows = y[:, None] if composition is None else torch.cat([composition, y[:, None]], 1)
        count, mean = len(y), rows.sum(0) / max(len(y), 1)
        apart = rows - mean
        return cls(count, mean, apart.T @ apart, float(y.abs().sum()) / max(count, 1))

    def __add__(self, other: Moments) -> Moments:
        count = self.count + other.count
        part, apart = other.count / max(count, 1), other.mean - self.mean
        scatter = self.scatter + other.scatter + torch.outer(apart, apart) * self.count * part
        return Moments(count, self.mean + part * apart, scatter, self.size + part * (other.size - self.size))

    def line(self, least: float | None) -> tuple[Tensor | None, float, float]:
        """Fit the reference per element `[119]`, if there is one, and the mean and standard deviation of the rest."""
        mean, within = self.mean[:-1], self.scatter[:-1, :-1]
        reference = None
        if len(mean):
            there = mean > 0
            reference = (torch.linalg.pinv(within, hermitian=True) @ self.scatter[:-1, -1]) * there
            if least is not None and self._explained(reference, int(there.sum())) < least:
                reference = None
        left = float(self.scatter[-1, -1]) if reference is None else self._left(reference)
        offset = float(self.mean[-1]) - (0.0 if reference is None else float(mean @ reference))
        sd = (max(left, 0.0) / self.count) ** 0.5
        return reference, offset, sd if sd > 1e-7 * self.size else 0.0

    def _left(self, reference: Tensor) -> float:
        """Compute the residual sum of squares of a reference."""
        own = torch.cat([-reference, reference.new_ones(1)])
        return float(own @ self.scatter @ own)

    def _explained(self, reference: Tensor, elements: int) -> float:
        """Compute the adjusted R², as `gtx.tasks.scaling` defines it."""
        free, spread = self.count - 1 - elements, float(self.scatter[-1, -1])
        if free <= elements or spread == 0:
            return -torch.inf
        return 1 - (self._left(reference) / free) / (spread / (self.count - 1))


def scaler_of(parts: Iterable[tuple[Tensor, Tensor | None]], least: float | None) -> TargetScaler:
    """Fit a scaler to all parts as `TargetScaler.fit` would to their union; each part, `y` `[n, T]` and
    `composition`, is held in memory one at a time.
    """
    found: list[Moments] = []
    for y, composition in parts:
        own = []
        for column in y.double().cpu().T:
            known = ~column.isnan()
            own.append(Moments.of(column[known], None if composition is None else composition[known]))
        found = own if not found else [before + one for before, one in zip(found, own, strict=True)]
    lines = [one.line(least) for one in found]
    references = [reference for reference, _, _ in lines]
    none = torch.zeros(ELEMENTS, dtype=torch.float64)
    table = torch.stack([none if one is None else one for one in references], 1)
    numbers = torch.tensor([line[1:] for line in lines], dtype=torch.float64)
    return TargetScaler(numbers[:, 0], numbers[:, 1], table if any(one is not None for one in references) else None)
