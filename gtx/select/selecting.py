"""From a library to a plate: score every molecule, keep the most promising, choose among them jointly."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from gtx.base.errors import InputError, did_you_mean
from gtx.data import MoleculeStore, featurise
from gtx.data.rows import Row, RowLog, listed
from gtx.data.table_writer import Cell, TableWriter, refuse_input_as_output
from gtx.kernel import KernelRidge
from gtx.prediction import Predictor
from gtx.prediction.folders import Library
from gtx.prediction.streaming import open_for_model, predict_rows
from gtx.select.choosing import Goal, Pick, Replay, choose_for_accuracy, choose_for_best, posterior, replay
from gtx.tasks.closed_form import embeddings_of
from gtx.tasks.numeric import is_numeric

CANDIDATES = 4_000
"""Molecules that are compared with each other; of a larger library those that score best one by one."""
ALIKE = 1 - 1e-6
"""Kernel from which on it cannot tell two molecules apart."""
LEAST_REPLAYED = 50


def kernel_of(predictor: Predictor) -> KernelRidge:
    """Return the kernel of a model, with or without networks.

    Raises:
        InputError: there is none.
    """
    beside = predictor.kernel_member
    kernel = predictor.members[0] if beside is None else beside.kernel
    if not isinstance(kernel, KernelRidge):
        raise InputError(
            "gtx select needs a kernel model, which this model lacks: train with --blend kernel or --model kernel"
        )
    return kernel


@dataclass(frozen=True)
class Scoring:
    """Columns of predictions that the selection needs, see `gtx.prediction.predictor.FurtherColumns`.

    They are the prediction of one output as networks and kernel give it (z-score), the standard deviation of the
    networks' members, weighted as they are in the blend, that of the kernel's posterior, and the kernel to the most
    similar molecule that it was fitted to.
    """

    output: int

    def named(self, predictor: Predictor) -> list[tuple[str, type]]:
        return [(name, float) for name in ("mean", "members_sd", "kernel_sd", "nearest")]

    def values(self, predictor: Predictor, store: MoleculeStore, outputs: torch.Tensor) -> list[np.ndarray]:
        kernel, members = kernel_of(predictor), outputs[..., self.output].double()
        several = members.shape[1] > 1
        spread = members.std(1) if several else torch.zeros(len(members), dtype=torch.float64)
        parts = torch.arange(len(store)).split(256) if len(store) else ()
        similar = [kernel.kernel(store.to("cpu").batch(rows)) for rows in parts]
        deviation = [kernel.variance_of(part)[:, self.output].sqrt() for part in similar]
        nearest = [part.max(1).values for part in similar]
        none = [torch.zeros(0, dtype=torch.float64)]
        further = [members.mean(1), spread, torch.cat(deviation or none), torch.cat(nearest or none)]
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
            chosen, or `lowest` without the goal "best".
    """
    if not 1 <= number <= CANDIDATES:
        raise InputError(f"--number: expected 1 to {CANDIDATES:,}, got {number:,}")
    if lowest and goal != "best":
        raise InputError(f"--lowest: expected with --for best, whose best value it names, got --for {goal}")
    refuse_input_as_output(out, library)
    selection = _Selection(predictor, goal, _output(predictor, target), -1.0 if lowest else 1.0)
    files = _files(Path(library))
    for name, file in files.items():
        selection.read(name, file, smiles_column, workers)
    if not selection.heap:
        raise InputError(f"{library}: expected molecules that were not measured yet, got none")
    candidates = sorted(selection.heap, key=lambda one: -one.order)  # as in the library
    picks, similarity = selection.choose(candidates, number)
    several = len(files) > 1
    columns = ["choice", *(["file"] if several else []), *selection.header, "reason"]
    with TableWriter(out, columns, {"choice": float} | selection.types) as writer:
        for choice, pick in enumerate(picks, 1):
            one = candidates[pick.place]
            writer.write([choice, *([one.file] if several else []), *one.cells, _reason(goal, pick)], None)
    kernel, y = selection.solved
    tested = replay(kernel, y, selection.ridge, goal) if len(y) >= LEAST_REPLAYED else None
    left_out, row_logs = selection.left_out, selection.row_logs
    return Plate(picks, row_logs, len(candidates), left_out, selection.unknown, similarity, tested)


def _output(predictor: Predictor, target: str | None) -> int:
    """Return the number of a target's output, if the model is one whose molecules can be chosen."""
    task = predictor.task
    if not is_numeric(task) or task.objective.has_link or predictor.header.featuriser.components:
        raise InputError(f"gtx select chooses by numbers of single molecules; this model's task is {task.name}")
    if target is None and len(task.targets) > 1:
        raise InputError(f"--target: expected one of {listed(task.targets, 10)}, since the model has several")
    if target is not None and target not in task.targets:
        near = did_you_mean(target, task.targets)
        raise InputError(f"--target: expected one of {listed(task.targets, 10)}, got {target!r}{near}")
    if predictor.header.features:
        raise InputError("gtx select reads molecules alone; this model reads columns beside them")
    return task.objective.places[0 if target is None else task.targets.index(target)].columns.start


def _reason(goal: Goal, pick: Pick) -> str:
    if goal == "accuracy":
        gain = f"measuring it removes {pick.gain:.2%} of the variance over the library"
    else:
        gain = f"{pick.gain:.0%} chance to be better than the best measured value"
    return f"{gain}; uncertainty {pick.deviation:.0%} of the target's spread"


def _files(library: Path) -> dict[str, Path]:
    """Return the tables of a folder and its subfolders by name, or the one file."""
    if not library.is_dir():
        return {library.name: library}
    tables = Library(library)
    for name, reason in tables.problems.items():
        raise InputError(f"{library}: {name} {reason}")
    return {name: library / name for name in tables.files}


MEASURED, SAME, REPEATED = "known from training", "which the kernel cannot tell from a training molecule", "repeated"
"""Why molecules are left out."""


class _Selection:
    """The most promising molecules of a library, and the kernel that compares them.

    Args:
        predictor: the model.
        goal: of the choice.
        output: number of the output.
        sign: -1 where the lowest value is the best.
    """

    def __init__(self, predictor: Predictor, goal: Goal, output: int, sign: float) -> None:
        self.predictor, self.goal, self.output, self.sign = predictor, goal, output, sign
        self.kernel = kernel = kernel_of(predictor)
        self.scoring = predictor.with_columns(Scoring(output))
        training = predictor.header.training
        self.trained = set() if training is None else set(training.smiles)
        self.lists_all = training is not None and not training.is_sample
        self.ridge = float(kernel.ridge[output])
        self.scale: float = max(float(kernel.scale[output]), 1e-12) ** 0.5  # standard deviation of the signal
        self.left_out: Counter[str] = Counter()
        self.heap: list[Candidate] = []
        self.names: set[str] = set()  # SMILES of the candidates
        self.row_logs: dict[str, RowLog] = {}
        self.header: list[str] = []
        self.types: dict[str, type] = {}
        self.seen = 0

    @cached_property
    def solved(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Kernel and values of the rows that the kernel learned from, higher is better, in units of the signal."""
        values = self.kernel.values()[:, self.output]
        rows = (~values.isnan()).nonzero().flatten()
        return self.kernel.gram()[rows][:, rows], self.sign * values[rows] / self.scale

    @property
    def unknown(self) -> str | None:
        """Description of the training molecules that neither the model file lists nor the kernel has."""
        if self.lists_all or self.kernel.has_all_rows:
            return None
        training, kernel = self.predictor.header.training, f"the kernel {len(self.kernel.row):,}"
        if training is None:
            return f"the model file lists no training molecules, and {kernel}"
        return f"the model file lists {len(training):,} of {training.trained:,} training molecules, {kernel}"

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

    def _offer(self, file: str, row: Row, cells: list[Cell], smiles: str) -> None:
        if smiles in self.trained:
            self.left_out[MEASURED] += 1
            return
        *answers, mean, members_sd, kernel_sd, nearest = cells[len(row.cells) : -2]  # error and warning end the row
        if not (isinstance(mean, float) and isinstance(members_sd, float)):
            return
        if not (isinstance(kernel_sd, float) and isinstance(nearest, float)):
            return
        if not self.lists_all and nearest > ALIKE:
            self.left_out[SAME] += 1
            return
        score = (kernel_sd**2 + members_sd**2) ** 0.5 if self.goal == "accuracy" else self.sign * mean
        if not np.isfinite(score):
            return
        self.seen += 1
        one = Candidate(score, -self.seen, file, row, smiles, [*row.cells, *answers], mean, members_sd)
        if smiles in self.names:
            self.left_out[REPEATED] += 1
        elif len(self.heap) < CANDIDATES:
            self.names.add(smiles)
            heapq.heappush(self.heap, one)
        elif one[:2] > self.heap[0][:2]:
            self.names.add(smiles)
            self.names.discard(heapq.heapreplace(self.heap, one).smiles)

    def choose(self, candidates: Sequence[Candidate], number: int) -> tuple[list[Pick], float]:
        """Choose among candidates jointly; also return the mean kernel of a choice to the most similar other one."""
        texts = [one.row.readable for one in candidates]
        store = featurise(self.predictor.header.featuriser, texts, workers=0).store
        kernel, rows = self.kernel, self.kernel.measured[:, self.output]
        among = kernel.with_references(store, embeddings_of(kernel, store)).gram()
        to_trained = torch.cat([kernel.kernel(store.batch(some)) for some in torch.arange(len(store)).split(256)])
        covariance = posterior(among, to_trained[:, rows], kernel.factors[self.output])
        mean, spread = (
            torch.tensor(column, dtype=torch.float64) / self.scale
            for column in zip(*((one.mean, one.members_sd) for one in candidates), strict=True)
        )
        variance = covariance.diagonal().clamp(min=1e-12)
        wider = ((variance + spread.square()) / variance).sqrt()  # the members' disagreement adds to each deviation
        covariance = covariance * torch.outer(wider, wider)
        if self.goal == "accuracy":
            picks = list(choose_for_accuracy(covariance, self.ridge, number))
        else:
            picks = list(choose_for_best(self.sign * mean, covariance, number, float(self.solved[1].max())))
        places = torch.tensor([pick.place for pick in picks])
        similar = among[places][:, places].fill_diagonal_(0)
        return picks, float(similar.max(1).values.mean()) if len(picks) > 1 else 0.0
