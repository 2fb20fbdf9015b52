"""Base of tasks: the object that defines what a model learns, and the predictions it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError, printable
from gtx.data.columns import Row, find_column
from gtx.data.table_writer import find_unused_column_name
from gtx.schema import ListOf, Record, text
from gtx.settings.options import chosen
from gtx.tasks.metrics import Metric

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, MoleculeStore
    from gtx.data.row_log import InputFile, RowLog


# --- Predicted numbers.


@dataclass(frozen=True)
class Predictions:
    """Predictions for m molecules: values in the targets' units, or class probabilities, with any uncertainty.

    Attributes:
        mean: mean prediction over ensemble members, float64 `[m, P]`, with a column per target, or per class of each
            target.
        std: standard deviation from a method of uncertainty, or over ensemble members, float64 `[m, P]`; None for a
            single member without a method.
        low, high: limits of the prediction interval, float64 `[m, T]`, NaN for a target without an interval; or None.
        reach: widths of the interval below and above the mean, up to a factor per target, float64 `[m, T]` each; None
            for intervals of constant width.
        warnings: list of warnings for each molecule.
        distance: distance to the nearest training molecule (1 - similarity), float64 `[m]`, if the task uses the
            distance; or None.
        members: number of networks whose predictions were averaged.
        vacuity: lack of evidence for the classes of each target, float64 `[m, T]`, from 0 to 1, for evidential
            classification; or None.
        table: values of the columns that `Task.output_columns` names, `[m]` each.
    """

    mean: np.ndarray
    std: np.ndarray | None
    low: np.ndarray | None
    high: np.ndarray | None
    warnings: list[list[str]]
    table: Sequence[np.ndarray] = ()
    reach: tuple[np.ndarray, np.ndarray] | None = None
    distance: np.ndarray | None = None
    vacuity: np.ndarray | None = None
    members: int = 1

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with a number for every target."""
        return np.isfinite(self.mean).all(axis=1)

    def subset(self, rows: np.ndarray) -> Predictions:
        """Select the molecules `rows`."""
        return Predictions(
            self.mean[rows],
            _rows(self.std, rows),
            _rows(self.low, rows),
            _rows(self.high, rows),
            [self.warnings[i] for i in rows],
            table=[column[rows] for column in self.table],
            reach=None if self.reach is None else (self.reach[0][rows], self.reach[1][rows]),
            distance=_rows(self.distance, rows),
            vacuity=_rows(self.vacuity, rows),
            members=self.members,
        )

    def columns(self) -> list[np.ndarray]:
        """Return the columns that `Task.output_columns` names; NaN or None for a molecule that is not `finite`."""
        blanks = (np.array(np.nan if column.dtype.kind == "f" else None) for column in self.table)
        return [np.where(self.finite, column, blank) for column, blank in zip(self.table, blanks, strict=True)]


def _rows(values: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if values is None else values[rows]


# --- What gtx can do with a task, beside training and predicting.

CAPABILITIES = {
    "benchmark": "gtx benchmark, which compares models of numbers and classes of molecules",
    "components": "several molecules a row: leave out --smiles-columns",
    "explain": "explanations, which are of numbers and classes of molecules",
    "fine-tuning": "training that starts from another model (--from)",
    "outliers": "warnings of outliers among its targets",
    "tune": "gtx tune, which compares models of numbers and classes of molecules",
}
"""Capabilities that a task may declare in `Task.supports`, each as an error message names it."""


class Capable(Protocol):
    """A task, or a `gtx.tasks.inferred.InferredTask` in place of a task."""

    @property
    def name(self) -> str: ...
    @property
    def supports(self) -> frozenset[str]: ...


def check_task_capability(task: Capable | None, capability: str) -> None:
    """Raise InputError unless a task supports a capability, such as "tune" or "explain".

    None means a task of numbers or classes that is chosen from the table.

    Raises:
        InputError: it does not.
    """
    if task is not None and capability not in task.supports:
        raise InputError(f"task {task.name} does not support {CAPABILITIES[capability]}")


# --- The interface of tasks.


class Answers(Protocol):
    """Answers of a model for m molecules."""

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with an answer."""

    @property
    def warnings(self) -> list[list[str]]:
        """Texts per molecule."""

    def subset(self, rows: np.ndarray) -> Answers:
        """Select the molecules `rows`."""

    def columns(self) -> list[np.ndarray]:
        """Return the columns that `Task.output_columns` names, `[m]` each; NaN or None without an answer."""


class Scores(Protocol):
    """Collection of answers and true values while a table is read."""

    def add(self, rows: Sequence[Row], answers: Any) -> None:
        """Add some rows and their answers."""

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None if the table has no true values."""

    def notes(self) -> list[str]:
        """Return notes about all answers, a line each."""


@dataclass
class ScoredCells:
    """Count of the cells of a target that are scored, and of the others by reason, with the first of each.

    Attributes:
        target: name of the target.
        rows: number of rows with a prediction.
        scored: number of cells with a value.
        bounds: number of cells with a bound, which is scored apart.
        others: number of cells that cannot be read, by reason, and the first of them.
    """

    target: str
    rows: int = 0
    scored: int = 0
    bounds: int = 0
    others: dict[str, tuple[int, str]] = field(default_factory=dict)

    def leave_out(self, row: Row, cell: str, reason: str) -> None:
        """Count a cell that is not scored; the reason is what it has in place of a value."""
        number, first = self.others.get(reason, (0, f"row {row.number}: '{printable(cell, 40)}'"))
        self.others[reason] = number + 1, first

    def line(self) -> str | None:
        """State how many cells are scored and why the others are not; None if all can be read."""
        if not self.others:
            return None
        words = [
            f"{number} {'has' if number == 1 else 'have'} {reason}, first {first}"
            for reason, (number, first) in self.others.items()
        ]
        blank = self.rows - self.scored - self.bounds - sum(number for number, _ in self.others.values())
        for number, what in ((self.bounds, "a bound"), (blank, "blank")):
            words += [f"{number} {'is' if number == 1 else 'are'} {what}"] if number else []
        return f"{self.target}: scored on {self.scored} of {self.rows} rows; {'; '.join(words)}"


MOST_LINES = 10


def count_lines(counts: Iterable[ScoredCells]) -> list[str]:
    """Return the lines of the first few targets that have cells that are not scored."""
    lines = [line for line in (count.line() for count in counts) if line is not None]
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[:MOST_LINES], f"{len(lines) - MOST_LINES} more targets have cells that are not scored"]


@dataclass(frozen=True)
class Task(ABC):
    """Definition of what a model predicts: how cells are read, the loss, the metrics, and the meaning of outputs.

    A task is immutable: methods that fit something return a new task.

    The methods of a task are called in this order: `infer_from_table` and `parse` read the cells of a table, `fitted`
    fits scales or classes to the training rows, `examples`, `forward`, `training_loss` and `validation` serve training,
    `predict` and `decode` turn outputs into answers, `calibrated` fits intervals to the validation rows, `score`
    scores, and `to_dict` makes the entry of a model file.

    Attributes:
        targets: names of the target columns.
        name: name of the task on the command line and in model files.
        epochs: default number of passes over the training molecules.
        metrics: metrics by name, the main metric first.
        discrete: whether targets are classes.
        writes: whether the model generates sequences.
        network: name of the model, for a task that has one of its own.
        supports: capabilities that work with the task (keys of `CAPABILITIES`), see `check_task_capability`.
        unsaved: fields that are used only in training and not stored in a model file.
        page: module with a function `write_run_report`, for tasks with a separate report.
        per: level of the predictions, as for `gtx.models.GraphTransformer`: "molecule", "atom" or "bond".
        also: further levels and their numbers of outputs, as for `gtx.models.GraphTransformer`.
    """

    targets: tuple[str, ...]

    name: ClassVar[str]
    epochs: ClassVar[int] = 60
    metrics: ClassVar[dict[str, Metric]]
    discrete: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    network: ClassVar[str | None] = None
    supports: ClassVar[frozenset[str]] = frozenset({"components", "fine-tuning"})
    unsaved: ClassVar[frozenset[str]] = frozenset()
    page: ClassVar[str | None] = None
    per: ClassVar[str] = "molecule"
    also: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        names = (self.targets,) if isinstance(self.targets, str) else tuple(self.targets)
        ListOf(text(), least=1).check(names, "targets")
        object.__setattr__(self, "targets", names)
        if repeated := [name for i, name in enumerate(names) if name in names[:i]]:
            raise InputError(f"target column {repeated[0]!r} is named twice")

    # a table's cells

    def infer_from_table(self, files: Sequence[InputFile]) -> Task:
        """Return the task with values that depend on the cells of the tables, such as the names of classes.

        Raises:
            InputError: a column is missing or cannot be learned.
        """
        return self

    def with_relation(self, column: str) -> Task:
        """Return the task whose values are read with the relation in another column, such as `>`.

        Raises:
            InputError: the task has no bounds.
        """
        raise InputError(
            f"--relation-column: values of the task {self.name} have no bounds; it is for --task regression"
        )

    def target_cells(self, target: int, rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
        """Return the cells of a target; blank for broken rows.

        Raises:
            InputError: there is no such column, or several.
        """
        place = find_column(columns, self.targets[target])
        return ["" if row.error else row.cells[place] for row in rows]

    def reading(self, features: FeatureColumns | None) -> Self:
        """Return the task of a model that also reads some feature columns.

        Raises:
            InputError: the task needs another column.
        """
        return self

    @abstractmethod
    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        """Parse the targets of all rows, float64 `[n, T]`, NaN for blanks; a wrong cell is an error of its row."""

    def parse_bounds(self, rows: Sequence[Row], columns: Sequence[str]) -> np.ndarray | None:
        """Parse bounds of values that were not measured, float64 `[n, 2T]`: T lower bounds, then T upper bounds.

        NaN where there is no bound; None if the task has no bounds.
        """
        return None

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]] | None:
        """Parse the lists of each row by target, float64 `[a]`, if targets are of atoms or bonds; else None."""
        return None

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        """Add the lists of `parse_lists` to the molecules of a store.

        Returns:
            The store, and for each molecule whose list does not fit, by its index, the target and the reason.
        """
        raise NotImplementedError

    # training

    @property
    @abstractmethod
    def out_channels(self) -> int:
        """Number of the model's outputs per molecule."""

    @property
    def num_predictions(self) -> int:
        """Number of outputs, from the first, that are predictions and can be blended with a kernel's."""
        return self.out_channels

    @property
    def prediction_names(self) -> list[str]:
        """Names of what is predicted."""
        return list(self.targets)

    @property
    def validation_channels(self) -> int:
        """K, numbers per molecule that validation collects, see `validation_outputs`."""
        return self.out_channels

    def fitted(self, train: MoleculeStore) -> Self:
        """Fit scales or classes to the training rows, before the network is trained; a fitted task stays as it is.

        Raises:
            InputError: it cannot be learned from these rows.
        """
        return self

    def adopting(self, other: Task) -> Self:
        """Take the fitted scales or classes of the same targets from another task, for fine-tuning; both tasks are
        `fitted`.

        Raises:
            InputError: the other task contradicts the table, for example by other classes.
        """
        return self

    def outputs_of(self, other: Task) -> list[int] | None:
        """Map each output to its index in the model of another task, -1 for a new target.

        The result is None if no target is shared or all targets are shared; then only shapes are compared.
        """
        return None

    def regressands(self, store: MoleculeStore) -> Tensor | None:
        """Return targets for a least-squares fit, float64 `[M, P]`, NaN for blanks.

        The targets are the ideal outputs, or indicators of the classes. The result is None if least squares is not
        suitable; then no kernel model is blended with the network.
        """
        return None

    def labelled(self, store: MoleculeStore) -> MoleculeStore:
        """Select the molecules with a value or a bound, and a weight above 0 if there are weights."""
        rows = self.known_molecules(store)
        if store.weights is not None:
            rows = rows & (store.weights > 0)
        return store.subset(rows.nonzero().flatten())

    def known_molecules(self, store: MoleculeStore) -> Tensor:
        """Find the molecules with a value or a bound, bool `[M]`."""
        rows = (~targets_of(store).isnan()).any(1)
        return rows if store.bounds is None else rows | (~store.bounds.isnan()).any(1)

    def examples(self, store: MoleculeStore) -> Any:
        """Return the examples from which batches are made, with targets scaled for the loss."""
        return store

    def unscorable(self, store: MoleculeStore) -> dict[int, str]:
        """Return the reason why a molecule's target cannot be scored, by index of the molecule."""
        return {}

    @property
    def reads_similarity(self) -> bool:
        """True if `decode` needs the distance to the nearest training molecule, 1 - similarity, after all outputs."""
        return False

    def check(self, model: nn.Module, members: int) -> None:  # noqa: B027 -- most tasks take any
        """Raise an `InputError` unless a model, before it is trained, and the number of its members suit the task."""

    def forward(self, model: nn.Module, batch: Any) -> Any:
        """Compute the output of the model for a batch of `examples`."""
        return model(batch)

    @abstractmethod
    def training_loss(self, output: Any, batch: Any) -> Tensor:
        """Compute the mean loss of a batch."""

    def share(self, examples: Any) -> int | Tensor:
        """Return the weight of a batch in an epoch, such as its number of molecules; of all `examples` likewise."""
        return getattr(examples, "molecules", examples.num_graphs)

    def validation_outputs(self, output: Any, batch: Any) -> Tensor:
        """Return the outputs of a batch that validation collects, `[B, K]`."""
        return output.float()

    @abstractmethod
    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        """Return a function from the `validation_outputs` of all validation rows, `[n, K]`, to the scores of an epoch.

        The names of the scores start with `val_`; the best epoch has the lowest `val_score`.
        """

    @property
    def validated(self) -> Sequence[str]:
        """Names of the metrics that `validation` can give for every epoch."""
        return list(self.metrics)

    # prediction

    @abstractmethod
    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        """Name the columns of answers, target by target, with their types float, bool or str.

        A name in `taken` gets a number: `y_pred1` for `y_pred`.
        """

    def predict(self, members: Sequence[nn.Module], batch: Any) -> Any:
        """Compute the members' outputs for the B molecules of a batch: `[B, members, C]`, or a list of B."""
        return torch.stack([member(batch).double() for member in members], dim=1).cpu()

    @abstractmethod
    def decode(self, outputs: Any, store: MoleculeStore) -> Answers:
        """Convert the outputs of `predict` for all molecules of a store to predictions in the user's units."""

    def member_columns(self, members: int) -> dict[str, type]:
        """Name the columns of the predictions of single members, prediction by prediction, with their types.

        Raises:
            InputError: the task has no predictions of single members.
        """
        raise InputError(f"members: a model of the task {self.name} gives no predictions of single members")

    def members_apart(self, outputs: Any, store: MoleculeStore) -> list[np.ndarray]:
        """Convert the outputs of `predict` for all molecules of a store to the columns of `member_columns`, `[m]`."""
        raise NotImplementedError

    def calibrated(self, answers: Any, y: np.ndarray) -> Self:
        """Calibrate, for example, intervals on the predictions for held-out rows and their targets `[n, T]`."""
        return self

    # scores

    @abstractmethod
    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: Any, rows: np.ndarray
    ) -> dict[str, Any]:
        """Score the predictions for the molecules `rows` of a store, as in `metrics.json`.

        Args:
            members: networks of the ensemble.
            store: store of the molecules.
            answers: result of `decode` for all molecules.
            rows: indices of the molecules to score.

        Returns:
            The means over targets, and `per_target`; None where a score is not defined.
        """

    def baselines(self, store: MoleculeStore, split: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        """Score simple methods that learn from the training rows of a store, by name and part of the split.

        Baselines that all tasks of numbers and classes share are in `gtx.workflow.baselines`.
        """
        return {}

    @abstractmethod
    def scores(self, columns: Sequence[str]) -> Scores:
        """Make an object that collects predictions and scores a table that has target columns."""

    def notes(self) -> list[str]:
        """Return notes about how the targets were read, one line each."""
        return []

    # storage

    def config(self) -> dict[str, Any]:
        """Return the user's choices as plain values, for `config.yaml`."""
        choices = {f.name: getattr(self, f.name) for f in chosen(self)}
        plain = {
            name: getattr(value, "__name__", value) if callable(value) else value for name, value in choices.items()
        }
        return {"task": self.name, "targets": list(self.targets), **plain}

    def to_dict(self) -> dict[str, Any]:
        """Return all settings that predictions need, as plain values for JSON."""
        names = [f.name for f in fields(self) if f.name not in ("targets", *self.unsaved)]
        values = {name: _plain(getattr(self, name)) for name in names}
        return {"name": self.name, "targets": list(self.targets), **values}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """Restore a task from what `to_dict` returned.

        Raises:
            InputError: an entry is missing, or does not fit `header_entries`.
        """
        Record({"targets": ListOf(text(), least=1)}).check(plain, "task")
        cls.header_entries(len(plain["targets"])).check(plain, "task")
        names = {f.name for f in fields(cls)} - cls.unsaved
        return cls(**{name: value for name, value in plain.items() if name in names})

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        """Describe the entries that `to_dict` may hold for a number of targets."""
        return Record({})


def fresh_columns(taken: Iterable[str], wanted: Iterable[tuple[str, type]]) -> dict[str, type]:
    """Rename the columns `wanted` where their names are `taken`."""
    names = list(taken)
    fresh: dict[str, type] = {}
    for name, dtype in wanted:
        names.append(find_unused_column_name(names, name))
        fresh[names[-1]] = dtype
    return fresh


def targets_of(store: MoleculeStore) -> Tensor:
    """Return the targets of the molecules of a store, float64 `[M, T]`.

    Raises:
        ValueError: it has none.
    """
    if store.y is None:
        raise ValueError("expected molecules with targets, got a store without y")
    return store.y


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return getattr(value, "__name__", str(value)) if callable(value) else value
