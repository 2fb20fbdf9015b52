"""Classes of atoms and bonds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from gtx.data.feature_columns import parse_labels
from gtx.errors import InputError, printable
from gtx.schema import Record, one_of
from gtx.tasks.classification import Classification, Multiclass
from gtx.tasks.labels import check_count, in_order, listed, places, written
from gtx.tasks.levels import LevelTask, OfAtoms, OfBonds
from gtx.tasks.metrics import Target
from gtx.tasks.options import LevelClassOptions, learned
from gtx.tasks.task import Metric, Task

if TYPE_CHECKING:
    from gtx.data import File, MoleculeStore


# --- Classes of atoms or bonds, such as whether an enzyme attacks there.

KINDS = {kind.name: kind for kind in (Classification, Multiclass)}


@dataclass(frozen=True)
class LevelRows:
    """Atoms or bonds in the place of molecules, for a task of molecules: `y` `[R, T]`."""

    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class LevelClassification(LevelTask, LevelClassOptions):
    r"""A class of each part of a molecule, for each of T targets, learned by cross-entropy: \(-\ln p_y\).

    A part is learned as a molecule is: by `Classification` if all targets have two classes, else by `Multiclass`. So
    answers are those of that task, in lists: of two classes the probability of the second, `<target>_pred`; of more the
    likeliest class, `<target>_pred`, and the probability of each, `<target>_<class>`. A subclass says which parts there
    are.

    The best epoch is that of the least validation loss.

    Args:
        targets: names of the target columns; a cell is a list, see `gtx.data.feature_columns.parse_labels`.
        class_weights: "balanced" gives all classes of a target the same say in the loss, whatever their numbers.
        each: the task of one part, settled by the table.
    """

    items: ClassVar[tuple[str, str]] = ("class", "classes")
    discrete: ClassVar[bool] = True
    epochs: ClassVar[int] = 20

    each: Classification | Multiclass | None = learned()

    @property
    def metrics(self) -> dict[str, Metric]:  # type: ignore[override]
        """Metrics of `Classification` or of `Multiclass`."""
        return self.each.metrics

    @property
    def places(self) -> list[Target]:
        return self.each.places

    # a table's cells

    def infer_from_table(self, files: Sequence[File]) -> Self:
        classes = []
        for name in self.targets:
            cells = files[0].cells(name)
            found = in_order(item for cell in cells for item in _labels(cell, forgiving=True) or ())
            if not found:
                what = f"holds no list of classes in any of the {len(cells)} rows"
                raise InputError(f"target column {name!r} {what}; one class for each {self.per} was expected")
            check_count(found, name, self.name, f"; for numbers there is --task {self.per}s")
            classes.append(found)
        kind = Classification if all(len(found) == 2 for found in classes) else Multiclass
        each = kind(self.targets, class_weights=self.class_weights, classes=tuple(classes))
        return replace(self, each=each)

    def read(self, target: int, cell: str) -> np.ndarray | None:
        """The numbers of the classes."""
        if (found := _labels(cell)) is None:
            return None
        values = places(found, labels := self.each.labels(target))
        for i in np.flatnonzero(np.isinf(values))[:1]:
            item = f"item {i + 1}, '{printable(found[i], 20)}',"
            raise InputError(f"{item} is none of the classes {listed(labels)} of the training table, nor null")
        return values

    # training

    @property
    def out_channels(self) -> int:
        return self.each.out_channels

    @property
    def validation_channels(self) -> int:
        return 3 * len(self.targets)

    def fitted(self, train: MoleculeStore) -> Self:
        return replace(self, each=self.each.fitted(LevelRows(self.values(train).cpu())))

    def adopting(self, other: Task) -> Self:
        return replace(self, each=self.each.adopting(other.each)) if type(other) is type(self) else self

    def outputs_of(self, other: Task) -> list[int] | None:
        return self.each.outputs_of(other.each) if type(other) is type(self) else None

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return self.each.elementwise(output, target)

    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Losses, and whether the likeliest class is right."""
        p = self.each.softmaxes(output)
        own = [p[:, place.columns] for place in self.places]
        likeliest = [(one[:, 0] > 0.5).long() if one.shape[1] == 1 else one.argmax(1) for one in own]
        return [self.elementwise(output, target), torch.stack(likeliest, 1) == target]

    @property
    def validated(self) -> tuple[str, ...]:
        return ("accuracy",)  # the others need all probabilities at once, which no epoch keeps

    def validation_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        (accuracy,) = means
        return {} if accuracy.isnan().all() else {"val_accuracy": float(accuracy.nanmean())}

    def ideal_predictions(self, y: np.ndarray) -> np.ndarray:
        return self.each.regressands(LevelRows(torch.from_numpy(y))).numpy()

    # prediction

    def answer_kinds(self, target: int, members: int) -> list[str]:
        return list(self.each.kinds(target, members))

    def predicted(self, outputs: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
        answers = self.each.decode(outputs, LevelRows(outputs[:, 0]))
        return answers.mean, list(answers.table)

    def notes(self) -> list[str]:
        return self.each.notes()

    # storage

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name != "class_weights"}  # `each` has them

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        own = super().from_dict({name: value for name, value in plain.items() if name != "class_weights"})
        each = KINDS[own.each["name"]].from_dict(own.each)
        if each.targets != own.targets:
            raise InputError(f"task.each.targets: expected those of the task, {list(own.targets)}")
        return replace(own, each=each, class_weights=each.class_weights)

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        return Record({"each": Record({"name": one_of(list(KINDS))})})  # which checks the rest itself


def _labels(cell: str, forgiving: bool = False) -> list[str | None] | None:
    """The labels of a cell's list, as `gtx.tasks.labels.written` has them; None where it is blank, or if `forgiving` no
    list."""
    try:
        items = parse_labels(cell)
    except InputError:
        if forgiving:
            return None
        raise
    return None if items is None else [None if item is None else written(item) for item in items]


# --- Classes of atoms, such as whether an enzyme attacks there.


@dataclass(frozen=True)
class AtomClassification(OfAtoms, LevelClassification):
    """A class of each atom of the graph, in the order in which the SMILES or the mol block has them, see
    `LevelClassification`."""

    name: ClassVar[str] = "atom-classes"


# --- Classes of bonds, such as whether a reaction breaks it.


@dataclass(frozen=True)
class BondClassification(OfBonds, LevelClassification):
    """A class of each bond between atoms of the graph, in RDKit's order of bonds, see `LevelClassification`."""

    name: ClassVar[str] = "bond-classes"
