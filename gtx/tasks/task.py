"""Tasks: what a model learns, in three parts: columns, objective and answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeGuard

import numpy as np

from gtx.base.errors import InputError, did_you_mean
from gtx.base.schema import Text, check, entries, list_of, one_of, shown
from gtx.settings.options import chosen
from gtx.settings.tasks import TASKS, WeightOptions
from gtx.tasks.answers import AnswerRules, NumericAnswers
from gtx.tasks.columns import Columns
from gtx.tasks.levels import LEVELS, LevelName
from gtx.tasks.metrics import Metric
from gtx.tasks.objective import NumericObjective, Objective

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, MoleculeStore
    from gtx.data.rows import InputFile


# --- What gtx can do with a task, beside training and predicting.

CAPABILITIES = {
    "benchmark": "gtx benchmark, which compares models of numbers and classes of molecules",
    "components": "several molecules a row or reactions: leave out --smiles-columns and --reaction-column",
    "explain": "explanations, which are of numbers and classes of molecules",
    "fine-tuning": "training that starts from another model (--from)",
    "outliers": "warnings of outliers among its targets",
    "tune": "gtx tune, which compares models of numbers and classes of molecules",
}
"""Capabilities that a task may declare in `Task.supports`, each as an error message names it."""


def check_task_capability(task: Any, capability: str) -> None:
    """Raise InputError unless a task or `InferredTask` supports a capability, such as "tune" or "explain".

    None is a task of numbers or classes that is chosen from the table.
    """
    if task is not None and capability not in task.supports:
        raise InputError(f"task {task.name} does not support {CAPABILITIES[capability]}")


# --- The interface of tasks.


@dataclass(frozen=True)
class Task(ABC):
    """What a model learns: the choices of a user, the values that training has fitted, and three parts made of them.

    * `columns` turns cells of a table into values (`gtx.tasks.columns`).
    * `objective` has the outputs per item, the loss and the metrics (`gtx.tasks.objective`).
    * `answers` turns outputs into values, intervals and columns (`gtx.tasks.answers`).

    A task is immutable. A part fits values and returns them as fields of the task, and the task is replaced by one with
    these values: `infer_from_table` has what the columns read of a table, such as classes; `fitted` has what the
    objective fits to the training rows, such as scales; `calibrated` has what the answers fit to the validation rows,
    such as intervals. `to_dict` makes the entry of a model file.

    Attributes:
        targets: names of the target columns.
        level: level of the targets, "molecule", "atom" or "bond"; cells of atoms and bonds are lists.
        name: name of the task on the command line and in model files.
        names: name on the command line at a level of atoms or bonds; a level that is not named cannot be chosen.
        epochs: default number of passes over the training molecules.
        writes: whether the model generates sequences.
        network: name of the model, for a task that has one of its own.
        supports: capabilities that work with the task (keys of `CAPABILITIES`), see `check_task_capability`.
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
    supports: ClassVar[frozenset[str]] = frozenset({"components", "fine-tuning"})
    unsaved: ClassVar[frozenset[str]] = frozenset()
    page: ClassVar[str | None] = None
    also: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        names = (self.targets,) if isinstance(self.targets, str) else tuple(self.targets)
        check(names, list_of(Text, least=1), "targets")
        object.__setattr__(self, "targets", names)
        if repeated := [name for i, name in enumerate(names) if name in names[:i]]:
            raise InputError(f"target column {repeated[0]!r} is named twice")
        if self.level != "molecule":
            if self.level not in self.names:
                levels = ", ".join(("molecule", *self.names))
                raise InputError(f"level: expected one of {levels} for {self.name}, got {self.level!r}")
            object.__setattr__(self, "name", self.names[self.level])
            object.__setattr__(self, "supports", frozenset({"fine-tuning"}))
        if self.name in TASKS:
            known = {each.name for each in chosen(TASKS[self.name].options)}
            for each in chosen(self):
                if each.name not in known and getattr(self, each.name) != each.default:
                    raise InputError(f"{each.name}: {self.name} has no such option; leave it out")

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

    # what is fitted

    def infer_from_table(self, files: Sequence[InputFile]) -> Task:
        """Return the task with values that depend on the cells of the tables, such as the names of classes.

        Raises:
            InputError: a column is missing or cannot be learned.
        """
        return replace(self, **self.columns.infer(files))

    def with_relation(self, column: str) -> Task:
        """Return the task whose values are read with the relation in another column, such as `>`.

        Raises:
            InputError: the task has no bounds.
        """
        raise InputError(
            f"--relation-column: values of the task {self.name} have no bounds; it is for --task regression"
        )

    def with_features(self, features: FeatureColumns | None) -> Self:
        """Return the task of a model that also reads some feature columns.

        Raises:
            InputError: the task needs another column.
        """
        return self

    def labelled(self, store: MoleculeStore) -> MoleculeStore:
        """Select the molecules with a value or a bound, and a weight above 0 if there are weights."""
        rows = self.objective.known(store)
        if store.weights is not None:
            rows = rows & (store.weights > 0)
        return store.subset(rows.nonzero().flatten())

    def unscorable(self, store: MoleculeStore) -> dict[int, str]:
        """Return the reason why a molecule's target cannot be scored, by index of the molecule."""
        return {}

    def fitted(self, train: MoleculeStore) -> Self:
        """Fit scales or classes to the training rows, before the network is trained; a fitted task stays as it is.

        Raises:
            InputError: it cannot be learned from these rows.
        """
        return replace(self, **self.objective.fit(train))

    def take_over(self, other: Task) -> Self:
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

    def calibrated(self, answers: Any, y: np.ndarray) -> Self:
        """Calibrate, for example, intervals on the answers for held-out rows and their targets `[n, T]`."""
        return replace(self, **self.answers.fit(answers, y))

    # storage

    def config(self) -> dict[str, Any]:
        """Return the user's choices as plain values, for `config.yaml`."""
        values = {f.name: getattr(self, f.name) for f in chosen(self)}
        named = {name: getattr(value, "__name__", value) for name, value in values.items() if callable(value)}
        return {"task": self.name, "targets": list(self.targets), **values, **named}

    def to_dict(self) -> dict[str, Any]:
        """Return all settings that predictions need, as plain values for JSON."""
        names = [f.name for f in fields(self) if f.name not in ("targets", *self.unsaved)]
        values = {name: _json_value(getattr(self, name)) for name in names}
        return {"name": type(self).name, "targets": list(self.targets), **values}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        """Restore a task from what `to_dict` returned; raise InputError if an entry does not fit `header_entries`."""
        check(record, entries({"targets": list_of(Text, least=1)}, {"level": one_of(LEVELS)}), "task")
        check(record, cls.header_entries(len(record["targets"])), "task")
        names = {f.name for f in fields(cls)} - cls.unsaved
        return cls(**{name: value for name, value in record.items() if name in names})

    @classmethod
    def header_entries(cls, targets: int) -> Any:
        """Describe the entries that `to_dict` may hold for a number of targets, see `gtx.base.schema.entries`."""
        return entries({})


def _json_value(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return getattr(value, "__name__", str(value)) if callable(value) else value


# --- Tasks of numbers and classes.


@dataclass(frozen=True)
class NumericTask(Task, WeightOptions):
    """Base class of tasks whose targets are numbers or classes, each with its own column.

    A subclass names its `objective`; the columns are of numbers, and the answers one number per target, by default.
    """

    supports: ClassVar[frozenset[str]] = Task.supports | {"benchmark", "explain", "tune"}
    unsaved: ClassVar[frozenset[str]] = frozenset({"target_weights"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, weight in (self.target_weights or {}).items():
            if name not in self.targets:
                raise InputError(f"target_weights: there is no target {name!r}{did_you_mean(name, self.targets)}")
            if isinstance(weight, bool) or not isinstance(weight, (int, float)) or not 0 <= weight < np.inf:
                raise InputError(f"target_weights: expected a number of 0 or more for {name!r}, got {shown(weight)}")

    @cached_property
    def columns(self) -> Columns:
        return Columns(self.targets, LEVELS[self.level])

    @property
    @abstractmethod
    def objective(self) -> NumericObjective:
        """Outputs, loss and metrics."""

    @cached_property
    def answers(self) -> NumericAnswers:
        return NumericAnswers(self)

    def admissible(self, prediction: np.ndarray) -> np.ndarray:
        """Project predictions `[m, P]` of a method that ignores the task to values that the task allows."""
        return prediction

    def known_part(self, store: MoleculeStore) -> np.ndarray | None:
        """Return the part of the targets that is known before training, `[m, T]`, such as a reference per element."""
        return None

    def shared(self, other: Task) -> list[int]:
        """Map each target to its index in another task of the same class and level, -1 for a new one."""
        theirs = other.targets if type(other) is type(self) and other.level == self.level else ()
        return [theirs.index(name) if name in theirs else -1 for name in self.targets]

    def outputs_of(self, other: Task) -> list[int] | None:
        if not isinstance(other, NumericTask):
            return None
        own, theirs = self.objective, other.objective
        pairs = [(own.outputs(t), theirs.outputs(at)) for t, at in enumerate(self.shared(other)) if at >= 0]
        if not pairs or other.targets == self.targets or any(len(one) != len(two) for one, two in pairs):
            return None
        indices = np.full(own.out_channels, -1)
        for one, two in pairs:
            indices[one] = two
        return indices.tolist()


def is_numeric(task: object) -> TypeGuard[NumericTask]:
    """Return whether a task is of numbers or classes of molecules."""
    return isinstance(task, NumericTask) and task.level == "molecule"


def require_numeric(task: Task, capability: str) -> NumericTask:
    """Check that a task is of numbers or classes of molecules and supports a capability, and return it."""
    check_task_capability(task, capability)
    if not is_numeric(task):
        raise TypeError(f"expected a NumericTask of molecules, got {type(task).__name__}")
    return task
