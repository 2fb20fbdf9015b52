"""Several tasks in one model: targets of molecules, atoms and bonds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from gtx.base.errors import InputError
from gtx.data.columns import Row
from gtx.schema import ListOf, Record, one_of
from gtx.settings.options import learned
from gtx.settings.tasks import MoleculeAtomBondOptions
from gtx.tasks.atoms_and_bonds import AtomClassification, AtomRegression, BondClassification, BondRegression
from gtx.tasks.levels import LevelTask
from gtx.tasks.metrics import mean_scores
from gtx.tasks.regression import Regression
from gtx.tasks.task import Answers, Metric, Scores, Task

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, MoleculeStore
    from gtx.data.row_log import InputFile, RowLog


# --- Answers and scores of several tasks.


@dataclass(frozen=True)
class JointAnswers:
    """Answers of a joint task for m molecules: the answers of each task.

    Attributes:
        by_task: answers of each task, in order.
        warnings: per molecule, a list of texts.
    """

    by_task: tuple[Answers, ...]
    warnings: list[list[str]]

    @classmethod
    def of(cls, by_task: Sequence[Answers]) -> JointAnswers:
        """Join the answers of tasks, with all warnings."""
        every = zip(*(each.warnings for each in by_task), strict=True)
        return cls(tuple(by_task), [list(chain(*found)) for found in every])

    @property
    def finite(self) -> np.ndarray:
        """Mask `[m]` of the molecules with an answer from every task."""
        return np.logical_and.reduce([each.finite for each in self.by_task])

    def subset(self, rows: np.ndarray) -> JointAnswers:
        """Select the molecules `rows`."""
        return JointAnswers(tuple(each.subset(rows) for each in self.by_task), [self.warnings[i] for i in rows])

    def columns(self) -> list[np.ndarray]:
        """Return the columns of all tasks; blank for a molecule that is not `finite`."""
        blank = ~self.finite
        found = [column.copy() for each in self.by_task for column in each.columns()]
        for column in found:
            column[blank] = np.nan if column.dtype.kind == "f" else None
        return found


class JointScores:
    """Scores of a table, task by task.

    Args:
        by_task: scores of each task.
        names: names of the metrics of all tasks.
    """

    def __init__(self, by_task: Sequence[Scores], names: Sequence[str]) -> None:
        self.by_task = by_task
        self.names = names

    def add(self, rows: Sequence[Row], answers: JointAnswers) -> None:
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
    """Join the scores of the baselines of several tasks, by name and part of the split.

    None for targets that a baseline does not predict.
    """

    def joined(method: str, where: str) -> dict[str, Any]:
        per_target: dict[str, Any] = {}
        for task, found in zip(tasks, by_task, strict=True):
            own = found[method][where]["per_target"] if method in found else {}
            per_target |= {name: own.get(name, dict.fromkeys(task.metrics)) for name in task.targets}
        return mean_scores(per_target, dict.fromkeys(name for task in tasks for name in task.metrics))

    methods = dict.fromkeys(name for found in by_task for name in found)
    return {method: {where: joined(method, where) for where in ("train", "val", "test")} for method in methods}


# --- The task.

TASKS_OF_LEVELS: dict[str, type[Task]] = {
    task.name: task for task in (Regression, AtomRegression, AtomClassification, BondRegression, BondClassification)
}


@dataclass(frozen=True)
class MoleculeAtomBondTask(Task, MoleculeAtomBondOptions):
    r"""Joint task with targets of two or three levels (molecules, atoms, bonds): one encoder, one head per level.

    The loss is the sum of the losses of the tasks, each averaged over the values of the task in the whole training set:

    \[ L = \sum_k \frac{1}{n_k} \sum_{i=1}^{n_k} \ell_k(\hat z_{ki}, z_{ki}) \]

    Losses are in z-scores for numbers and in nats for classes, and a task with more values has no larger weight.
    Source: models of mixed targets in chemprop (`MolAtomBondMPNN` of version 2.3), with one encoder and a predictor for
    each level.

    A row needs a value of at least one target. Scores are means over the targets for which they are defined. The first
    columns of `y` in a store are the targets of molecules; for a table, the next columns are the means of the lists.

    Args:
        tasks: a `Regression`, an `AtomRegression` or `AtomClassification`, and a `BondRegression` or
            `BondClassification`.
        density: mean weight per molecule of each task in the training rows, see `Task.share`.

    Raises:
        InputError: there are other tasks, fewer than two tasks, or two tasks of the same level; a target is named
            twice; or the uncertainty of a `Regression` is "similarity", which reads training molecules.
    """

    name: ClassVar[str] = "molecule-atom-bond"
    supports: ClassVar[frozenset[str]] = frozenset({"fine-tuning"})
    targets: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = field(default=(), kw_only=True)
    density: tuple[float, ...] = learned()

    def __post_init__(self) -> None:
        order = list(TASKS_OF_LEVELS.values())
        if unlike := [each for each in self.tasks if type(each) not in order]:
            expected = ", ".join(TASKS_OF_LEVELS)
            raise InputError(f"tasks that go together are {expected}; got {unlike[0].name}")
        tasks = tuple(sorted(self.tasks, key=lambda each: order.index(type(each))))
        if len({each.per for each in tasks}) < max(2, len(tasks)):
            one, names = "one of molecules, one of atoms and one of bonds", ", ".join(each.name for each in tasks)
            raise InputError(f"tasks that go together are two or three, {one}: got {names}")
        if getattr(tasks[0], "uncertainty", "none") == "similarity":
            raise InputError("uncertainty: similarity does not go together with targets of atoms or bonds")
        object.__setattr__(self, "tasks", tasks)
        object.__setattr__(self, "targets", tuple(name for each in tasks for name in each.targets))
        super().__post_init__()

    @property
    def metrics(self) -> dict[str, Metric]:  # type: ignore[override]
        """Metrics of all levels."""
        return {name: metric for each in self.tasks for name, metric in each.metrics.items()}

    @property
    def per(self) -> str:  # type: ignore[override]
        """Level of the first task."""
        return self.tasks[0].per

    @property
    def also(self) -> dict[str, int]:  # type: ignore[override]
        """Numbers of outputs of the other tasks, by level."""
        return {each.per: each.out_channels for each in self.tasks[1:]}

    @property
    def out_channels(self) -> int:
        return self.tasks[0].out_channels

    @property
    def num_predictions(self) -> int:
        return len(self.targets)

    @property
    def validation_channels(self) -> int:
        return sum(each.validation_channels for each in self.tasks)

    def store_of(self, task: Task, store: MoleculeStore) -> MoleculeStore:
        """Return a store with the targets of one task alone in `y`."""
        if store.y is None or task.per != "molecule":
            return store
        return replace(store, y=store.y[:, : len(task.targets)])

    def _each(self, change: Callable[[Task], Task]) -> Self:
        return replace(self, tasks=tuple(map(change, self.tasks)))

    # a table's cells

    def infer_from_table(self, files: Sequence[InputFile]) -> Self:
        return self._each(lambda task: task.infer_from_table(files))

    def reading(self, features: FeatureColumns | None) -> Self:
        return self._each(lambda task: task.reading(features))

    def parse(self, rows: Sequence[Row], columns: Sequence[str], row_log: RowLog) -> np.ndarray:
        return np.concatenate([task.parse(rows, columns, row_log) for task in self.tasks], axis=1)

    def parse_bounds(self, rows: Sequence[Row], columns: Sequence[str]) -> np.ndarray | None:
        return self.tasks[0].parse_bounds(rows, columns)

    def parse_lists(self, rows: Sequence[Row], columns: Sequence[str]) -> list[dict[str, np.ndarray]]:
        found = [task.parse_lists(rows, columns) for task in self._tasks_of_lists]
        return [{name: values for each in lists for name, values in each.items()} for lists in zip(*found, strict=True)]

    def attach_lists(
        self, store: MoleculeStore, lists: Sequence[dict[str, np.ndarray]]
    ) -> tuple[MoleculeStore, dict[int, tuple[str, str]]]:
        wrong: dict[int, tuple[str, str]] = {}
        for task in self._tasks_of_lists:
            own = [{name: found[name] for name in task.targets if name in found} for found in lists]
            store, misfits = task.attach_lists(store, own)
            wrong = misfits | wrong
        return store, wrong

    # training

    def known_molecules(self, store: MoleculeStore) -> Tensor:
        return torch.stack([task.known_molecules(self.store_of(task, store)) for task in self.tasks]).any(0)

    def fitted(self, train: MoleculeStore) -> Self:
        joint = self._each(lambda task: task.fitted(self.store_of(task, train)))
        if joint.density is not None:
            return joint
        shares = [float(task.share(self.store_of(task, train))) for task in joint.tasks]
        return replace(joint, density=tuple(share / len(train) for share in shares))

    def adopting(self, other: Task) -> Self:
        theirs = {task.name: task for task in getattr(other, "tasks", (other,))}
        return self._each(lambda task: task.adopting(theirs[task.name]) if task.name in theirs else task)

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        for task in self.tasks:
            store = task.examples(self.store_of(task, store))
        return store

    def forward(self, model: nn.Module, batch: Any) -> tuple[Tensor, ...]:
        outputs = model(batch)
        return tuple(task.forward(_Constant(out), batch) for task, out in zip(self.tasks, outputs, strict=True))

    def training_loss(self, output: Sequence[Tensor], batch: Any) -> Tensor:
        losses = [
            task.training_loss(own, batch) * (task.share(batch) / (density * self.share(batch)))
            for task, own, density in zip(self.tasks, output, self.density, strict=True)
        ]
        return torch.stack(losses).sum()

    def validation_outputs(self, output: Sequence[Tensor], batch: Any) -> Tensor:
        return torch.cat([task.validation_outputs(own, batch) for task, own in zip(self.tasks, output, strict=True)], 1)

    def validation(self, val: MoleculeStore) -> Callable[[Tensor], dict[str, float]]:
        scorers = [task.validation(self.store_of(task, val)) for task in self.tasks]
        widths, counts = [task.validation_channels for task in self.tasks], [len(task.targets) for task in self.tasks]

        def scores(outputs: Tensor) -> dict[str, float]:
            found = [score(own) for score, own in zip(scorers, outputs.split(widths, 1), strict=True)]
            logged = {}
            for name in dict.fromkeys(name for each in found for name in each):
                values = [
                    (each[name], n) for each, n in zip(found, counts, strict=True) if isfinite(each.get(name, nan))
                ]
                if name == "val_loss":
                    logged[name] = sum(value for value, _ in values)
                elif values:  # the mean over targets
                    logged[name] = sum(value * n for value, n in values) / sum(n for _, n in values)
            return logged

        return scores

    @property
    def validated(self) -> list[str]:
        """Validated metrics of any level; levels without a metric are left out."""
        return list(dict.fromkeys(name for task in self.tasks for name in task.validated))

    # prediction

    def output_columns(self, taken: Iterable[str], members: int = 1) -> dict[str, type]:
        columns_of_tasks: dict[str, type] = {}
        for task in self.tasks:
            columns_of_tasks |= task.output_columns([*taken, *columns_of_tasks], members)
        return columns_of_tasks

    def predict(self, members: Sequence[nn.Module], batch: Any) -> list[tuple[Tensor, ...]]:
        """Compute the outputs of each level for each molecule, see `Task.predict`."""
        outputs = [network(batch) for network in members]
        own = [task.predict([_Constant(out[k]) for out in outputs], batch) for k, task in enumerate(self.tasks)]
        return list(zip(*own, strict=True))

    def decode(self, outputs: Sequence[tuple[Tensor, ...]], store: MoleculeStore) -> JointAnswers:
        answers = []
        for k, task in enumerate(self.tasks):
            own_outputs = [each[k] for each in outputs]
            if task.per != "molecule":
                answers.append(task.decode(own_outputs, store))
            else:
                empty = torch.zeros(0, 1, task.out_channels, dtype=torch.float64)
                answers.append(task.decode(torch.stack(own_outputs) if own_outputs else empty, store))
        return JointAnswers.of(answers)

    def calibrated(self, answers: JointAnswers, y: np.ndarray) -> Self:
        first, *others = self.tasks
        own = y[:, : len(first.targets)]
        return replace(self, tasks=(first.calibrated(answers.by_task[0], own), *others))

    # scores and report

    def score(
        self, members: Sequence[nn.Module], store: MoleculeStore, answers: JointAnswers, rows: np.ndarray
    ) -> dict[str, Any]:
        pairs = zip(self.tasks, answers.by_task, strict=True)
        scores = [task.score(members, self.store_of(task, store), own_answers, rows) for task, own_answers in pairs]
        return join_scores(scores, self.metrics)

    def scores(self, columns: Sequence[str]) -> JointScores:
        return JointScores([task.scores(columns) for task in self.tasks], tuple(self.metrics))

    def seen_by(self, task: Task, dataset: Any) -> Any:
        """Return a data set with the targets of one task alone."""
        return replace(dataset, task=task, store=self.store_of(task, dataset.store))

    def notes(self) -> list[str]:
        return [line for task in self.tasks for line in task.notes()]

    # storage

    def config(self) -> dict[str, Any]:
        return {"task": self.name, "targets": list(self.targets), "tasks": [task.config() for task in self.tasks]}

    def to_dict(self) -> dict[str, Any]:
        tasks = [task.to_dict() for task in self.tasks]
        return {"name": self.name, "targets": list(self.targets), "density": list(self.density), "tasks": tasks}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        Record({"tasks": ListOf(Record({"name": one_of(list(TASKS_OF_LEVELS))}), 2, 3)}).check(plain, "task")
        joint = cls(tasks=tuple(TASKS_OF_LEVELS[task["name"]].from_dict(task) for task in plain["tasks"]))
        if plain.get("targets") != list(joint.targets):
            raise InputError(f"task.targets: expected those of its tasks, {list(joint.targets)}")
        return replace(joint, density=tuple(plain.get("density", ())))

    @property
    def _tasks_of_lists(self) -> list[LevelTask]:
        """Tasks of atoms and bonds."""
        return [task for task in self.tasks if isinstance(task, LevelTask)]


class _Constant(nn.Module):
    """Network that returns an output computed before."""

    def __init__(self, output: Tensor) -> None:
        super().__init__()
        self.output = output

    def forward(self, batch: Any) -> Tensor:
        return self.output
