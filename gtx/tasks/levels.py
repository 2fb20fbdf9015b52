"""Targets of atoms and bonds: their lists in cells, and the base of their tasks."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from gtx.data import CapacityStore, MoleculeStore
from gtx.data.columns import Row, column_index
from gtx.data.feature_columns import attach_lists, list_text
from gtx.errors import InputError
from gtx.molecules.graphs import ATOM_INDEX, BOND_INDEX, name_code
from gtx.tasks.metrics import Target, evaluate, masked_mean
from gtx.tasks.numbers import BAD_TARGET
from gtx.tasks.task import Task, fresh_columns

if TYPE_CHECKING:
    from gtx.data.ledger import Ledger


# --- What one gets of atoms or bonds without a model: the mean of those that look alike.


def means_of_alike(codes: np.ndarray, y: np.ndarray, train: np.ndarray) -> np.ndarray:
    """For each part the mean over the training parts with the same codes; where none has a value, over those with the
    same first code; else over all.

    Args:
        codes: integers `[R, K]`.
        y: `[R, T]`, NaN for blanks; every target has a value in training.
        train: bool `[R]`.

    Returns:
        float64 `[R, T]`.
    """
    found = np.broadcast_to(np.nanmean(y[train], axis=0), y.shape).copy()
    for columns in (codes[:, :1], codes):
        _, kind = np.unique(columns, axis=0, return_inverse=True)
        kind = kind.reshape(-1)
        for t in range(y.shape[1]):
            known = train & ~np.isnan(y[:, t])
            count = np.bincount(kind[known], minlength=kind.max(initial=-1) + 1)
            mean = np.bincount(kind[known], y[known, t], len(count)) / np.maximum(count, 1)
            found[:, t] = np.where(count[kind] > 0, mean[kind], found[:, t])
    return found


# --- Predicted lists, an item for each atom or bond of a molecule, and the same beside those of a table.


@dataclass(frozen=True)
class LevelPredictions:
    """Predictions for each part of m molecules: numbers in the targets' own units, or probabilities of classes.

    Attributes:
        mean: of each molecule float64 `[a, P]`, the mean over members.
        table: the columns that `Task.output_columns` names; each has of each molecule `[a]` numbers or texts.
        warnings: per molecule, a list of texts.
    """

    mean: Sequence[np.ndarray]
    table: Sequence[Sequence[np.ndarray]]
    warnings: list[list[str]]

    @cached_property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules of whose parts every one has numbers."""
        return np.array([np.isfinite(each).all() for each in self.mean], bool)

    def subset(self, rows: np.ndarray) -> LevelPredictions:
        """Select the molecules `rows`."""
        mean, *table = ([each[i] for i in rows] for each in (self.mean, *self.table))
        return LevelPredictions(mean, table, [self.warnings[i] for i in rows])

    def columns(self) -> list[np.ndarray]:
        """JSON lists, `[m]` each, as `Task.output_columns` names them; None for a molecule that is not `finite`."""
        return [self._texts(column) for column in self.table]

    def _texts(self, lists: Sequence[np.ndarray]) -> np.ndarray:
        texts = np.empty(len(lists), object)
        for i, (items, finite) in enumerate(zip(lists, self.finite, strict=True)):
            texts[i] = list_text(items) if finite else None
        return texts


class LevelScores:
    """Predictions beside the lists of a table, as far as it holds them.

    Args:
        task: of the model, a `gtx.tasks.levels.LevelTask`.
        columns: of the table.
    """

    def __init__(self, task: Any, columns: Sequence[str]) -> None:
        self.task = task
        self.held = {t: columns.index(name) for t, name in enumerate(task.targets) if columns.count(name) == 1}
        self.y: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []
        self.unlike = self.unread = 0

    def add(self, rows: Sequence[Row], answers: LevelPredictions) -> None:
        """Take in some rows and what was predicted for them; a list that cannot be read, or of another length, is not
        scored."""
        for row, predicted in zip(rows, answers.mean, strict=True):
            y = np.full((len(predicted), len(self.task.targets)), np.nan)
            for t, place in self.held.items():
                try:
                    values = self.task.read(t, row.cells[place])
                except InputError:
                    self.unread += 1
                    continue
                if values is not None and len(values) != len(y):
                    self.unlike += 1
                elif values is not None:
                    y[:, t] = values
            self.y.append(y)
            self.prediction.append(predicted)

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None without a single measured value."""
        if not self.held or not self.y or np.isnan(y := np.concatenate(self.y)).all():
            return None
        found = self.task.evaluate(y, np.concatenate(self.prediction))
        names = [self.task.targets[t] for t in self.held]
        return {**found, "per_target": {name: found["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """State the number of lists that were not scored."""
        one, several = self.task.items
        unlike = f"{self.unlike} lists have another length than one {one} for each {self.task.per} and are not scored"
        unread = f"{self.unread} lists hold something else than {several} that the model knows and are not scored"
        return [unlike] * bool(self.unlike) + [unread] * bool(self.unread)


def lists_of(values: np.ndarray, ptr: np.ndarray) -> list[np.ndarray]:
    """Rows of all molecules, `[R, ...]`, as one array for each: molecule m has the rows `ptr[m]` to `ptr[m + 1]`."""
    return np.split(values, ptr[1:-1])


# --- What targets of atoms and of bonds share: a list for each molecule, an item for each of its parts.


class LevelTask(Task):
    """A task of T targets of each part of a molecule. Parts are atoms or bonds.

    Every part of every molecule has the same say in the loss and in the scores; blanks have none. A subclass takes one
    file of two kinds: `gtx.tasks.levels` says which parts there are, `gtx.tasks.level_regression` and
    `gtx.tasks.level_classification` say what is learned of each.
    """

    supports: ClassVar[frozenset[str]] = frozenset({"fine-tuning"})
    held: ClassVar[str]
    """The field of a store, and of a batch, that has the targets `[R, T]`."""
    rows_each: ClassVar[int] = 1
    """Rows of a store for each atom or bond."""
    items: ClassVar[tuple[str, str]]
    """Singular and plural of one item of a list."""

    # which parts there are

    @abstractmethod
    def ptr(self, store: MoleculeStore) -> Tensor:
        """int64 `[M + 1]`: molecule m has the rows `ptr[m]` to `ptr[m + 1]` of the store's parts."""

    @abstractmethod
    def molecule(self, batch: Any) -> Tensor:
        """int64 `[R]`: the molecule of each row of a batch's parts."""

    @abstractmethod
    def kinds(self, store: MoleculeStore) -> list[str]:
        """Name the kind of each row of a store's atoms or bonds, such as its element."""

    @abstractmethod
    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Integers `[R, K]` that tell the rows of a store's parts apart, the most telling first."""

    # what is learned of each

    @property
    @abstractmethod
    def places(self) -> list[Target]:
        """Each target with its columns of the predictions `[R, P]`."""

    @abstractmethod
    def read(self, target: int, cell: str) -> np.ndarray | None:
        """The list of a cell, float64 `[a]`, NaN for blanks; None for a blank cell.

        Raises:
            InputError: what is wrong with it.
        """

    @abstractmethod
    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        """The loss of each entry, `[R, T]`, of settled outputs and of targets as `examples` has them, no blanks."""

    @abstractmethod
    def predicted(self, outputs: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
        """Split outputs `[R, members, C]` into predictions `[R, P]` and the R items of each of the `answer_kinds`."""

    @abstractmethod
    def answer_kinds(self, target: int, members: int) -> Iterable[str]:
        """Name the lists of a target's answers, after the target's own name."""

    def settled_outputs(self, output: Tensor, batch: Any) -> Tensor:
        """Outputs `[R, C]` of a batch as `elementwise` and `predicted` take them."""
        return output

    def ideal_predictions(self, y: np.ndarray) -> np.ndarray:
        """Targets `[R, T]` as predictions `[R, P]` should be, NaN for blanks."""
        return y

    # a table's cells

    def parsed(self, target: int, cell: str) -> np.ndarray | None:
        """The list of a cell; None where it is blank or none."""
        try:
            return self.read(target, cell)
        except InputError:
            return None

    def parse(self, rows: Sequence[Row], columns: Sequence[str], ledger: Ledger) -> np.ndarray:
        """The mean of each row's list: what a molecule found twice, or without a value, is known by."""
        y = np.full((len(rows), len(self.targets)), np.nan)
        places = [column_index(columns, name) for name in self.targets]
        for i, row in enumerate(rows):
            if row.error:
                continue
            found: list[np.ndarray | None] = []
            for t, place in enumerate(places):
                try:
                    found.append(self.read(t, row.cells[place]))
                except InputError as reason:
                    ledger.error(row.number, self.targets[t], row.cells[place], str(reason), category=BAD_TARGET)
                    break
            else:
                y[i] = [_mean(values) for values in found]
        return y

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]]:
        places = [column_index(columns, name) for name in self.targets]
        lists = []
        for row in rows:
            found = {} if row.error else {t: self.parsed(t, row.cells[place]) for t, place in enumerate(places)}
            lists.append({self.targets[t]: values for t, values in found.items() if values is not None})
        return lists

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        y, wrong = attach_lists(lists, self.targets, self.ptr(store).numpy(), self.per, self.items)
        return replace(store, **{self.held: torch.from_numpy(y)}), wrong

    # training

    def values(self, store: MoleculeStore) -> Tensor:
        """The targets `[R, T]` of a store.

        Raises:
            InputError: it has none.
        """
        if (found := getattr(store, self.held)) is None:
            raise InputError(f"these molecules have no targets of {self.per}s: expected a store with {self.held}")
        return found

    def known_molecules(self, store: MoleculeStore) -> Tensor:
        known = (~self.values(store).isnan()).any(1)
        each = torch.zeros(len(store), dtype=torch.long, device=store.device)
        return each.index_add(0, self.owner(store), known.long()) > 0

    def forward(self, model: nn.Module, batch: Any) -> Tensor:
        return self.settled_outputs(model(batch), batch)

    def training_loss(self, output: Tensor, batch: Any) -> Tensor:
        weights = getattr(batch, "weights", None)
        say = None if weights is None else weights[self.molecule(batch)][:, None]
        return masked_mean(self.elementwise, output, getattr(batch, self.held), say)

    def share(self, examples: Any) -> Tensor:
        """The number of values, or the sum of their weights."""
        if isinstance(examples, CapacityStore):
            examples = examples.store
        known = ~getattr(examples, self.held).isnan()
        if getattr(examples, "weights", None) is None:
            return known.sum()
        owner = self.owner(examples) if isinstance(examples, MoleculeStore) else self.molecule(examples)
        return (known * examples.weights[owner][:, None]).sum()

    @abstractmethod
    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Compute the sums over the atoms or bonds of a molecule for validation, `[R, T]` each, for targets without
        blanks: the loss first."""

    @abstractmethod
    def validation_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        """The scores of an epoch, of the means over all parts of `measures`, `[T]` each, NaN where nothing is known.
        `val_loss` is known already; `val_score` is that, unless it is said."""

    def validation_outputs(self, output: Tensor, batch: Any) -> Tensor:
        """Per molecule and target, sums over its parts: how many are known, and `measures`."""
        target = getattr(batch, self.held)
        known = ~target.isnan()
        target, output = target.nan_to_num(), output.float()
        sums = [torch.ones_like(target), *self.measures(output, target)]
        each = torch.cat([each * known for each in sums], 1)
        return each.new_zeros(batch.num_graphs, self.validation_channels).index_add(0, self.molecule(batch), each)

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        weights = torch.ones(len(val), 1).double() if val.weights is None else val.weights.cpu()[:, None].double()

        def scores(kept: Tensor) -> dict[str, float]:
            count, loss, *sums = kept.double().cpu().unflatten(1, (-1, len(self.targets))).unbind(1)
            mean_loss = float((loss * weights).sum() / (count * weights).sum().clamp(min=1e-300))
            means = [each.sum(0) / count.sum(0) for each in sums]
            return {"val_loss": mean_loss, "val_score": mean_loss} | self.validation_scores(means, val)

        return scores

    # prediction

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        return fresh_columns(
            taken,
            ((f"{name}_{kind}", str) for t, name in enumerate(self.targets) for kind in self.answer_kinds(t, members)),
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
        """Per molecule, what there is to warn of in its answer."""
        return [[] for _ in range(len(store))]

    # scores and report

    def evaluate(self, y: np.ndarray, prediction: np.ndarray) -> dict[str, Any]:
        """Score predictions `[R, P]` of parts against what was measured `[R, T]`, NaN for blanks."""
        return evaluate(y, prediction, self.metrics, self.places)

    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: LevelPredictions, rows: np.ndarray
    ) -> dict[str, Any]:
        joined = [np.empty((0, self.places[-1].columns.stop)), *answers.subset(rows).mean]
        return self.evaluate(self.truth(store.subset(rows)), np.concatenate(joined))

    def baselines(self, store: MoleculeStore, split: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        """The mean of the training parts that have the same codes, see `codes` and `means_of_alike`."""
        y, owner = self.truth(store), self.owner(store).numpy()[:: self.rows_each]
        of = {part: np.isin(owner, rows) for part, rows in split.items()}
        found = means_of_alike(self.codes(store)[:: self.rows_each], self.ideal_predictions(y), of["train"])
        return {"alike": {part: self.evaluate(y[rows], found[rows]) for part, rows in of.items()}}

    def scores(self, columns: Sequence[str]) -> LevelScores:
        return LevelScores(self, columns)

    def truth(self, store: MoleculeStore) -> np.ndarray:
        """The targets of a store's parts, each once."""
        return self.values(store).cpu().numpy()[:: self.rows_each]

    def owner(self, store: MoleculeStore) -> Tensor:
        """int64 `[R]`: the molecule of each row of a store's parts."""
        return torch.repeat_interleave(torch.arange(len(store), device=store.device), self.ptr(store).diff())


def _mean(values: np.ndarray | None) -> float:
    """Average the known values, independent of the order of the atoms; NaN if none is known."""
    known = np.empty(0) if values is None else np.sort(values[~np.isnan(values)])
    return known.mean() if len(known) else np.nan


# --- Which parts of a molecule have targets: its atoms, or its bonds.


class OfAtoms(LevelTask):
    """The atoms of the graph, in the order in which the SMILES or the mol block has them."""

    per: ClassVar[str] = "atom"
    held: ClassVar[str] = "atom_y"

    def ptr(self, store: MoleculeStore) -> Tensor:
        return store.atom_ptr

    def molecule(self, batch: Any) -> Tensor:
        return batch.batch

    def kinds(self, store: MoleculeStore) -> list[str]:
        column = ATOM_INDEX["element"]
        return [name_code("atom", column, code).removeprefix("element ") for code in store.atoms[:, column].tolist()]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        return store.atoms.numpy()


class OfBonds(LevelTask):
    """The bonds between atoms of the graph, in RDKit's order of bonds.

    A bond has no direction: its outputs are a function of the sum and the difference of its atoms' states
    (`gtx.nn.BondReadout`).
    """

    per: ClassVar[str] = "bond"
    held: ClassVar[str] = "bond_y"
    rows_each: ClassVar[int] = 2

    def ptr(self, store: MoleculeStore) -> Tensor:
        return store.bond_ptr

    def molecule(self, batch: Any) -> Tensor:
        return batch.batch[batch.edge_index[0]]

    def kinds(self, store: MoleculeStore) -> list[str]:
        column = BOND_INDEX["type"]
        return [name_code("bond", column, code) for code in store.bond_codes[:, column].tolist()]

    def codes(self, store: MoleculeStore) -> np.ndarray:
        """Return the codes of a bond and of its two atoms in either order: of each column the smaller code, then the
        larger."""
        ends = store.bonds.numpy() + store.atom_ptr.numpy()[self.owner(store).numpy()]
        one, other = (store.atoms.numpy()[end] for end in ends)
        return np.concatenate([store.bond_codes.numpy(), np.minimum(one, other), np.maximum(one, other)], axis=1)
