r"""Choosing molecules by the posterior of a Gaussian process, in closed form.

The kernel of a model is the covariance of a Gaussian process. After training molecules t with the ridge \(\lambda\),
candidates c have the covariance (Rasmussen & Williams 2006, eq. 2.24), in units of the variance of the signal,

\[ C = K_{cc} - K_{ct} (K_{tt} + \lambda I)^{-1} K_{tc}, \]

and a measurement of candidate i changes it, whatever its value will be, to

\[ C' = C - \frac{c_i c_i^\top}{C_{ii} + \lambda} . \]

So molecules are chosen one after the other without training again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Goal = Literal["accuracy", "best"]
START, ROUND, TEST = 0.2, 0.05, 0.2
"""Of the rows of a replay: measured at the start, added a round, and held out for the error."""
MOST_REPLAYED = 1_500
STRATEGIES: dict[str, tuple[str, ...]] = {"accuracy": ("choice", "random", "best first"), "best": ("choice", "random")}
GOOD = 0.1
"""The share of molecules with the best values, which a replay for the best looks for."""


class Pick(NamedTuple):
    """Candidate molecule that was chosen.

    Attributes:
        place: index of the molecule among the candidates.
        deviation: posterior standard deviation after all earlier picks, as a share of the standard deviation of the
            signal.
        gain: for "accuracy", the share of the variance of all candidates that the measurement removes; for "best", the
            probability that the molecule is better than the best measured value.
    """

    place: int
    deviation: float
    gain: float


def posterior(among: Tensor, to_trained: Tensor, factor: Tensor) -> Tensor:
    """Compute C of m candidates.

    Args:
        among: kernel between candidates, float64 `[m, m]`.
        to_trained: kernel between candidates and n training molecules, float64 `[m, n]`.
        factor: Cholesky factor of the training molecules' kernel with the ridge on its diagonal, `[n, n]`.
    """
    half = torch.linalg.solve_triangular(factor, to_trained.T, upper=False)
    return among - half.T @ half


def choose_for_accuracy(covariance: Tensor, ridge: float, number: int) -> Iterator[Pick]:
    """Choose the candidates whose measurement lowers the mean variance of all candidates most, one after the other.

    Args:
        covariance: C, float64 `[m, m]`.
        ridge: variance of the noise over that of the signal.
        number: number of candidates to choose, at most m.
    """
    covariance = covariance.clone()
    total, free = covariance.diagonal().sum(), torch.ones(len(covariance), dtype=torch.bool)
    for _ in range(min(number, len(covariance))):
        gain = covariance.square().sum(0) / (covariance.diagonal() + ridge)
        place = int(gain.masked_fill(~free, -1).argmax())
        free[place] = False
        deviation = covariance[place, place].clamp(min=0).sqrt()
        yield Pick(place, float(deviation), float(gain[place] / total))
        column = covariance[:, place] / (covariance[place, place] + ridge).sqrt()
        covariance -= torch.outer(column, column)


def choose_for_best(mean: Tensor, covariance: Tensor, number: int, best: float) -> Iterator[Pick]:
    """Choose the candidates with the highest predictions, the highest first.

    Expected improvement, which also prefers uncertain candidates, found fewer of the best in replays on eight sets
    (experiments/results/selecting.md).

    Args:
        mean: predictions, float64 `[m]`, in units of the standard deviation of the signal; higher is better.
        covariance, number: as in `choose_for_accuracy`.
        best: best measured value so far, in the units of `mean`.
    """
    deviation = covariance.diagonal().clamp(min=1e-12).sqrt()
    chance = torch.distributions.Normal(0.0, 1.0).cdf((mean - best) / deviation)
    for place in mean.argsort(descending=True, stable=True)[:number].tolist():
        yield Pick(place, float(deviation[place]), float(chance[place]))


class Replay(NamedTuple):
    """Test of a selection strategy on molecules whose values are known.

    Attributes:
        measured: number of measured molecules in each round.
        curves: curve of each strategy, averaged over starts: the RMSE of held-out molecules in each round, or for
            "best" the share of the best molecules that were found.
    """

    measured: list[int]
    curves: dict[str, list[float]]

    def area(self, strategy: str) -> float:
        """Mean height of a curve after its start."""
        heights = self.curves[strategy][1:]
        return sum(heights) / len(heights)


def replay(kernel: Tensor, y: Tensor, ridge: float, goal: Goal, starts: int = 3, seed: int = 0) -> Replay:
    """Replay the choice of molecules on a table that is measured already, by the kernel alone.

    A fifth of the rows, drawn at random, is measured at the start; each round measures a twentieth more, chosen by the
    strategy, until all are. The kernel's shares and ridge stay those of the model, which were chosen on all rows.

    Of the kernel `[n, n]` and values `[n]` (higher is better) at most `MOST_REPLAYED` rows are drawn. For "accuracy", a
    fifth of them is held out for the error. The curves are averaged over `starts` random starts.
    """
    generator = torch.Generator().manual_seed(seed)
    if len(y) > MOST_REPLAYED:
        rows = torch.randperm(len(y), generator=generator)[:MOST_REPLAYED]
        kernel, y = kernel[rows][:, rows], y[rows]
    totals: dict[str, Tensor] = {}
    measured: list[int] = []
    for _ in range(starts):
        order = torch.randperm(len(y), generator=generator)
        held_out = int(TEST * len(y)) if goal == "accuracy" else 0
        test, pool = order[:held_out], order[held_out:]
        for strategy in STRATEGIES[goal]:
            measured, heights = _one_replay(kernel, y, ridge, goal, strategy, test, pool, generator)
            totals[strategy] = totals.get(strategy, 0) + torch.tensor(heights) / starts
    return Replay(measured, {strategy: total.tolist() for strategy, total in totals.items()})


def _one_replay(
    kernel: Tensor,
    y: Tensor,
    ridge: float,
    goal: Goal,
    strategy: str,
    test: Tensor,
    pool: Tensor,
    generator: torch.Generator,
) -> tuple[list[int], list[float]]:
    size, step = max(2, int(START * len(pool))), max(1, int(ROUND * len(pool)))
    known, rest = pool[:size], pool[size:]
    good = set(pool[y[pool].argsort(descending=True)[: max(1, int(GOOD * len(pool)))]].tolist())
    measured, heights = [], []
    while True:
        centre = y[known].mean()
        factor = torch.linalg.cholesky(kernel[known][:, known] + ridge * torch.eye(len(known), dtype=kernel.dtype))
        dual = torch.cholesky_solve((y[known] - centre)[:, None], factor).squeeze(1)
        measured.append(len(known))
        if goal == "accuracy":
            heights.append(float((centre + kernel[test][:, known] @ dual - y[test]).square().mean().sqrt()))
        else:
            heights.append(len(good & set(known.tolist())) / len(good))
        if not len(rest):
            return measured, heights
        if strategy == "random":
            places = torch.randperm(len(rest), generator=generator)[:step]
        elif strategy == "choice" and goal == "accuracy":
            covariance = posterior(kernel[rest][:, rest], kernel[rest][:, known], factor)
            places = torch.tensor([pick.place for pick in choose_for_accuracy(covariance, ridge, step)])
        else:  # the best first
            places = (kernel[rest][:, known] @ dual).argsort(descending=True)[:step]
        chosen = torch.zeros(len(rest), dtype=torch.bool).index_fill(0, places, True)
        known, rest = torch.cat([known, rest[chosen]]), rest[~chosen]
