"""From a library to a plate: score every molecule, keep the most promising, choose among them jointly."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from gtx.base.errors import InputError, did_you_mean
from gtx.data import MoleculeStore, featurise
from gtx.data.columns import Row, listed
from gtx.data.row_log import RowLog
from gtx.data.table_writer import Cell, TableWriter, refuse_input_as_output
from gtx.kernel import KernelRidge
from gtx.prediction import Predictor
from gtx.prediction.folders import Library
from gtx.prediction.streaming import open_for_model, predict_rows
from gtx.select.choosing import Goal, Pick, Replay, choose_for_accuracy, choose_for_best, posterior, replay
from gtx.tasks.closed_form import embeddings_of
from gtx.tasks.task import is_numeric

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
    """A molecule of the library that may be chosen."""

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
    """Molecules chosen from a library.

    Attributes:
        picks: chosen molecules, in the order of choice.
        rows: rows that were written.
        columns: names of the columns of the rows.
        row_logs: row log of each file of the library.
        considered: number of candidates that were compared with each other.
        measured: number of molecules left out because the model was trained on them.
        alike: number of molecules left out because the kernel cannot tell them from a training molecule, where the
            model file does not list all training molecules.
        unknown: description of training molecules that may be among the chosen ones; None if there are none.
        repeated: number of molecules left out because an earlier row has the same molecule.
        similarity: kernel of each chosen molecule to the most similar other chosen molecule, averaged.
        replay: result of the same strategy on the rows to which the kernel model was fitted; None for few rows.
    """

    picks: list[Pick]
    rows: list[list[Cell]]
    columns: list[str]
    row_logs: dict[str, RowLog]
    considered: int
    measured: int
    alike: int
    unknown: str | None
    repeated: int
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
        smiles_column: as for `gtx.prediction.predict_table`.
        workers: number of processes that read and predict; by default as in `gtx.prediction.predict_table`.

    Raises:
        InputError: the model has no kernel model or no such target, the task is not regression, no molecule can be
            chosen, or `lowest` without the goal "best".
    """
    if not 1 <= number <= CANDIDATES:
        raise InputError(f"--number: expected 1 to {CANDIDATES:,}, got {number:,}")
    if lowest and goal != "best":
        raise InputError(f"--lowest: expected with --for best, whose best value it names, got --for {goal}")
    refuse_input_as_output(out, library)
    return _Selection(predictor, goal, target, lowest).run(Path(library), number, out, smiles_column, workers)


class _Selection:
    """The state of one call of `select`."""

    def __init__(self, predictor: Predictor, goal: Goal, target: str | None, lowest: bool) -> None:
        task = predictor.task
        if not is_numeric(task) or task.objective.linked or predictor.header.featuriser.components:
            raise InputError(f"gtx select chooses by numbers of single molecules; this model's task is {task.name}")
        if target is None and len(task.targets) > 1:
            raise InputError(f"--target: expected one of {listed(task.targets, 10)}, since the model has several")
        if target is not None and target not in task.targets:
            near = did_you_mean(target, task.targets)
            raise InputError(f"--target: expected one of {listed(task.targets, 10)}, got {target!r}{near}")
        self.predictor, self.goal, self.sign = predictor, goal, -1.0 if lowest else 1.0
        if predictor.header.features:
            raise InputError("gtx select reads molecules alone; this model reads columns beside them")
        self.output = task.objective.places[task.targets.index(target) if target is not None else 0].columns.start
        self.kernel: KernelRidge = kernel_of(predictor)
        self.scoring = predictor.with_columns(Scoring(self.output))
        training = predictor.header.training
        self.trained = set() if training is None else set(training.smiles)
        self.lists_all = training is not None and not training.is_sample
        self.measured = self.alike = self.repeated = self.seen = 0
        self.heap: list[Candidate] = []
        self.row_logs: dict[str, RowLog] = {}
        self.header: list[str] = []
        self.types: dict[str, type] = {}

    @cached_property
    def ridge(self) -> float:
        return float(self.kernel.ridge[self.output])

    @cached_property
    def scale(self) -> float:
        """Standard deviation of the signal."""
        return max(float(self.kernel.scale[self.output]), 1e-12) ** 0.5

    @cached_property
    def solved(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Kernel and values of the rows that the kernel learned from, higher is better, in units of the signal."""
        values = self.kernel.values()[:, self.output]
        rows = (~values.isnan()).nonzero().flatten()
        return self.kernel.gram()[rows][:, rows], self.sign * values[rows] / self.scale

    def run(self, library: Path, number: int, out: str | Path, smiles_column: str | None, workers: int | None) -> Plate:
        files = _files(library)
        for name, file in files.items():
            self._read(name, file, smiles_column, workers)
        if not self.heap:
            raise InputError(f"{library}: expected molecules that were not measured yet, got none")
        candidates = sorted(self.heap, key=lambda one: -one.order)  # as in the library
        done = featurise(self.predictor.header.featuriser, [one.row.readable for one in candidates], workers=0)
        store = done.store
        of_library = self.kernel.with_references(store, embeddings_of(self.kernel, store))
        among = of_library.gram()
        picks = list(self._choose(candidates, store, among, number))
        rows = [self._written(i, pick, candidates[pick.place], len(files) > 1) for i, pick in enumerate(picks, 1)]
        columns = ["choice", *(["file"] if len(files) > 1 else []), *self.header, "reason"]
        with TableWriter(out, columns, {"choice": float} | self.types) as writer:
            for row in rows:
                writer.write(row, None)
        places = torch.tensor([pick.place for pick in picks])
        similar = among[places][:, places].fill_diagonal_(0)
        return Plate(
            picks,
            rows,
            columns,
            self.row_logs,
            len(candidates),
            self.measured,
            self.alike,
            self._unknown(),
            self.repeated,
            float(similar.max(1).values.mean()) if len(picks) > 1 else 0.0,
            self._replay(),
        )

    def _read(self, name: str, file: Path, smiles_column: str | None, workers: int | None) -> None:
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
            self.measured += 1
            return
        width = len(row.cells)
        *answers, mean, members_sd, kernel_sd, nearest = cells[width:-2]  # error and warning end the row
        if not (isinstance(mean, float) and isinstance(members_sd, float)):
            return
        if not (isinstance(kernel_sd, float) and isinstance(nearest, float)):
            return
        if not self.lists_all and nearest > ALIKE:
            self.alike += 1
            return
        deviation = (kernel_sd**2 + members_sd**2) ** 0.5
        score = deviation if self.goal == "accuracy" else self.sign * mean
        if not np.isfinite(score):
            return
        self.seen += 1
        one = Candidate(score, -self.seen, file, row, smiles, [*row.cells, *answers], mean, members_sd)
        if smiles in self.names:
            self.repeated += 1
        elif len(self.heap) < CANDIDATES:
            self.names.add(smiles)
            heapq.heappush(self.heap, one)
        elif one[:2] > self.heap[0][:2]:
            self.names.add(smiles)
            self.names.discard(heapq.heapreplace(self.heap, one).smiles)

    def _unknown(self) -> str | None:
        """Describe the training molecules that neither the model file lists nor the kernel has."""
        if self.lists_all or self.kernel.has_all_rows:
            return None
        training, kernel = self.predictor.header.training, f"the kernel {len(self.kernel.row):,}"
        if training is None:
            return f"the model file lists no training molecules, and {kernel}"
        return f"the model file lists {len(training):,} of {training.trained:,} training molecules, {kernel}"

    @cached_property
    def names(self) -> set[str]:
        """SMILES of the candidates."""
        return set()

    def _choose(
        self, candidates: Sequence[Candidate], store: MoleculeStore, among: torch.Tensor, number: int
    ) -> Iterator[Pick]:
        kernel, rows = self.kernel, self.kernel.measured[:, self.output]
        to_trained = torch.cat([kernel.kernel(store.batch(some)) for some in torch.arange(len(store)).split(256)])
        covariance = posterior(among, to_trained[:, rows], kernel.factors[self.output])
        spread = torch.tensor([one.members_sd for one in candidates], dtype=torch.float64) / self.scale
        variance = covariance.diagonal().clamp(min=1e-12)
        wider = ((variance + spread.square()) / variance).sqrt()  # the members' disagreement adds to each deviation
        covariance = covariance * torch.outer(wider, wider)
        if self.goal == "accuracy":
            return choose_for_accuracy(covariance, self.ridge, number)
        mean = self.sign * torch.tensor([one.mean for one in candidates], dtype=torch.float64) / self.scale
        return choose_for_best(mean, covariance, number, float(self.solved[1].max()))

    def _written(self, choice: int, pick: Pick, candidate: Candidate, with_file: bool) -> list[Cell]:
        if self.goal == "accuracy":
            gain = f"measuring it removes {pick.gain:.2%} of the variance over the library"
        else:
            gain = f"{pick.gain:.0%} chance to be better than the best measured value"
        reason = f"{gain}; uncertainty {pick.deviation:.0%} of the target's spread"
        return [choice, *([candidate.file] if with_file else []), *candidate.cells, reason]

    def _replay(self) -> Replay | None:
        kernel, y = self.solved
        return replay(kernel, y, self.ridge, self.goal) if len(y) >= LEAST_REPLAYED else None


def _files(library: Path) -> dict[str, Path]:
    """Return the tables of a folder and its subfolders by name, or the one file."""
    if not library.is_dir():
        return {library.name: library}
    found = Library(library)
    for name, reason in found.problems.items():
        raise InputError(f"{library}: {name} {reason}")
    return {name: library / name for name in found.files}
