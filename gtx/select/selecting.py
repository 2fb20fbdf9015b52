r"""Choice of molecules to measure: the most promising of a library, jointly, by the posterior of a Gaussian process.

The kernel of a model is the covariance of a Gaussian process. After training molecules t with the ridge \(\lambda\),
candidates c have the covariance (Rasmussen & Williams 2006, eq. 2.24), in units of the variance of the signal,

\[ C = K_{cc} - K_{ct} (K_{tt} + \lambda I)^{-1} K_{tc}, \]

and a measurement of candidate i changes it, whatever its value will be, to

\[ C' = C - \frac{c_i c_i^\top}{C_{ii} + \lambda} . \]

So molecules are chosen one after the other without training again.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from gtx.base.errors import InputError, did_you_mean
from gtx.data import MoleculeStore, featurise
from gtx.data.rows import Row, RowLog, listed, percent
from gtx.data.table_writer import Cell, TableWriter, find_unused_column_name, refuse_input_as_output
from gtx.kernel import KernelRidge
from gtx.prediction import Predictor
from gtx.prediction.folders import find_tables
from gtx.prediction.streaming import open_for_model, predict_rows
from gtx.tasks import Regression
from gtx.tasks.closed_form import embeddings_of, over_batches
from gtx.tasks.numeric import is_numeric

# --- Choices among molecules whose posterior covariance is known, and their replay on known rows.

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


# --- From a library to a plate: every molecule is scored, the most promising are kept, and chosen among jointly.

CANDIDATES = 4_000
"""Molecules that are compared with each other; of a larger library those that score best one by one."""
ALIKE = 1 - 1e-6
"""Kernel from which on it cannot tell two molecules apart."""
LEAST_REPLAYED = 50


def kernel_of(predictor: Predictor) -> KernelRidge:
    """Copy the kernel of a model, with or without networks, to the CPU.

    Raises:
        InputError: there is none.
    """
    beside = predictor.kernel_member
    kernel = predictor.members[0] if beside is None else beside.kernel
    if not isinstance(kernel, KernelRidge):
        raise InputError(
            "gtx select needs a kernel model, which this model lacks: train with --blend kernel or --model kernel"
        )
    return deepcopy(kernel).cpu()


@dataclass(frozen=True)
class Scoring:
    """Columns of predictions that the selection needs, see `gtx.prediction.predictor.FurtherColumns`.

    They are the prediction of one output as networks and kernel give it (z-score), the standard deviation of the
    networks' members, weighted as they are in the blend, that of the kernel's posterior, and the kernel to the most
    similar molecule that it was fitted to.
    """

    output: int
    kernel: KernelRidge

    def named(self, predictor: Predictor) -> list[tuple[str, type]]:
        return [(name, float) for name in ("mean", "members_sd", "kernel_sd", "nearest")]

    def values(self, predictor: Predictor, store: MoleculeStore, outputs: Tensor) -> list[np.ndarray]:
        kernel, members = self.kernel, outputs[..., self.output].double()
        spread = members.std(1) if members.shape[1] > 1 else torch.zeros(len(members), dtype=torch.float64)
        similar = over_batches(kernel.kernel, store.to("cpu"))
        deviation = kernel.variance_of(similar)[:, self.output].sqrt()
        further = [members.mean(1), spread, deviation, similar.max(1).values]
        return [column.numpy() for column in further]


class Candidate(NamedTuple):
    """A molecule of the library that may be chosen, ordered by its score and then by its place in the library."""

    score: float
    order: int
    file: str
    row: Row
    smiles: str
    cells: list[Cell]
    mean: float
    members_sd: float


@dataclass(frozen=True)
class Plate:
    """Molecules chosen from a library, in the order of choice, and what was left out and why.

    Attributes:
        picks: the chosen molecules.
        row_logs: row log of each file of the library.
        considered: number of candidates that were compared with each other.
        left_out: number of molecules by reason.
        unknown: description of training molecules that may be among the chosen ones; None if there are none.
        similarity: kernel of each chosen molecule to the most similar other chosen molecule, averaged.
        replay: result of the same strategy on the rows to which the kernel model was fitted; None for few rows.
    """

    picks: list[Pick]
    row_logs: dict[str, RowLog]
    considered: int
    left_out: Counter[str]
    unknown: str | None
    similarity: float
    replay: Replay | None


def select(
    predictor: Predictor,
    library: str | Path,
    number: int,
    out: str | Path,
    *,
    goal: Goal = "accuracy",
    target: str | None = None,
    lowest: bool = False,
    smiles_column: str | None = None,
    workers: int | None = None,
) -> Plate:
    """Choose molecules of a library to measure next, and write them.

    Args:
        predictor: predictor of numbers, with a kernel model, with or without networks.
        library: path of a table, or of a folder of tables with the same columns.
        number: number of molecules to choose, 1 to `CANDIDATES`; of a smaller library all molecules are chosen.
        out: path of the output table, CSV, TSV or Parquet.
        goal: "accuracy" to lower the error of the model over the library, or "best" to find molecules with the best
            values.
        target: name of the target, needed if the model has several targets.
        lowest: whether the lowest value is the best; only for the goal "best".
        smiles_column, workers: as for `gtx.prediction.predict_table`.

    Raises:
        InputError: the model has no kernel model or no such target, the task is not regression, no molecule can be
            chosen, `lowest` without the goal "best", or this goal for a target that was learned minus a reference per
            element.
    """
    if not 1 <= number <= CANDIDATES:
        raise InputError(f"number: expected 1 to {CANDIDATES:,}, got {number:,}")
    if lowest and goal != "best":
        raise InputError(f"lowest: expected with `goal` best, whose best value it names, got `goal` {goal}")
    refuse_input_as_output(out, library)
    output, sign, kernel = _output(predictor, target, goal), -1.0 if lowest else 1.0, kernel_of(predictor)
    files = _files(Path(library))
    found = _Candidates(predictor, kernel, output, goal, sign)
    for name, file in files.items():
        found.read(name, file, smiles_column, workers)
    if not found.heap:
        raise InputError(f"{library}: expected molecules that were not measured yet, got none")
    candidates = sorted(found.heap, key=lambda one: -one.order)  # as in the library
    scale = max(float(kernel.scale[output]), 1e-12) ** 0.5  # standard deviation of the signal
    values, ridge = kernel.values()[:, output], float(kernel.ridge[output])
    fitted = (~values.isnan()).nonzero().flatten()
    y = sign * values[fitted] / scale
    covariance, among = _compare(predictor, kernel, output, candidates, scale)
    if goal == "accuracy":
        picks = list(choose_for_accuracy(covariance, ridge, number))
    else:
        mean = sign * torch.tensor([one.mean for one in candidates], dtype=torch.float64) / scale
        picks = list(choose_for_best(mean, covariance, number, float(y.max())))
    before = ["choice", "file"] if len(files) > 1 else ["choice"]
    *before, reason = (find_unused_column_name(found.header, name) for name in (*before, "reason"))
    with TableWriter(out, [*before, *found.header, reason], {before[0]: float} | found.types) as writer:
        for choice, pick in enumerate(picks, 1):
            one = candidates[pick.place]
            place: list[Cell] = [choice, one.file] if len(before) > 1 else [choice]
            writer.write([*place, *one.cells, _reason(goal, pick)])
    places = torch.tensor([pick.place for pick in picks])
    similar = among[places][:, places].fill_diagonal_(0)
    similarity = float(similar.max(1).values.mean()) if len(picks) > 1 else 0.0
    tested = replay(kernel.gram()[fitted][:, fitted], y, ridge, goal) if len(y) >= LEAST_REPLAYED else None
    return Plate(picks, found.row_logs, len(candidates), found.left_out, found.unknown, similarity, tested)


def _compare(
    predictor: Predictor, kernel: KernelRidge, output: int, candidates: Sequence[Candidate], scale: float
) -> tuple[Tensor, Tensor]:
    """Compute the posterior covariance of m candidates, which the members' disagreement widens, and their kernel, both
    `[m, m]`.
    """
    texts, coordinates = ([getattr(one.row, name) for one in candidates] for name in ("readable", "coordinates"))
    store = featurise(predictor.header.featuriser, texts, coordinates, workers=0).store
    among = kernel.with_references(store, embeddings_of(kernel, store)).gram()
    to_trained = over_batches(kernel.kernel, store)[:, kernel.measured[:, output]]
    covariance = posterior(among, to_trained, kernel.factors[output])
    spread = torch.tensor([one.members_sd for one in candidates], dtype=torch.float64) / scale
    variance = covariance.diagonal().clamp(min=1e-12)
    wider = ((variance + spread.square()) / variance).sqrt()
    return covariance * torch.outer(wider, wider), among


def _output(predictor: Predictor, target: str | None, goal: Goal) -> int:
    """Return the number of a target's output, if the model is one whose molecules can be chosen."""
    task = predictor.task
    if names := predictor.header.featuriser.components:
        raise InputError(
            f"gtx select chooses among single molecules or reactions; this model reads {' and '.join(names)}"
        )
    if not is_numeric(task) or task.objective.has_link:
        raise InputError(f"gtx select chooses by numbers of single molecules; this model's task is {task.name}")
    if target is None and len(task.targets) > 1:
        raise InputError(f"target: expected one of {listed(task.targets, 10)}, since the model has several")
    if target is not None and target not in task.targets:
        near = did_you_mean(target, task.targets)
        raise InputError(f"target: expected one of {listed(task.targets, 10)}, got {target!r}{near}")
    if predictor.header.features.columns:
        raise InputError("gtx select reads molecules alone; this model reads columns beside them")
    number = 0 if target is None else task.targets.index(target)
    if goal == "best" and isinstance(task, Regression) and number in task.scaler.extensive:
        raise InputError(
            f"`goal` best: {task.targets[number]} was learned minus a reference per element, by which molecules of "
            "another composition are not ranked: train with --no-element-reference, or take gtx predict --top"
        )
    return task.objective.places[number].columns.start


def _reason(goal: Goal, pick: Pick) -> str:
    if goal == "accuracy":
        gain = f"measuring it removes {pick.gain:.2%} of the variance over the library"
    else:
        gain = f"{percent(pick.gain)} chance to be better than the best measured value"
    return f"{gain}; uncertainty {pick.deviation:.0%} of the target's spread"


def _files(library: Path) -> dict[str, Path]:
    """Return the tables of a folder and its subfolders by name, or the one file."""
    if not library.is_dir():
        return {library.name: library}
    files, _, problems = find_tables(library)
    for name, reason in problems.items():
        raise InputError(f"{library}: {name} {reason}")
    return {name: library / name for name in files}


MEASURED, SAME, REPEATED = "known from training", "which the kernel cannot tell from a training molecule", "repeated"
BEHIND = "behind those that are compared with each other"
"""Why molecules are left out."""


class _Candidates:
    """The most promising molecules of a library, and counts of those that are left out."""

    def __init__(self, predictor: Predictor, kernel: KernelRidge, output: int, goal: Goal, sign: float) -> None:
        self.predictor, self.kernel = predictor, kernel
        self.scoring = predictor.with_columns(Scoring(output, kernel))
        self.goal, self.sign = goal, sign  # -1 where the lowest value is the best
        self.training = training = predictor.header.training
        self.trained = set() if training is None else set(training.smiles)
        self.lists_all = training is not None and not training.is_sample
        self.left_out: Counter[str] = Counter()
        self.heap: list[Candidate] = []
        self.names: set[str] = set()  # SMILES of the candidates
        self.row_logs: dict[str, RowLog] = {}
        self.header: list[str] = []
        self.types: dict[str, type] = {}
        self.seen = 0

    @property
    def unknown(self) -> str | None:
        """Description of the training molecules that neither the model file lists nor the kernel has."""
        if self.lists_all or self.kernel.has_all_rows:
            return None
        kernel = f"the kernel {len(self.kernel.row):,}"
        if self.training is None:
            return f"the model file lists no training molecules, and {kernel}"
        return f"the model file lists {len(self.training):,} of {self.training.trained:,} training molecules, {kernel}"

    def read(self, name: str, file: Path, smiles_column: str | None, workers: int | None) -> None:
        """Score the molecules of a file and keep the most promising of all so far."""
        table = open_for_model(self.predictor.header, file, smiles_column)
        self.types = self.predictor.output_columns(table.columns)
        header = [*table.columns, *self.types]
        if self.header and header != self.header:
            raise InputError(f"{file}: expected the columns of the first file, {', '.join(self.header)}")
        self.header = header
        row_log = self.row_logs[name] = RowLog("report")
        with closing(predict_rows(self.scoring, table, row_log, workers, smiles=True)) as parts:
            for rows, lines, done in parts:
                for i in done.good.tolist():
                    self._offer(name, rows[i], list(lines[i][0]), done.smiles[i] or rows[i].text)

    def _offer(self, file: str, row: Row, cells: list[Any], smiles: str) -> None:
        if smiles in self.trained:
            self.left_out[MEASURED] += 1
            return
        *answers, mean, members_sd, kernel_sd, nearest = cells[len(row.cells) : -2]  # error and warning end the row
        if mean is None:
            return  # the outputs are not finite, which is an error of its row
        if not self.lists_all and nearest > ALIKE:
            self.left_out[SAME] += 1
            return
        score = (kernel_sd**2 + members_sd**2) ** 0.5 if self.goal == "accuracy" else self.sign * mean
        self.seen += 1
        one = Candidate(score, -self.seen, file, row, smiles, [*row.cells, *answers], mean, members_sd)
        if smiles in self.names:
            self.left_out[REPEATED] += 1
        elif len(self.heap) < CANDIDATES:
            self.names.add(smiles)
            heapq.heappush(self.heap, one)
        else:
            self.left_out[BEHIND] += 1
            if one[:2] > self.heap[0][:2]:
                self.names.add(smiles)
                self.names.discard(heapq.heapreplace(self.heap, one).smiles)
