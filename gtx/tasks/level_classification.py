"""Classification of atoms and bonds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor

from gtx.data.feature_columns import parse_labels
from gtx.errors import InputError, printable
from gtx.schema import Record, one_of
from gtx.tasks.classification import Classification, Multiclass
from gtx.tasks.labels import check_count, in_order, label_indices, listed, written
from gtx.tasks.levels import LevelTask, OfAtoms, OfBonds
from gtx.tasks.metrics import Target
from gtx.tasks.options import LevelClassOptions, learned
from gtx.tasks.task import Metric, Task

if TYPE_CHECKING:
    from gtx.data import File, MoleculeStore


# --- Classes of atoms or bonds, such as whether an enzyme attacks there.

EACH: dict[str, type[Classification] | type[Multiclass]] = {
    Classification.name: Classification,
    Multiclass.name: Multiclass,
}


@dataclass(frozen=True)
class _Rows:
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


def as_molecules(y: Tensor) -> MoleculeStore:
    """Present targets `[R, T]` of atoms or bonds to a task of molecules.

    The result has `y` and a length alone: a task of classes reads nothing else of a store.
    """
    return cast("MoleculeStore", _Rows(y))


@dataclass(frozen=True)
class LevelClassification(LevelTask, LevelClassOptions):
    r"""Classification of each atom or bond, for each of T targets, learned by cross-entropy: \(-\ln p_y\).

    An atom or bond is learned like a molecule: by `Classification` if all targets have two classes, else by
    `Multiclass`. Answers are those of that task, in lists: of two classes the probability of the second,
    `<target>_pred`; of more the likeliest class, `<target>_pred`, and the probability of each, `<target>_<class>`. A
    subclass sets the level.

    The best epoch is that of the least validation loss.

    Args:
        targets: names of the target columns; a cell is a list, see `gtx.data.feature_columns.parse_labels`.
        class_weights: "balanced" gives all classes of a target the same total weight in the loss.
        each: the task of one atom or bond, chosen by the table.
    """

    items: ClassVar[tuple[str, str]] = ("class", "classes")
    discrete: ClassVar[bool] = True
    epochs: ClassVar[int] = 20

    each: Classification | Multiclass = learned()

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
        task = Classification if all(len(labels) == 2 for labels in classes) else Multiclass
        each = task(self.targets, class_weights=self.class_weights, classes=tuple(classes))
        return replace(self, each=each)

    def read(self, target: int, cell: str) -> np.ndarray | None:
        """Parse the list of a cell to numbers of classes, see `LevelTask.read`."""
        found = _labels(cell)
        if found is None:
            return None
        labels = self.each.labels(target)
        values = label_indices(found, labels)
        for i in np.flatnonzero(np.isinf(values)).tolist()[:1]:
            item = f"item {i + 1}, '{printable(str(found[i]), 20)}',"
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
        return replace(self, each=self.each.fitted(as_molecules(self.values(train).cpu())))

    def adopting(self, other: Task) -> Self:
        if not isinstance(other, LevelClassification) or type(other) is not type(self):
            return self
        return replace(self, each=self.each.adopting(other.each))

    def outputs_of(self, other: Task) -> list[int] | None:
        if not isinstance(other, LevelClassification) or type(other) is not type(self):
            return None
        return self.each.outputs_of(other.each)

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return self.each.elementwise(output, target)

    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Compute losses, and whether the likeliest class is right."""
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
        return self.each.regressands(as_molecules(torch.from_numpy(y))).numpy()

    # prediction

    def answer_suffixes(self, target: int, members: int) -> list[str]:
        return list(self.each.answer_suffixes(target, members))

    def predicted(self, outputs: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
        answers = self.each.decode(outputs, as_molecules(outputs[:, 0]))
        return answers.mean, list(answers.table)

    def notes(self) -> list[str]:
        return self.each.notes()

    # storage

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name != "class_weights"}  # `each` has them

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        own = super().from_dict({name: value for name, value in plain.items() if name != "class_weights"})
        each = EACH[plain["each"]["name"]].from_dict(plain["each"])
        if each.targets != own.targets:
            raise InputError(f"task.each.targets: expected those of the task, {list(own.targets)}")
        return replace(own, each=each, class_weights=each.class_weights)

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        return Record({"each": Record({"name": one_of(list(EACH))})})  # which checks the rest itself


def _labels(cell: str, forgiving: bool = False) -> list[str | None] | None:
    """Parse the labels of a cell's list; None if it is blank, or if `forgiving` no list."""
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
    """Classification of each atom of the graph, in the order of the SMILES or the mol block."""

    name: ClassVar[str] = "atom-classes"


# --- Classes of bonds, such as whether a reaction breaks it.


@dataclass(frozen=True)
class BondClassification(OfBonds, LevelClassification):
    """Classification of each bond between atoms of the graph, in RDKit's order of bonds."""

    name: ClassVar[str] = "bond-classes"
