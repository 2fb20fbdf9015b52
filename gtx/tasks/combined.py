"""Tasks that stand for others: one chosen by the cells of a table, or several learned by one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import isfinite, nan
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.base.schema import check, entries, list_of, one_of
from gtx.data import FeatureColumns, MoleculeStore
from gtx.data.cells import comma_advice, has_comma
from gtx.data.rows import InputFile, Row, RowLog, plural
from gtx.settings import learned
from gtx.settings.tasks import TASKS, MoleculeAtomBondOptions
from gtx.tasks.classification import BinaryClassification, MulticlassClassification
from gtx.tasks.columns import (
    LEVELS,
    ZERO_ONE,
    ClassColumns,
    Columns,
    LevelName,
    TargetCells,
    all_equal,
    count_labels,
    in_order,
    label,
    list_labels,
    main_labels,
    numbers_among,
    parse_bound,
)
from gtx.tasks.metrics import Metric, mean_scores
from gtx.tasks.regression import Regression
from gtx.tasks.task import AnswerRules, Answers, Objective, Scores, Task, check_options, target_names

# --- The choice of a task by the cells of a table.


@dataclass(frozen=True)
class TargetColumn:
    """Cells of a target column, by which its kind is inferred."""

    name: str
    cells: Sequence[str]

    @cached_property
    def counts(self) -> Counter[str]:
        """Number of cells with each label or number."""
        return count_labels(map(label, self.cells))

    @cached_property
    def numbers(self) -> list[str]:
        """Different numbers."""
        return numbers_among(self.counts)

    @cached_property
    def classes(self) -> tuple[str, ...]:
        """Labels apart from odd cells, in order."""
        return in_order(main_labels(self.counts))

    def has_two_classes(self) -> bool:
        """Return whether the column is learned as two classes, not as numbers; raise InputError for other texts."""
        texts = [name for name in self.counts if name not in self.numbers]
        commas = sum(number for name, number in self.counts.items() if has_comma(name))
        if texts and 2 * commas > self.counts.total():
            expected = f"numbers were expected{comma_advice(texts)}"
            raise InputError(f"target column {self.name!r} holds text: {list_labels(texts, 3)}; {expected}")
        if not self.numbers:
            if len(self.counts) == 1 and not parse_bound(texts[0]):
                raise InputError(f"{all_equal(self.name, texts[0])}; there is nothing to learn")
            if len(self.classes) > 2:
                ways = [f"for {entry.labels} say --task {word}" for word, entry in TASKS.items() if entry.labels]
                held = f"target column {self.name!r} holds text: {list_labels(in_order(texts), 3)}"
                raise InputError(f"{held}; numbers were expected; {', '.join(ways)}")
            return len(self.classes) == 2
        of_texts = not numbers_among(self.classes)
        if len(self.numbers) > 2 or any(parse_bound(name) or has_comma(name) for name in texts):
            return of_texts
        if len(self.classes) == 1:
            return self.classes[0] in ZERO_ONE  # which says that the other is missing
        if not of_texts and len(numbers_among(self.classes)) < len(self.classes):
            held = ", ".join(f"{name!r} ({plural(number, 'row')})" for name, number in self.counts.most_common(8))
            raise InputError(
                f"target column {self.name!r} holds texts and numbers: {held}. For two classes write two labels and "
                "leave other cells blank; for more classes say --task multiclass, for numbers alone --task regression"
            )
        return True

    def remark(self, classes: bool) -> str | None:
        """Say why the column is learned as classes, or as numbers, where it has two different values or nearly so."""
        if len(self.classes) != 2:
            return None
        one, other = self.classes
        others, odd = [name for name in self.counts if name not in self.classes], ""
        if number := sum(self.counts[name] for name in others):
            holds = f"{'holds' if number == 1 else 'hold'} something else, such as {in_order(others)[0]!r}"
            odd = f"{number} of {self.counts.total()} cells {holds}"
        if classes and odd:
            outcome = "and their rows are left out as errors; for more classes say --task multiclass"
            return f"warning: {self.name}: learned as two classes, {one!r} and {other!r}; {odd}, {outcome}"
        if classes and self.numbers and self.classes != ZERO_ONE:
            why = f"it holds two different numbers, {one} and {other}"
            return f"{self.name}: learned as two classes, as {why}; --task regression learns numbers"
        if odd and not classes:
            way = "for two classes say --task classification, which leaves the others out as errors"
            return f"warning: {self.name}: learned as numbers, although it holds {one} and {other}; only {odd}: {way}"
        return None


class InferredTask:
    """Placeholder for a task that gtx chooses after reading the table.

    For molecules the choice is `BinaryClassification` if every target has two different values, numbers or texts, apart
    from odd cells (see `gtx.tasks.columns.main_labels`), else, or with a relation column, `Regression`. For atoms and
    bonds the targets are classes, and the choice is `BinaryClassification` if every target has two of them, else
    `MulticlassClassification`.

    Args:
        targets: names of the target columns.
        level: level of the targets.
        options: options of either task; an option that the chosen task does not have is an error.
    """

    writes: bool = Regression.writes
    also: Mapping[str, int] = Regression.also

    def __init__(self, targets: str | Sequence[str], level: LevelName = "molecule", **options: object) -> None:
        self.targets: tuple[str, ...] = target_names(targets)
        self.level: LevelName = level
        self.options: dict[str, object] = options

    @property
    def name(self) -> str:
        """Name of the task, for messages."""
        return "inferred" if self.level == "molecule" else BinaryClassification.names[self.level]

    def infer_from_table(self, files: Sequence[InputFile]) -> Task:
        """Choose the task.

        Raises:
            InputError: a column is missing, blank, or holds texts that are not two classes.
        """
        options = self.options
        if self.level == "molecule":
            numbers = options.get("relation_column") is not None
            classes = not numbers and all([column.has_two_classes() for column in self._columns(files)])
            name = BinaryClassification.name if classes else Regression.name
            values = [option for option, value in options.items() if value is not None]
            check_options(name, values, f"leave it out, or say with --task that it is not {name}")
        else:
            columns = ClassColumns(self.targets, LEVELS[self.level])
            labels = [columns.classes_of(each, files[0].cells(each)) for each in self.targets]
            name = (BinaryClassification if all(len(own) == 2 for own in labels) else MulticlassClassification).name
            if name == MulticlassClassification.name and options.get("positive") is not None:
                raise InputError(f"positive: expected targets of two classes, got {list_labels(max(labels, key=len))}")
        return make_task(name, self.targets, options, self.level).infer_from_table(files)

    def remarks(self, files: Sequence[InputFile]) -> list[str]:
        """Say why a column with two different values is learned as classes, or as numbers, where this may surprise."""
        if self.level != "molecule" or self.options.get("relation_column") is not None:
            return []
        columns = self._columns(files)
        numeric = [column for column in columns if not column.has_two_classes()]
        lines = [column.remark(not numeric) for column in columns if column in numeric or not numeric]
        for column in columns:
            if numeric and column not in numeric:
                pair = " and ".join(column.classes)
                why = f"because {numeric[0].name} holds {len(numeric[0].numbers)} different numbers"
                line = f"warning: {column.name}: learned as numbers, although it holds {pair} alone, {why}"
                lines.append(f"{line}: for classes train it alone")
        return [line for line in lines if line is not None]

    def _columns(self, files: Sequence[InputFile]) -> list[TargetColumn]:
        columns = [TargetColumn(name, files[0].cells(name)) for name in self.targets]
        return [column for column in columns if column.counts] or columns  # a blank one is refused, whatever the task


def make_task(name: str, targets: Sequence[str], options: Mapping[str, Any], level: LevelName | None = None) -> Any:
    """Make a task from its name in `gtx.settings.tasks.TASKS`, its targets and those options that are not None.

    The level is that of the name, or another one.

    Raises:
        InputError: the task does not have one of them.
    """
    values = {option: value for option, value in options.items() if value is not None}
    check_options(name, values)
    return TASKS[name].load()(tuple(targets), level=level or TASKS[name].level, **values)


# --- Answers and scores, task by task.


@dataclass(frozen=True, kw_only=True)
class JointPredictions(Answers):
    """Answers of several tasks for m molecules."""

    by_task: tuple[Answers, ...]

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with an answer from every task."""
        return np.logical_and.reduce([each.finite for each in self.by_task])


@dataclass(frozen=True)
class JointScores:
    """Scores of a table, task by task, with the metrics `names`."""

    by_task: Sequence[Scores]
    names: Sequence[str]

    def add(self, rows: Sequence[Row], answers: JointPredictions) -> None:
        """Add some rows and their answers."""
        for scores, own in zip(self.by_task, answers.by_task, strict=True):
            scores.add(rows, own)

    def metrics(self) -> dict[str, Any] | None:
        """Return the metrics as in `metrics.json`; None if the table has no true values."""
        all_scores = [scores for scores in (each.metrics() for each in self.by_task) if scores is not None]
        return join_scores(all_scores, self.names) if all_scores else None

    def notes(self) -> list[str]:
        """Return notes about all answers, a line each."""
        return [line for each in self.by_task for line in each.notes()]


def join_scores(by_task: Sequence[dict[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    """Join the scores of several tasks: means of the metrics `names` over the targets that have them, and the rest."""
    joined = mean_scores({name: scores for each in by_task for name, scores in each["per_target"].items()}, names)
    return {k: v for each in by_task for k, v in each.items()} | joined


def join_baselines(by_task: Sequence[dict[str, Any]], tasks: Sequence[Task]) -> dict[str, Any]:
    """Join the scores of the baselines of several tasks; None for targets that a baseline does not predict."""
    metrics = dict.fromkeys(name for task in tasks for name in task.metrics)
    blank = {name: dict.fromkeys(task.metrics) for task in tasks for name in task.targets}

    def joined(method: str, part: str) -> dict[str, Any]:
        known = {k: v for each in by_task if method in each for k, v in each[method][part]["per_target"].items()}
        return mean_scores(blank | known, metrics)

    methods = dict.fromkeys(name for scores in by_task for name in scores)
    return {method: {part: joined(method, part) for part in ("train", "val", "test")} for method in methods}


# --- The three parts.


def store_of(task: Task, store: MoleculeStore) -> MoleculeStore:
    """Return a store with the targets of one of several tasks alone in `y`."""
    if store.y is None or task.level != "molecule":
        return store
    return replace(store, y=store.y[:, : len(task.targets)])


@dataclass(frozen=True)
class JointColumns(Columns):
    """Columns of several tasks; the first columns of `y` are the targets of molecules, the next the means of lists."""

    tasks: tuple[Task, ...] = ()

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> TargetCells:
        parts = [task.columns.parse(rows, columns, row_log) for task in self.tasks]
        lists = zip(*(part.lists for part in parts if part.lists is not None), strict=True)
        joined = [{name: values for own in of_row for name, values in own.items()} for of_row in lists]
        return TargetCells(np.concatenate([part.y for part in parts], axis=1), parts[0].bounds, joined)

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        wrong: dict[int, tuple[str, str]] = {}
        for task in self.tasks:
            if task.level != "molecule":
                own = [{name: each[name] for name in task.targets if name in each} for each in lists]
                store, misfits = task.columns.attach_lists(store, own)
                wrong = misfits | wrong
        return store, wrong


class JointObjective(Objective):
    r"""Sum of the losses of several tasks, each averaged over the values of the task in the whole training set:

    \[ L = \sum_k \frac{1}{n_k} \sum_{i=1}^{n_k} \ell_k(\hat z_{ki}, z_{ki}) \]

    Losses are in z-scores for numbers and in nats for classes, and a task with more values has no larger weight.
    Source: models of mixed targets in chemprop (`MolAtomBondMPNN` of version 2.3), with one encoder and a predictor for
    each level.

    The density is the mean weight per molecule of each task in the training rows, see `Objective.share`.
    """

    def __init__(self, task: TaskList) -> None:
        super().__init__(task)
        self.tasks = task.tasks
        self.parts: list[Any] = [each.objective for each in task.tasks]
        self.levels = [each.level for each in self.parts]

    @property
    def metrics(self) -> dict[str, Metric]:  # type: ignore[override]
        """Metrics of all tasks."""
        return {name: metric for each in self.parts for name, metric in each.metrics.items()}

    @property
    def out_channels(self) -> int:
        """Outputs of the first task; `Task.also` has those of the others."""
        return self.parts[0].out_channels

    def known(self, store: MoleculeStore) -> Tensor:
        return torch.stack([task.objective.known(store_of(task, store)) for task in self.tasks]).any(0)

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        for task in self.tasks:
            store = task.objective.examples(store_of(task, store))
        return store

    def constrain(self, output: Sequence[Tensor], batch: Any) -> tuple[Tensor, ...]:
        return tuple(each.constrain(own, batch) for each, own in zip(self.parts, output, strict=True))

    def share(self, examples: Any) -> int | Tensor:
        return getattr(examples, "molecules", examples.num_graphs)

    def mean_loss(self, output: Sequence[Tensor], examples: Any) -> Tensor:
        losses = [
            each.mean_loss(own, examples) * (each.share(examples) / (density * self.share(examples)))
            for each, own, density in zip(self.parts, output, self.task.density or (), strict=True)
        ]
        return torch.stack(losses).sum()

    def validation_outputs(self, output: Sequence[Tensor], batch: Any) -> tuple[Tensor, ...]:
        return tuple(own.float() for own in output)

    def validation_scorer(self, val: MoleculeStore) -> Callable[..., dict[str, float]]:
        """Score by the sum of the losses, and the mean of each score over the targets that have it."""
        scorers = [task.objective.validation_scorer(store_of(task, val)) for task in self.tasks]
        counts = [len(task.targets) for task in self.tasks]

        def scores(*outputs: Tensor) -> dict[str, float]:
            by_task = [score(own) for score, own in zip(scorers, outputs, strict=True)]
            logged = {}
            for name in dict.fromkeys(name for each in by_task for name in each):
                pairs = zip((each.get(name, nan) for each in by_task), counts, strict=True)
                values = [(value, count) for value, count in pairs if isfinite(value)]
                if name == "val_loss":
                    logged[name] = sum(value for value, _ in values)
                elif values:
                    logged[name] = sum(value * count for value, count in values) / sum(count for _, count in values)
            return logged

        return scores

    def collect(self, outputs: Sequence[Sequence[Tensor]], batch: Any) -> list[tuple[Any, ...]]:
        """Collect the outputs of each level for each molecule."""
        pairs = zip(self.parts, zip(*outputs, strict=True), strict=True)
        return list(zip(*(each.collect(own, batch) for each, own in pairs), strict=True))


class JointAnswers(AnswerRules):
    """Answers of several tasks, one after the other. Scores are means over the targets for which they are defined."""

    def __init__(self, task: TaskList) -> None:
        self.tasks = task.tasks
        self.metrics = task.metrics

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        columns: dict[str, type] = {}
        for task in self.tasks:
            columns |= task.answers.output_columns([*taken, *columns], members)
        return columns

    def decode(self, outputs: Sequence[tuple[Tensor, ...]], store: MoleculeStore) -> JointPredictions:
        answers: list[Answers] = []
        for k, task in enumerate(self.tasks):
            own: Any = [each[k] for each in outputs]
            if task.level == "molecule":
                none = torch.zeros(0, 1, task.objective.out_channels, dtype=torch.float64)
                own = torch.stack(own) if own else none
            answers.append(task.answers.decode(own, store))
        warnings = [list(chain(*texts)) for texts in zip(*(each.warnings for each in answers), strict=True)]
        table = tuple(column for each in answers for column in each.table)
        return JointPredictions(by_task=tuple(answers), table=table, warnings=warnings)

    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: JointPredictions, rows: np.ndarray
    ) -> dict[str, Any]:
        pairs = zip(self.tasks, answers.by_task, strict=True)
        scores = [task.answers.score(members, store_of(task, store), own, rows) for task, own in pairs]
        return join_scores(scores, self.metrics)

    def scores(self, columns: Sequence[str]) -> JointScores:
        return JointScores([task.answers.scores(columns) for task in self.tasks], tuple(self.metrics))

    def notes(self) -> list[str]:
        return [line for task in self.tasks for line in task.answers.notes()]


# --- The task.

TOGETHER = ("regression", "atoms", "atom-classes", "bonds", "bond-classes")
"""Names of the tasks that go together, in order."""


@dataclass(frozen=True)
class TaskList(Task, MoleculeAtomBondOptions):
    """Two or three tasks of different levels (molecules, atoms, bonds) in one model: one encoder, a head per level.

    A row needs a value of at least one target.

    Args:
        tasks: a `Regression` of molecules, a task of atoms and a task of bonds, or two of them.
        density: mean weight per molecule of each task in the training rows; used only in training, and not stored.

    Raises:
        InputError: there are other tasks, fewer than two tasks, or two tasks of the same level; a target is named
            twice; or the uncertainty of a `Regression` is "similarity", which reads training molecules.
    """

    name: ClassVar[str] = "molecule-atom-bond"
    names: ClassVar[Mapping[str, str]] = {"atom": name}
    targets: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = field(default=(), kw_only=True)
    density: tuple[float, ...] = learned()

    def __post_init__(self) -> None:
        if unlike := [each for each in self.tasks if each.name not in TOGETHER]:
            raise InputError(f"tasks that go together are {', '.join(TOGETHER)}; got {unlike[0].name}")
        tasks = tuple(sorted(self.tasks, key=lambda each: TOGETHER.index(each.name)))
        if len({each.level for each in tasks}) < max(2, len(tasks)):
            one, names = "one of molecules, one of atoms and one of bonds", ", ".join(each.name for each in tasks)
            raise InputError(f"tasks that go together are two or three, {one}: got {names}")
        if getattr(tasks[0], "uncertainty", "none") == "similarity":
            raise InputError("uncertainty: similarity does not go together with targets of atoms or bonds")
        object.__setattr__(self, "tasks", tasks)
        object.__setattr__(self, "targets", tuple(name for each in tasks for name in each.targets))
        object.__setattr__(self, "level", tasks[0].level)
        super().__post_init__()

    @property
    def also(self) -> dict[str, int]:  # type: ignore[override]
        """Numbers of outputs of the other tasks, by level."""
        return {each.level: each.objective.out_channels for each in self.tasks[1:]}

    @cached_property
    def columns(self) -> JointColumns:
        return JointColumns(self.targets, LEVELS["molecule"], self.tasks)

    objective = cached_property(JointObjective)
    answers = cached_property(JointAnswers)

    def _each(self, change: Callable[[Task], Task]) -> Self:
        return replace(self, tasks=tuple(map(change, self.tasks)))

    def infer_from_table(self, files: Sequence[InputFile]) -> Self:
        return self._each(lambda task: task.infer_from_table(files))

    def with_features(self, features: FeatureColumns) -> Self:
        return self._each(lambda task: task.with_features(features))

    def fit(self, train: MoleculeStore) -> Self:
        joint = self._each(lambda task: task.fit(store_of(task, train)))
        if joint.density is not None:
            return joint
        shares = [float(task.objective.share(store_of(task, train))) for task in joint.tasks]
        return replace(joint, density=tuple(share / len(train) for share in shares))

    def take_over(self, other: Task) -> Self:
        theirs = {task.name: task for task in getattr(other, "tasks", (other,))}
        return self._each(lambda task: task.take_over(theirs[task.name]) if task.name in theirs else task)

    def calibrate(self, answers: JointPredictions, y: np.ndarray) -> Self:
        first, *others = self.tasks
        own = y[:, : len(first.targets)]
        return replace(self, tasks=(first.calibrate(answers.by_task[0], own), *others))

    def dataset_of(self, task: Task, dataset: Any) -> Any:
        """Return a data set with the targets of one task alone."""
        return replace(dataset, task=task, store=store_of(task, dataset.store))

    # storage

    def config(self) -> dict[str, Any]:
        return {"task": self.name, "targets": list(self.targets), "tasks": [task.config() for task in self.tasks]}

    def to_dict(self) -> dict[str, Any]:
        tasks = [task.to_dict() for task in self.tasks]
        return {"name": self.name, "targets": list(self.targets), "tasks": tasks}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Self:
        kinds = ["regression", "classification", "multiclass"]
        check(record, entries({"tasks": list_of(entries({"name": one_of(kinds)}), 2, 3)}), "task")
        tasks = tuple(TASKS[task["name"]].load().from_dict(task) for task in record["tasks"])
        return cls(tasks=tasks)
