"""Tasks: what is learned, as an object, and the predictions it makes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.data.columns import Row
from gtx.data.delimited import LARGEST
from gtx.data.table_writer import fresh_name
from gtx.errors import InputError
from gtx.schema import ListOf, Record, text
from gtx.tasks.metrics import Metric
from gtx.tasks.options import chosen

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, File, MoleculeStore
    from gtx.data.ledger import Ledger


# --- Predicted numbers, and predicted numbers beside the measured ones of a table.


@dataclass(frozen=True)
class Predictions:
    """Numbers for m molecules, in the targets' own units; for classes, probabilities.

    Attributes:
        mean: float64 `[m, P]`, the mean over members; a column per target, or one per class of each target.
        std: float64 `[m, P]`, the standard deviation that a method of uncertainty tells, or that of the members; None
            for a single member.
        low, high: float64 `[m, T]`, bounds of an interval, or None; NaN for a target that has none.
        reach: float64 `[m, T]` each, how far an interval is to reach below and above the mean, but for one factor per
            target; None for equally far everywhere.
        warnings: per molecule, a list of texts.
        distance: float64 `[m]`, 1 - similarity to the nearest training molecule, where the task reads it; or None.
        vacuity: float64 `[m, T]`, how little is known of a target's classes, from 0 to 1, where a method tells it; or
            None.
        table: `[m]` each, the columns that `Task.output_columns` names.
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

    @property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules that every target has a number for."""
        return np.isfinite(self.mean).all(axis=1)

    def subset(self, rows: np.ndarray) -> Predictions:
        """Select the molecules `rows`."""
        cut = [None if each is None else each[rows] for each in (self.mean, self.std, self.low, self.high)]
        reach = None if self.reach is None else tuple(each[rows] for each in self.reach)
        distance, vacuity = (None if each is None else each[rows] for each in (self.distance, self.vacuity))
        table = [column[rows] for column in self.table]
        return Predictions(*cut, [self.warnings[i] for i in rows], table, reach, distance, vacuity)

    def columns(self) -> list[np.ndarray]:
        """Return the columns that `Task.output_columns` names; NaN or None for a molecule that is not `finite`."""
        blanks = (np.nan if column.dtype.kind == "f" else None for column in self.table)
        return [np.where(self.finite, column, blank) for column, blank in zip(self.table, blanks, strict=True)]


class NumberScores:
    """Predictions beside the measured values, as far as the table holds them: 16 bytes per row and target.

    Args:
        task: of the model, a `gtx.tasks.NumberTask`.
        columns: of the table.
    """

    def __init__(self, task: Any, columns: Sequence[str]) -> None:
        self.task, self.columns = task, columns
        self.held = {t: columns.index(name) for t, name in enumerate(task.targets) if columns.count(name) == 1}
        self.y: list[np.ndarray] = []
        self.bounds: list[np.ndarray] = []
        self.prediction: list[np.ndarray] = []

    def add(self, rows: Sequence[Row], answers: Predictions) -> None:
        """Take in some rows and what was predicted for them."""
        if not self.held:
            return
        y = np.full((len(rows), len(self.task.targets)), np.nan)
        for t, place in self.held.items():
            y[:, t] = self.task.values(t, [row.cells[place] for row in rows])
        y = self.task.joined(np.where(np.isinf(y), np.nan, y))
        self.y.append(np.where(np.abs(y) > LARGEST, np.nan, y))  # and what is no number is infinite
        self.prediction.append(answers.mean)
        if (
            len(self.held) == len(self.task.targets)
            and (bounds := self.task.parse_bounds(rows, self.columns)) is not None
        ):
            self.bounds.append(bounds)

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None without a single measured value."""
        if not self.y:
            return None
        y, prediction = np.concatenate(self.y), np.concatenate(self.prediction)
        if np.isnan(y).all() and not self.bounds:
            return None
        found = self.task.evaluate(y, prediction)
        if self.bounds:
            found = self.task.add_bound_scores(found, np.concatenate(self.bounds), prediction)
        names = [self.task.targets[t] for t in self.held]
        return {**found, "per_target": {name: found["per_target"][name] for name in names}}

    def notes(self) -> list[str]:
        """Nothing: numbers speak for themselves."""
        return []


# --- What gtx can do with a task, beside training and predicting.

CAPABILITIES = {
    "benchmark": "gtx benchmark, which compares models of numbers and classes of molecules",
    "components": "several molecules a row: leave out --smiles-columns",
    "explain": "explanations, which are of numbers and classes of molecules",
    "fine-tuning": "training that starts from another model (--from)",
    "outliers": "warnings of outliers among its targets",
    "store": "a store that gtx prepare made: it needs a table",
    "tune": "gtx tune, which compares models of numbers and classes of molecules",
}
"""Capabilities that a task may declare in `Task.supports`, each as an error message names it."""


class Capable(Protocol):
    """A task, or `gtx.tasks.Inferred` in place of one."""

    @property
    def name(self) -> str: ...
    @property
    def supports(self) -> frozenset[str]: ...


def require(task: Capable | None, capability: str) -> None:
    """Check that a task supports a capability. None is a task that the table decides, of numbers or classes.

    Raises:
        InputError: it does not.
    """
    if task is not None and capability not in task.supports:
        raise InputError(f"task {task.name} does not support {CAPABILITIES[capability]}")


# --- What a task is: the one object that knows all that is special about what a model learns.


class Answers(Protocol):
    """Answers of a model for m molecules.

    Attributes:
        finite: bool `[m]`: the molecules it has an answer for.
        warnings: per molecule, a list of texts.
    """

    finite: np.ndarray
    warnings: list[list[str]]

    def subset(self, rows: np.ndarray) -> Answers:
        """Select the molecules `rows`."""

    def columns(self) -> list[np.ndarray]:
        """`[m]` each, named by `Task.output_columns`; NaN or None where there is no answer."""


class Scores(Protocol):
    """Answers beside the truth, collected while a table is read."""

    def add(self, rows: Sequence[Row], answers: Answers) -> None:
        """Take in some rows and their answers."""

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None if the table does not hold the truth."""

    def notes(self) -> list[str]:
        """Return notes about all answers, a line each."""


@dataclass(frozen=True)
class Task(ABC):
    """Definition of what a model learns about a molecule. Every method returns something new; a task never changes.

    A task is used in this order: `infer_from_table` and `parse` read the cells of a table, `fitted` learns scales or
    classes of the training rows, `examples`, `forward`, `training_loss` and `validation` serve training, `predict` and
    `decode` turn outputs into answers, `calibrated` learns intervals of the validation rows, `score` scores,
    `to_dict` is what a model file keeps.

    Attributes:
        targets: names of the target columns.
        name: what the command line and model files call the task.
        epochs: passes over the training molecules where nothing else is asked for.
        metrics: the scores by name, the leading one first.
        discrete: whether targets are classes.
        writes: whether the model writes sequences, and is none of the graph transformers with a readout.
        supports: what gtx does with the task, keys of `CAPABILITIES`; `require` refuses the rest.
        per: what has a prediction each, as `gtx.models.GraphTransformer` takes it: "molecule", "atom" or "bond".
        also: outputs for each of something else beside that, as the same model takes them.
    """

    targets: tuple[str, ...]

    name: ClassVar[str]
    epochs: ClassVar[int] = 60
    metrics: ClassVar[dict[str, Metric]]
    discrete: ClassVar[bool] = False
    writes: ClassVar[bool] = False
    supports: ClassVar[frozenset[str]] = frozenset({"components", "fine-tuning", "store"})
    per: ClassVar[str] = "molecule"
    also: ClassVar[Mapping[str, int]] = {}

    def __post_init__(self) -> None:
        names = (self.targets,) if isinstance(self.targets, str) else tuple(self.targets)
        ListOf(text(), least=1).check(names, "targets")
        object.__setattr__(self, "targets", names)
        if repeated := [name for i, name in enumerate(names) if name in names[:i]]:
            raise InputError(f"target column {repeated[0]!r} is named twice")

    # a table's cells

    def infer_from_table(self, files: Sequence[File]) -> Task:
        """Settle what the cells of the tables decide, such as the names of classes.

        Raises:
            InputError: a column is missing or cannot be learned.
        """
        return self

    def reading(self, features: FeatureColumns | None) -> Self:
        """The task of a model that reads these columns beside the molecule.

        Raises:
            InputError: the task needs another.
        """
        return self

    @abstractmethod
    def parse(self, rows: Sequence[Row], columns: Sequence[str], ledger: Ledger) -> np.ndarray:
        """The targets of all rows, float64 `[n, T]`, NaN for blanks; a cell that cannot be used is a row error."""

    def parse_bounds(self, rows: Sequence[Row], columns: Sequence[str]) -> np.ndarray | None:
        """Parse bounds of values that were not measured, float64 `[n, 2T]`: T lower bounds, then T upper bounds, NaN
        where there is none. None if the task has no bounds."""
        return None

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]] | None:
        """Where targets are of atoms or bonds, for each row its lists by target, float64 `[a]`. None: they are of
        molecules."""
        return None

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        """Molecules with what `parse_lists` read for each; and by number of the molecule, where a list does not fit it,
        the target and the reason."""
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
        """K, how many numbers per molecule validation keeps, see `validation_outputs`."""
        return self.out_channels

    def fitted(self, train: MoleculeStore) -> Self:
        """Fit scales or classes to the training rows, before the network is trained; a fitted task is returned as it
        is.

        Raises:
            InputError: these rows cannot teach it.
        """
        return self

    def fitted_in_parts(self, sample: MoleculeStore, parts: Iterable[MoleculeStore]) -> Self:
        """Fit like `fitted`, to more training rows than memory holds.

        Args:
            sample: some thousands of them, drawn at random. Unless the task says otherwise, they stand for all.
            parts: all, some at a time.
        """
        return self.fitted(sample)

    def adopting(self, other: Task) -> Self:
        """With what another task has learned of targets that it knows too, when its model is trained further; both are
        `fitted`.

        Raises:
            InputError: what it has learned contradicts the table, e.g. other classes.
        """
        return self

    def outputs_of(self, other: Task) -> list[int] | None:
        """The number of each output among those of another task's model, -1 for a target that this does not know; None
        where shapes decide: no target is known, or all are the same."""
        return None

    def regressands(self, store: MoleculeStore) -> Tensor | None:
        """Return targets for a least-squares fit in place of the loss, float64 `[M, P]`, NaN for blanks: the ideal
        outputs, or for classes, whose outputs are logits, class indicators. None if least squares does not apply, and
        no kernel is blended with the network."""
        return None

    def labelled(self, store: MoleculeStore) -> MoleculeStore:
        """The molecules that teach or can be scored: with a value or a bound, and a weight above 0 where there are
        weights."""
        known = self.known_molecules(store)
        if store.weights is not None:
            known = known & (store.weights > 0)
        return store.subset(known.nonzero().flatten())

    def known_molecules(self, store: MoleculeStore) -> Tensor:
        """bool `[M]`: the molecules that have a value or a bound."""
        known = (~store.y.isnan()).any(1)
        return known if store.bounds is None else known | (~store.bounds.isnan()).any(1)

    def examples(self, store: MoleculeStore) -> Any:
        """Return the examples that batches are cut from, with targets as the loss takes them."""
        return store

    def unscorable(self, store: MoleculeStore) -> dict[int, str]:
        """Return why the target of a molecule cannot be scored, by number of the molecule."""
        return {}

    @property
    def reads_similarity(self) -> bool:
        """True if `decode` needs the distance to the nearest training molecule, 1 - similarity, after all outputs."""
        return False

    def check(self, model: nn.Module, members: int) -> None:  # noqa: B027 -- most tasks take any
        """Raise an `InputError` unless a model, before it is trained, and the number of its members suit the task."""

    def forward(self, model: nn.Module, batch: Any) -> Any:
        """The model's output for a batch of `examples`."""
        return model(batch)

    @abstractmethod
    def training_loss(self, output: Any, batch: Any) -> Tensor:
        """The mean loss of a batch, a number."""

    def share(self, examples: Any) -> int | Tensor:
        """Return the weight of a batch in an epoch, such as its number of molecules; of all `examples` likewise."""
        return getattr(examples, "molecules", examples.num_graphs)

    def validation_outputs(self, output: Any, batch: Any) -> Tensor:
        """Return the outputs of a batch that validation collects, `[B, K]`."""
        return output.float()

    @abstractmethod
    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        """A function of the `validation_outputs` of all validation rows, `[n, K]`, that gives the scores of an epoch.

        They are named `val_...`; `val_score` decides which epoch is kept, lower is better.
        """

    @property
    def validated(self) -> Sequence[str]:
        """Names of the metrics that `validation` can give for every epoch."""
        return list(self.metrics)

    # prediction

    @abstractmethod
    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        """The columns of answers, target by target, and whether they hold float, bool or str: `y_pred`, or `y_pred1`
        where `taken` has that name."""

    def predict(self, members: Sequence[nn.Module], batch: Any) -> Any:
        """Compute the members' outputs for the B molecules of a batch: `[B, members, C]`, or a list of B."""
        return torch.stack([network(batch).double() for network in self.networks(members)], dim=1).cpu()

    def networks(self, members: Sequence[nn.Module]) -> Sequence[nn.Module]:
        """The networks that `predict` asks, such as the members or many variants of each."""
        return members

    @abstractmethod
    def decode(self, outputs: Any, store: MoleculeStore) -> Answers:
        """Answers in the user's units, out of what `predict` says of all molecules of a store."""

    def member_columns(self, members: int) -> dict[str, type]:
        """The columns of what each of so many members predicts, prediction by prediction, and what they hold.

        Raises:
            InputError: the task does not tell members apart.
        """
        raise InputError(f"members: a model of the task {self.name} gives no predictions of single members")

    def members_apart(self, outputs: Any, store: MoleculeStore, members: int) -> list[np.ndarray]:
        """Return the columns that `member_columns` names, `[m]` each, from the outputs of `predict` for all
        molecules of a store."""
        raise NotImplementedError

    def calibrated(self, answers: Answers, y: np.ndarray) -> Self:
        """Calibrate on answers for held-out rows and their targets `[n, T]`, for instance intervals."""
        return self

    # scores

    @abstractmethod
    def score(self, members: Sequence[nn.Module], store: MoleculeStore, answers: Answers, rows: np.ndarray) -> dict:
        """Scores of the answers for the molecules `rows` of a store, as in `metrics.json`.

        They are means over targets, and `per_target`; None where one is not defined.
        """

    def baselines(self, store: MoleculeStore, split: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
        """Scores of methods of the task's own that learn from the training rows of a store, by name and part of the
        split; those that all tasks of numbers and classes share are in `gtx.baselines`."""
        return {}

    @abstractmethod
    def scores(self, columns: Sequence[str]) -> Scores:
        """To score a table with these columns, as far as it holds the truth."""

    def notes(self) -> list[str]:
        """Return notes about how the targets were understood, a line each."""
        return []

    # storage

    def config(self) -> dict[str, Any]:
        """Return the user's choices as plain values, for `config.yaml`."""
        given = {f.name: getattr(self, f.name) for f in chosen(self)}
        plain = {name: getattr(value, "__name__", value) if callable(value) else value for name, value in given.items()}
        return {"task": self.name, "targets": list(self.targets), **plain}

    def to_dict(self) -> dict[str, Any]:
        """All that predictions need, as plain values for JSON."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "targets"}
        return {"name": self.name, "targets": list(self.targets), **{k: _plain(v) for k, v in kept.items()}}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        """The task that `to_dict` described.

        Raises:
            InputError: an entry is missing, or not what `header_entries` says.
        """
        Record({"targets": ListOf(text(), least=1)}).check(plain, "task")
        cls.header_entries(len(plain["targets"])).check(plain, "task")
        known = {f.name for f in fields(cls)}
        return cls(**{name: value for name, value in plain.items() if name in known})

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        """Describe the entries that `to_dict` may hold for a number of targets."""
        return Record({})


def fresh_columns(taken: Iterable[str], wanted: Iterable[tuple[str, type]]) -> dict[str, type]:
    """The columns `wanted`, under names that are not `taken`."""
    names, fresh = list(taken), {}
    for name, kind in wanted:
        names.append(fresh_name(names, name))
        fresh[names[-1]] = kind
    return fresh


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return getattr(value, "__name__", str(value)) if callable(value) else value
