"""Tasks: what a model learns, in three parts: columns, objective and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError, did_you_mean
from gtx.base.schema import Text, arguments_of, check, entries, list_of, one_of
from gtx.data import FeatureColumns, MoleculeStore
from gtx.data.rows import InputFile, Row
from gtx.data.table_writer import find_unused_column_name
from gtx.settings import option_fields
from gtx.settings.tasks import TASKS
from gtx.tasks.columns import LEVELS, Columns, Level, LevelName
from gtx.tasks.metrics import Metric

# --- Names of targets and options.


def target_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the names of target columns, of which none is named twice."""
    names = (names,) if isinstance(names, str) else tuple(names)
    check(names, list_of(Text, least=1), "targets")
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"target column {name!r} is named twice")
    return names


def check_options(name: str, options: Iterable[str], advice: str = "leave it out") -> None:
    """Raise an `InputError` with advice if the task `name` of `TASKS` lacks one of some options."""
    known = [each.name for each in option_fields(TASKS[name].options)]
    for option in sorted(set(options) - {*known}):
        raise InputError(f"{option}: {name} has no such option; {advice}{did_you_mean(option, known)}")


# --- The objective: outputs, loss and metrics, and the scales fitted to training rows.


class Objective(ABC):
    """What training needs of a task.

    Attributes:
        metrics: metrics by name, the main metric first.
        level: level of the targets, with R rows in a store or a batch.
        levels: levels of the `validation_outputs`, more than one for several tasks.
    """

    metrics: ClassVar[Mapping[str, Metric]]
    level: Level = LEVELS["molecule"]

    def __init__(self, task: Task) -> None:
        self.task: Any = task
        self.targets: tuple[str, ...] = task.targets
        self.level = LEVELS[task.level]
        self.levels: Sequence[Level] = [self.level]

    @property
    def validation_metrics(self) -> Sequence[str]:
        """Names of the metrics that every epoch can give, by default all."""
        return list(self.metrics)

    @property
    @abstractmethod
    def out_channels(self) -> int:
        """Number of the model's outputs per molecule, atom or bond."""

    @property
    def num_predictions(self) -> int:
        """Number of outputs, from the first, that are predictions and can be blended with a kernel's."""
        return self.out_channels

    def known(self, store: MoleculeStore) -> Tensor:
        """Find the molecules with a value or a bound, bool `[M]`."""
        return self.level.known(store)

    def fit(self, train: MoleculeStore) -> dict[str, Any]:
        """Fit scales or classes to the training rows; return them as fields of the task, none that it has already.

        Raises:
            InputError: it cannot be learned from these rows.
        """
        items = f"the {self.level.name}s of " if self.level.lists else ""
        for name, blank in zip(self.targets, self.level.targets(train).isnan().all(0).tolist(), strict=True):
            if blank:
                raise InputError(f"target {name!r} has no value among {items}the training molecules")
        return {}

    def check(self, model: nn.Module) -> None:  # noqa: B027 -- most objectives take any
        """Raise an `InputError` unless a model suits, before it is trained."""

    def examples(self, store: MoleculeStore) -> Any:
        """Return the examples from which batches are made, with targets scaled for the loss."""
        return store

    def forward(self, model: nn.Module, batch: Any) -> Any:
        """Compute the output of the model for a batch of `examples`."""
        return self.constrain(model(batch), batch)

    def constrain(self, output: Any, batch: Any) -> Any:
        """Convert what the model returns for a batch to outputs that the loss and the answers read.

        Raises:
            InputError: by default, the outputs are not `[R, C]`; a loss would broadcast them.
        """
        if output.dim() != 2 or output.shape[1] != self.out_channels:
            expected = f"expected outputs [{self.level.name}s, {self.out_channels}] for the task {self.task.name}"
            raise InputError(f"{expected}, got {list(output.shape)} from the model")
        return output

    @abstractmethod
    def mean_loss(self, output: Any, examples: Any) -> Tensor:
        """Compute the mean loss of outputs for a batch of `examples`, or for all of them."""

    def share(self, examples: Any) -> int | Tensor:
        """Return the weight of a batch in an epoch, such as its number of molecules; of all `examples` likewise."""
        return self.level.share(examples)

    def validation_outputs(self, output: Any, batch: Any) -> Any:
        """Return what the scores of an epoch need of a batch, `[R, K]`; of several levels a tuple of such."""
        return output.float()

    @abstractmethod
    def validation_scorer(self, val: MoleculeStore) -> Callable[..., dict[str, float]]:
        """Return a function from the `validation_outputs` of all validation rows to the scores of an epoch; those of
        each level, `[R, K]`, are an argument.

        The names of the scores start with `val_`; the best epoch has the lowest `val_score`.
        """

    def predict(self, members: Sequence[nn.Module], batch: Any) -> Any:
        """Compute the members' outputs for the B molecules of a batch: `[B, members, C]`, or a list of B."""
        return self.collect([member(batch) for member in members], batch)

    def collect(self, outputs: Sequence[Any], batch: Any) -> Any:
        """Collect what each member returns for a batch as `predict` returns it."""
        stacked = torch.stack([self.constrain(output.double(), batch) for output in outputs], dim=1).cpu()
        if not self.level.lists:
            return stacked
        sizes = torch.bincount(self.level.owner(batch), minlength=batch.num_graphs)
        return [part[:: self.level.rows_each] for part in stacked.split(sizes.tolist())]

    def regressands(self, store: MoleculeStore) -> Tensor | None:
        """Return targets for a least-squares fit, float64 `[M, P]`, NaN for blanks.

        The targets are the ideal outputs, or indicators of the classes. The result is None if least squares is not
        suitable; then no kernel model is blended with the network.
        """
        return None


# --- Answers, and the rules by which outputs become answers.


@dataclass(frozen=True, kw_only=True)
class Answers(ABC):
    """Answers of a model for m molecules; fields of a subclass are `[m, ...]`, tuples of such, or None.

    Attributes:
        warnings: list of warnings for each molecule.
        table: values of the columns that `AnswerRules.output_columns` names, `[m]` each.
    """

    warnings: list[list[str]]
    table: tuple[np.ndarray, ...] = ()

    @property
    @abstractmethod
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with an answer."""

    def subset(self, rows: np.ndarray) -> Self:
        """Select the molecules `rows`."""

        def select(values: Any) -> Any:
            if isinstance(values, tuple):
                return tuple(map(select, values))
            if isinstance(values, Answers):
                return values.subset(rows)
            return [values[i] for i in rows] if isinstance(values, list) else None if values is None else values[rows]

        return replace(self, **{each.name: select(getattr(self, each.name)) for each in fields(self)})

    def columns(self) -> list[np.ndarray]:
        """Return the columns of the table; NaN or None for a molecule that is not `finite`."""
        finite = self.finite
        blanks = (np.array(np.nan if column.dtype.kind == "f" else None) for column in self.table)
        return [np.where(finite, column, blank) for column, blank in zip(self.table, blanks, strict=True)]


class Scores(Protocol):
    """Collection of answers and true values while a table is read."""

    def add(self, rows: Sequence[Row], answers: Any) -> None:
        """Add some rows and their answers."""

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None if the table has no true values."""

    def notes(self) -> list[str]:
        """Return notes about all answers, a line each."""


class AnswerRules(ABC):
    """Rules by which outputs become answers: values, spread, intervals, and the names of their columns."""

    @property
    def reads_similarity(self) -> bool:
        """True if `decode` needs the distance to the nearest training molecule, 1 - similarity, after all outputs."""
        return False

    @abstractmethod
    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        """Name the columns of answers, target by target, with their types float, bool or str.

        A name in `taken` gets a number: `y_pred1` for `y_pred`.
        """

    @abstractmethod
    def decode(self, outputs: Any, store: MoleculeStore) -> Answers:
        """Convert the outputs of `Objective.predict` for all molecules of a store to answers in the user's units."""

    def fit(self, answers: Any, y: np.ndarray) -> dict[str, Any]:
        """Calibrate, for example, intervals on the answers for held-out rows and their targets `[n, T]`, and return the
        values as fields of the task.
        """
        return {}

    @abstractmethod
    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: Any, rows: np.ndarray
    ) -> dict[str, Any]:
        """Score the answers of networks for the molecules `rows` of a store, as in `metrics.json`.

        Returns:
            The means over targets, and `per_target`; None where a score is not defined.
        """

    @abstractmethod
    def scores(self, columns: Sequence[str]) -> Scores:
        """Make an object that collects predictions and scores a table that has target columns."""

    def notes(self) -> list[str]:
        """Return notes about how targets were read and answers calibrated, one line each."""
        return []


def fresh_columns(taken: Iterable[str], wanted: Iterable[tuple[str, type]]) -> dict[str, type]:
    """Rename the columns `wanted` where their names are `taken`."""
    names = list(taken)
    fresh: dict[str, type] = {}
    for name, dtype in wanted:
        names.append(find_unused_column_name(names, name))
        fresh[names[-1]] = dtype
    return fresh


# --- The interface of tasks.


@dataclass(frozen=True)
class Task(ABC):
    """What a model learns: the choices of a user, the values that training has fitted, and three parts made of them.

    * `columns` turns cells of a table into values (`gtx.tasks.columns`).
    * `objective` has the outputs per item, the loss and the metrics (`Objective`).
    * `answers` turns outputs into values, intervals and columns (`AnswerRules`).

    A task is immutable. A part fits values and returns them as fields of the task, and the task is replaced by one with
    these values: `infer_from_table` has what the columns read of a table, such as classes; `fit` has what the
    objective fits to the training rows, such as scales; `calibrate` has what the answers fit to the validation rows,
    such as intervals. `to_dict` makes the entry of a model file.

    Attributes:
        targets: names of the target columns.
        level: level of the targets, "molecule", "atom" or "bond"; cells of atoms and bonds are lists.
        name: name of the task on the command line and in model files.
        names: name on the command line at a level of atoms or bonds; a level that is not named cannot be chosen.
        epochs: default number of passes over the training molecules.
        writes: whether the model generates sequences.
        network: name of the model, for a task that has one of its own.
        unsaved: fields that are used only in training and not stored in a model file.
        page: module with a function `write_run_report`, for tasks with a separate report.
        also: further levels and their numbers of outputs, as for `gtx.models.GraphTransformer`.
    """

    targets: tuple[str, ...]
    level: LevelName = field(default="molecule", kw_only=True)

    name: ClassVar[str]
    names: ClassVar[Mapping[str, str]] = {}
    epochs: ClassVar[int] = 60
    writes: ClassVar[bool] = False
    network: ClassVar[str | None] = None
    unsaved: ClassVar[frozenset[str]] = frozenset()
    page: ClassVar[str | None] = None
    also: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        for name, value in vars(type(self)).items():
            if isinstance(value, Field):  # which `dataclass` would have replaced
                kind = type(self).__name__
                raise TypeError(f"{kind}.{name} is a field: write @dataclass(frozen=True) above class {kind}")
        object.__setattr__(self, "targets", target_names(self.targets))
        if self.level != "molecule":
            if self.level not in self.names:
                levels = ", ".join(("molecule", *self.names))
                raise InputError(f"level: expected one of {levels} for {self.name}, got {self.level!r}")
            object.__setattr__(self, "name", self.names[self.level])
        if self.name in TASKS:
            values = {each.name: getattr(self, each.name) for each in option_fields(self)}
            check_options(self.name, [f.name for f in option_fields(self) if values[f.name] != f.default])
            check(values, arguments_of(TASKS[self.name].options))

    # the three parts

    @property
    @abstractmethod
    def columns(self) -> Columns:
        """Target columns: cells to values."""

    @property
    @abstractmethod
    def objective(self) -> Objective:
        """Outputs, loss and metrics."""

    @property
    @abstractmethod
    def answers(self) -> AnswerRules:
        """Outputs to values and columns."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """Metrics by name, the main metric first."""
        return self.objective.metrics

    @property
    def discrete(self) -> bool:
        """True if targets are classes."""
        return self.columns.discrete

    @property
    def network_outputs(self) -> dict[str, Any]:
        """Arguments of a network with the outputs of the task."""
        levels: dict[str, Any] = {"also": dict(self.also)} if self.also else {}
        levels |= {"per": self.level} if self.level != "molecule" else {}
        return {"out_channels": self.objective.out_channels, **levels}

    @property
    def custom(self) -> bool:
        """True for a task that is not one of `TASKS`: `gtx.load` then needs its class, and the command line cannot."""
        kind = type(self)
        return kind.name not in TASKS or TASKS[kind.name].load() is not kind

    # what is fitted

    def infer_from_table(self, files: Sequence[InputFile]) -> Task:
        """Return the task with values that depend on the cells of the tables, such as the names of classes.

        Raises:
            InputError: a column is missing or cannot be learned.
        """
        return replace(self, **self.columns.infer(files))

    def with_features(self, features: FeatureColumns) -> Self:
        """Return the task of a model that also reads some feature columns.

        Raises:
            InputError: the task needs another column.
        """
        return self

    def drop_blanks(self, store: MoleculeStore) -> MoleculeStore:
        """Drop the molecules with neither a value nor a bound, and those of weight 0."""
        rows = self.objective.known(store)
        if store.weights is not None:
            rows = rows & (store.weights > 0)
        return store.subset(rows.nonzero().flatten())

    def unscorable(self, store: MoleculeStore) -> dict[int, str]:
        """Return the reason why a molecule's target cannot be scored, by index of the molecule."""
        return {}

    def fit(self, train: MoleculeStore) -> Self:
        """Fit scales or classes to the training rows, before the network is trained; a fitted task stays as it is.

        Raises:
            InputError: it cannot be learned from these rows, or there are none.
        """
        if not len(train):
            raise InputError("there are no training molecules with a target value and a weight above 0")
        return replace(self, **self.objective.fit(train))

    def take_over(self, other: Task) -> Self:
        """Take the fitted scales or classes of the same targets from another task, for fine-tuning; both tasks are
        fitted.

        Raises:
            InputError: the other task contradicts the table, for example by other classes.
        """
        return self

    def outputs_of(self, other: Task) -> list[int] | None:
        """Map each output to its index in the model of another task, -1 for a new target.

        The result is None if no target is shared or all targets are shared; then only shapes are compared.
        """
        return None

    def calibrate(self, answers: Any, y: np.ndarray) -> Self:
        """Calibrate, for example, intervals on the answers for held-out rows and their targets `[n, T]`."""
        return replace(self, **self.answers.fit(answers, y))

    # storage

    def config(self) -> dict[str, Any]:
        """Return the user's choices as plain values, for `config.yaml`."""
        return {"task": self.name, "targets": list(self.targets)} | self._plain(option_fields(self))

    def to_dict(self) -> dict[str, Any]:
        """Return all settings that predictions need, as plain values for JSON."""
        saved = (each for each in fields(self) if each.name not in ("targets", *self.unsaved))
        return {"name": type(self).name, "targets": list(self.targets)} | self._plain(saved)

    def _plain(self, chosen: Iterable[Field[Any]]) -> dict[str, Any]:
        """Return the values of some fields as plain values."""
        values = {each.name: getattr(self, each.name) for each in chosen}
        for name, value in values.items():
            if hasattr(value, "to_dict"):
                values[name] = value.to_dict()
            elif callable(value):
                values[name] = getattr(value, "__name__", str(value))
        return values

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Restore a task from what `to_dict` returned; raise InputError if an entry does not fit `header_entries`."""
        check(record, entries({"targets": list_of(Text, least=1)}, {"level": one_of(LEVELS)}), "task")
        check(record, cls.header_entries(len(record["targets"])), "task")
        name = cls.names.get(record.get("level", "molecule"), cls.name)
        check(record, arguments_of(*[TASKS[name].options] if name in TASKS else []), "task")
        names = {f.name for f in fields(cls)} - cls.unsaved
        return cls(**{name: value for name, value in record.items() if name in names})

    @classmethod
    @lru_cache
    def header_entries(cls, targets: int) -> Any:
        """Describe what training fits, as `to_dict` has it for a number of targets, see `gtx.base.schema.entries`."""
        learned = [each for each in fields(cls) if "fitted" in each.metadata]
        kinds = {each.name: each.metadata["fitted"](targets) for each in learned}
        needed = {each.name: kinds[each.name] for each in learned if each.metadata["needed"]}
        return entries(needed, {name: kind | None for name, kind in kinds.items()})
