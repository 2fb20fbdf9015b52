"""Base of tasks of atoms and bonds, whose cells are lists."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.data import MoleculeStore
from gtx.data.batches import ConstantShapeStore
from gtx.data.columns import Row, find_column, find_columns
from gtx.data.feature_columns import attach_lists, list_text
from gtx.data.row_log import plural
from gtx.molecules.graphs import ATOM_INDEX, BOND_INDEX, name_code
from gtx.tasks.metrics import Target, evaluate, masked_mean
from gtx.tasks.numbers import BAD_TARGET
from gtx.tasks.task import ScoredCells, Task, count_lines, fresh_columns

if TYPE_CHECKING:
    from gtx.data.row_log import RowLog


# --- A baseline without a model: the mean of atoms or bonds that look alike.


def means_of_alike(codes: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """Average the training rows with the same codes; if none has a value, those with the same first code; else all.

    Args:
        codes: integers `[R, K]`.
        y: `[R, T]`, NaN for blanks; every target has a value in training.
        train: bool `[R]`.

    Returns:
        float64 `[R, T]`.
    """
    means = np.broadcast_to(np.nanmean(y[train], axis=0), y.shape).copy()
    for columns in (codes[:, :1], codes):
        _, group = np.unique(columns, axis=0, return_inverse=True)
        group = group.reshape(-1)
        for t in range(y.shape[1]):
            rows = train & ~np.isnan(y[:, t])
            count = np.bincount(group[rows], minlength=group.max(initial=-1) + 1)
            mean = np.bincount(group[rows], y[rows, t], len(count)) / np.maximum(count, 1)
            means[:, t] = np.where(count[group] > 0, mean[group], means[:, t])
    return means


# --- Predicted lists, an item for each atom or bond of a molecule.


@dataclass(frozen=True)
class LevelPredictions:
    """Predictions for each atom or bond of m molecules: numbers in the targets' own units, or probabilities.

    Attributes:
        mean: for each molecule float64 `[a, P]`, the mean over members.
        table: the columns that `Task.output_columns` names, each with `[a]` numbers or texts for each molecule.
        warnings: per molecule, a list of texts.
    """

    mean: Sequence[np.ndarray]
    table: Sequence[Sequence[np.ndarray]]
    warnings: list[list[str]]

    @cached_property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with finite numbers for all their atoms or bonds."""
        return np.array([np.isfinite(each).all() for each in self.mean], bool)

    def subset(self, rows: np.ndarray) -> LevelPredictions:
        """Select the molecules `rows`."""
        mean, *table = ([each[i] for i in rows] for each in (self.mean, *self.table))
        return LevelPredictions(mean, table, [self.warnings[i] for i in rows])

    def columns(self) -> list[np.ndarray]:
        """Return JSON lists, `[m]` each, as `Task.output_columns` names them; None if not `finite`."""
        return [self._texts(column) for column in self.table]

    def _texts(self, lists: Sequence[np.ndarray]) -> np.ndarray:
        texts = np.empty(len(lists), object)
        for i, (items, finite) in enumerate(zip(lists, self.finite, strict=True)):
            texts[i] = list_text(items) if finite else None
        return texts


class LevelScores:
    """Collection of predictions and, if the table has measured values, of the measured lists.

    Args:
        task: task of the model.
        columns: columns of the table.
    """

    def __init__(self, task: LevelTask, columns: Sequence[str]) -> None:
        self.task = task
        self.position: dict[int, int] = find_columns(columns, task.targets)
        self.counts: dict[int, ScoredCells] = {t: ScoredCells(task.targets[t]) for t in self.position}
        self.y: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []

    def add(self, rows: Sequence[Row], answers: LevelPredictions) -> None:
        """Add some rows and their predictions; a list that cannot be read, or of another length, is not scored."""
        for row, predicted in zip(rows, answers.mean, strict=True):
            y = np.full((len(predicted), len(self.task.targets)), np.nan)
            for t, position in self.position.items():
                count, cell = self.counts[t], row.cells[position]
                count.rows += 1
                try:
                    values = self.task.read(t, cell)
                except InputError:
                    count.leave_out(row, cell, self.task.unread_words(cell))
                    continue
                if values is not None and len(values) != len(y):
                    (one, _), per = self.task.items, self.task.per
                    count.leave_out(row, cell, f"a list of another length than one {one} for each {per}")
                elif values is not None:
                    y[:, t] = values
                    count.scored += int(not np.isnan(values).all())
            self.y.append(y)
            self.prediction.append(predicted)

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None without a single measured value."""
        if not self.position or not self.y or np.isnan(y := np.concatenate(self.y)).all():
            return None
        scores = self.task.evaluate(y, np.concatenate(self.prediction))
        names = [self.task.targets[t] for t in self.position]
        return {**scores, "per_target": {name: scores["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """State how many lists of each target are not scored, and why."""
        return count_lines(self.counts.values())


def lists_of(values: np.ndarray, ptr: np.ndarray) -> list[np.ndarray]:
    """Split the rows of all molecules, `[R, ...]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]`."""
    return np.split(values, ptr[1:-1]) if len(ptr) > 1 else []  # numpy makes one part of none


# --- The base of tasks of atoms and bonds: a list for each molecule, an item for each atom or bond.


class LevelTask(Task):
    """Task of predicting T targets for each atom, or for each bond, of a molecule.

    Every atom or bond has the same weight in the loss and in the scores; blanks are left out. The subclasses in
    `gtx.tasks.atoms_and_bonds` combine a level, `OfAtoms` or `OfBonds`, with regression or classification.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"fine-tuning"})
    per: ClassVar[Literal["atom", "bond"]]
    store_field: ClassVar[str]
    """Field of a store, and of a batch, with the targets `[R, T]`."""
    rows_each: ClassVar[int] = 1
    """Rows of a store for each atom or bond."""
    items: ClassVar[tuple[str, str]]
    """Singular and plural of one item of a list."""

    # the level

    @abstractmethod
    def ptr(self, store: MoleculeStore) -> Tensor:
        """Return int64 `[M + 1]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]` of the store's atoms or bonds."""

    @abstractmethod
    def with_level_targets(self, store: MoleculeStore, y: Tensor) -> MoleculeStore:
        """Return a store with targets `[R, T]` of its atoms or bonds."""

    @abstractmethod
    def molecule(self, batch: Any) -> Tensor:
        """Return the molecule of each row of a batch, int64 `[R]`."""

    @abstractmethod
    def type_names(self, store: MoleculeStore) -> list[str]:
        """Name the type of each row of a store, such as its element."""

    @abstractmethod
    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Return integer features `[R, K]` of the rows of a store, the most informative first."""

    # what is learned

    @property
    @abstractmethod
    def places(self) -> list[Target]:
        """Each target with its columns of the predictions `[R, P]`."""

    @abstractmethod
    def read(self, target: int, cell: str) -> np.ndarray | None:
        """Parse the list of a cell, float64 `[a]`, NaN for blanks; None for a blank cell.

        Raises:
            InputError: it is no such list.
        """

    def unread_words(self, cell: str) -> str:
        """Say what a cell has that `read` refuses, after "have"."""
        return f"no list of {self.items[1]}"

    @abstractmethod
    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of each entry, `[R, T]`, from settled outputs and targets of `examples`, without blanks."""

    @abstractmethod
    def predicted(self, outputs: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
        """Convert outputs `[R, members, C]` to predictions `[R, P]` and the R items of each of `answer_suffixes`."""

    @abstractmethod
    def answer_suffixes(self, target: int, members: int) -> Iterable[str]:
        """Name the lists of a target's answers, after the target's own name."""

    def settled_outputs(self, output: Tensor, batch: Any) -> Tensor:
        """Convert outputs `[R, C]` of a batch for `elementwise` and `predicted`; by default they stay as they are."""
        return output

    def ideal_predictions(self, y: np.ndarray) -> np.ndarray:
        """Convert targets `[R, T]` to ideal predictions `[R, P]`, NaN for blanks."""
        return y

    # a table's cells

    def bounds_in_list(self, cell: str) -> int:
        """Count the bounds in the list of a cell, such as `>1`, which are read as blanks."""
        return 0

    def parsed(self, target: int, cell: str) -> np.ndarray | None:
        """Parse the list of a cell; None if it is blank or no list."""
        try:
            return self.read(target, cell)
        except InputError:
            return None

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        """Compute the mean of each row's list, by which duplicates and blank rows are recognised."""
        y = np.full((len(rows), len(self.targets)), np.nan)
        positions = [find_column(columns, name) for name in self.targets]
        for i, row in enumerate(rows):
            if row.error:
                continue
            lists: list[np.ndarray | None] = []
            for t, position in enumerate(positions):
                try:
                    lists.append(self.read(t, row.cells[position]))
                    if number := self.bounds_in_list(row.cells[position]):
                        words = f"left out as blank: of {self.per}s only exact values are learned"
                        row_log.warn(
                            row.number, self.targets[t], row.cells[position], f"{plural(number, 'bound')} {words}"
                        )
                except InputError as reason:
                    row_log.error(row.number, self.targets[t], row.cells[position], str(reason), category=BAD_TARGET)
                    break
            else:
                y[i] = [_mean(values) for values in lists]
        return y

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]]:
        positions = [find_column(columns, name) for name in self.targets]
        lists = []
        for row in rows:
            by_target = (
                {} if row.error else {t: self.parsed(t, row.cells[position]) for t, position in enumerate(positions)}
            )
            lists.append({self.targets[t]: values for t, values in by_target.items() if values is not None})
        return lists

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        y, wrong = attach_lists(lists, self.targets, self.ptr(store).numpy(), self.per, self.items)
        return self.with_level_targets(store, torch.from_numpy(y)), wrong

    # training

    def values(self, store: MoleculeStore) -> Tensor:
        """Return the targets `[R, T]` of a store.

        Raises:
            InputError: it has none.
        """
        y: Tensor | None = getattr(store, self.store_field)
        if y is None:
            raise InputError(
                f"these molecules have no targets of {self.per}s: expected a store with {self.store_field}"
            )
        return y

    def known_molecules(self, store: MoleculeStore) -> Tensor:
        measured = (~self.values(store).isnan()).any(1)
        each = torch.zeros(len(store), dtype=torch.long, device=store.device)
        return each.index_add(0, self.owner(store), measured.long()) > 0

    def forward(self, model: nn.Module, batch: Any) -> Tensor:
        return self.settled_outputs(model(batch), batch)

    def training_loss(self, output: Tensor, batch: Any) -> Tensor:
        weights = getattr(batch, "weights", None)
        weights = None if weights is None else weights[self.molecule(batch)][:, None]
        return masked_mean(self.elementwise, output, getattr(batch, self.store_field), weights)

    def share(self, examples: Any) -> Tensor:
        """Return the number of values, or the sum of their weights."""
        if isinstance(examples, ConstantShapeStore):
            examples = examples.store
        measured = ~getattr(examples, self.store_field).isnan()
        if getattr(examples, "weights", None) is None:
            return measured.sum()
        owner = self.owner(examples) if isinstance(examples, MoleculeStore) else self.molecule(examples)
        return (measured * examples.weights[owner][:, None]).sum()

    @abstractmethod
    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Compute what validation averages over atoms or bonds, `[R, T]` each, the loss first; no target is blank."""

    @abstractmethod
    def validation_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        """Compute the scores of an epoch from the means of `measures`, `[T]` each, NaN without values.

        `val_loss` is there already; `val_score` is equal to it by default.
        """

    def validation_outputs(self, output: Tensor, batch: Any) -> Tensor:
        """Sum over the atoms or bonds of each molecule, per target: the number of values, and `measures`."""
        target = getattr(batch, self.store_field)
        measured = ~target.isnan()
        target, output = target.nan_to_num(), output.float()
        sums = [torch.ones_like(target), *self.measures(output, target)]
        each = torch.cat([each * measured for each in sums], 1)
        return each.new_zeros(batch.num_graphs, self.validation_channels).index_add(0, self.molecule(batch), each)

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        weights = torch.ones(len(val), 1).double() if val.weights is None else val.weights.cpu()[:, None].double()

        def scores(outputs: Tensor) -> dict[str, float]:
            count, loss, *sums = outputs.double().cpu().unflatten(1, (-1, len(self.targets))).unbind(1)
            mean_loss = float((loss * weights).sum() / (count * weights).sum().clamp(min=1e-300))
            means = [each.sum(0) / count.sum(0) for each in sums]
            return {"val_loss": mean_loss, "val_score": mean_loss} | self.validation_scores(means, val)

        return scores

    # prediction

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        return fresh_columns(
            taken,
            (
                (f"{name}_{suffix}", str)
                for t, name in enumerate(self.targets)
                for suffix in self.answer_suffixes(t, members)
            ),
        )

    def predict(self, members: Sequence[nn.Module], batch: Any) -> list[Tensor]:
        """Compute the outputs of each molecule's atoms or bonds, float64 `[a, members, C]`."""
        outputs = [self.settled_outputs(network(batch).double(), batch) for network in members]
        sizes = torch.bincount(self.molecule(batch), minlength=batch.num_graphs)
        parts = torch.stack(outputs, dim=1).cpu().split(sizes.tolist())
        return [part[:: self.rows_each] for part in parts]

    def decode(self, outputs: Sequence[Tensor], store: MoleculeStore) -> LevelPredictions:
        ptr = np.cumsum([0, *map(len, outputs)])
        joined = torch.cat(list(outputs)) if outputs else torch.zeros(0, 1, self.out_channels, dtype=torch.float64)
        prediction, table = self.predicted(joined)
        return LevelPredictions(
            lists_of(prediction, ptr), [lists_of(column, ptr) for column in table], self.prediction_warnings(store)
        )

    def prediction_warnings(self, store: MoleculeStore) -> list[list[str]]:
        """Return warnings about each molecule's answer."""
        return [[] for _ in range(len(store))]

    # scores and report

    def evaluate(self, y: np.ndarray, prediction: np.ndarray) -> dict[str, Any]:
        """Score predictions `[R, P]` by measured values `[R, T]`, NaN for blanks."""
        return evaluate(y, prediction, self.metrics, self.places)

    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: LevelPredictions, rows: np.ndarray
    ) -> dict[str, Any]:
        joined = [np.empty((0, self.places[-1].columns.stop)), *answers.subset(rows).mean]
        return self.evaluate(self.truth(store.subset(rows)), np.concatenate(joined))

    def baselines(self, store: MoleculeStore, split: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        """Score the mean of the training rows with the same codes, see `codes` and `means_of_alike`."""
        y, owner = self.truth(store), self.owner(store).numpy()[:: self.rows_each]
        of = {part: np.isin(owner, rows) for part, rows in split.items()}
        means = means_of_alike(self.codes(store)[:: self.rows_each], self.ideal_predictions(y), of["train"])
        return {"alike": {part: self.evaluate(y[rows], means[rows]) for part, rows in of.items()}}

    def scores(self, columns: Sequence[str]) -> LevelScores:
        return LevelScores(self, columns)

    def truth(self, store: MoleculeStore) -> np.ndarray:
        """Return the targets of a store, each atom or bond once."""
        return self.values(store).cpu().numpy()[:: self.rows_each]

    def owner(self, store: MoleculeStore) -> Tensor:
        """Return the molecule of each row of a store, int64 `[R]`."""
        return torch.repeat_interleave(torch.arange(len(store), device=store.device), self.ptr(store).diff())


def _mean(values: np.ndarray | None) -> float:
    """Average the known values, independent of the order of the atoms; NaN if none is known."""
    measured = np.empty(0) if values is None else np.sort(values[~np.isnan(values)])
    return measured.mean() if len(measured) else np.nan


# --- The two levels: atoms and bonds.


class OfAtoms(LevelTask):
    """Level of the atoms of the graph, in the order of the SMILES or the mol block."""

    per: ClassVar[Literal["atom"]] = "atom"
    store_field: ClassVar[str] = "atom_y"

    def ptr(self, store: MoleculeStore) -> Tensor:
        return store.atom_ptr

    def with_level_targets(self, store: MoleculeStore, y: Tensor) -> MoleculeStore:
        return replace(store, atom_y=y)

    def molecule(self, batch: Any) -> Tensor:
        return batch.batch

    def type_names(self, store: MoleculeStore) -> list[str]:
        column = ATOM_INDEX["element"]
        return [name_code("atom", column, code).removeprefix("element ") for code in store.atoms[:, column].tolist()]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        return store.atoms.numpy()


class OfBonds(LevelTask):
    """Level of the bonds between atoms of the graph, in RDKit's order of bonds.

    A bond has no direction: its outputs are a function of the sum and the difference of its atoms' states
    (`gtx.nn.bonds.BondVectorFromAtoms`).
    """

    per: ClassVar[Literal["bond"]] = "bond"
    store_field: ClassVar[str] = "bond_y"
    rows_each: ClassVar[int] = 2

    def ptr(self, store: MoleculeStore) -> Tensor:
        return store.bond_ptr

    def with_level_targets(self, store: MoleculeStore, y: Tensor) -> MoleculeStore:
        return replace(store, bond_y=y)

    def molecule(self, batch: Any) -> Tensor:
        return batch.batch[batch.edge_index[0]]

    def type_names(self, store: MoleculeStore) -> list[str]:
        column = BOND_INDEX["type"]
        return [name_code("bond", column, code) for code in store.bond_codes[:, column].tolist()]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Return the codes of a bond and of its two atoms, independent of their order: the smaller codes, then the
        larger.
        """
        ends = store.bonds.numpy() + store.atom_ptr.numpy()[self.owner(store).numpy()]
        one, other = (store.atoms.numpy()[end] for end in ends)
        return np.concatenate([store.bond_codes.numpy(), np.minimum(one, other), np.maximum(one, other)], axis=1)
