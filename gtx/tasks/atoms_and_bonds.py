"""Regression and classification of atoms and of bonds."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import torch
from torch import Tensor
from torch_geometric.utils import softmax

from gtx.base.errors import InputError, did_you_mean, printable
from gtx.data.feature_columns import parse_labels, parse_list, split_list
from gtx.molecules.graphs import ATOM_FEATURE_VALUES, ATOM_INDEX
from gtx.schema import MappingOf, OrNone, Record, Value, anything, number, one_of
from gtx.settings.options import learned
from gtx.settings.tasks import AtomOptions, LevelClassOptions, LevelOptions
from gtx.tasks.classification import BinaryClassification, MulticlassClassification
from gtx.tasks.labels import check_count, in_order, label_indices, listed, written
from gtx.tasks.levels import LevelTask, OfAtoms, OfBonds
from gtx.tasks.metrics import LOSSES, Target, constants
from gtx.tasks.numbers import parse_bound
from gtx.tasks.regression import Regression
from gtx.tasks.scaling import TargetScaler
from gtx.tasks.task import Metric, Task

if TYPE_CHECKING:
    from gtx.data import FeatureColumns, MoleculeStore
    from gtx.data.row_log import InputFile

# --- Regression, such as of charges or lengths.


@dataclass(frozen=True)
class LevelRegression(LevelTask, LevelOptions):
    """Regression of T numbers for each atom or bond, learned as z-scores of those of the training molecules.

    A subclass sets the level, and may transform outputs (`settled_outputs`).

    Args:
        targets: names of the target columns; a cell is a list, see `gtx.data.feature_columns.parse_list`.
        loss: loss of the z-scores, "mse", "mae" or "huber" (delta 1); not stored in a model file.
        scaler: scaler of the targets, fitted to the training molecules.

    Raises:
        InputError: there is no such loss.
    """

    metrics: ClassVar[dict[str, Metric]] = Regression.metrics
    items: ClassVar[tuple[str, str]] = ("number", "numbers")
    unsaved: ClassVar[frozenset[str]] = frozenset({"loss"})

    scaler: TargetScaler = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.loss not in LOSSES:
            raise InputError(f"loss: expected one of {', '.join(LOSSES)} for {self.name}, got {self.loss}")

    @cached_property
    def places(self) -> list[Target]:
        return [Target(name, slice(t, t + 1)) for t, name in enumerate(self.targets)]

    def infer_from_table(self, files: Sequence[InputFile]) -> Self:
        for t, name in enumerate(self.targets):
            cells = files[0].cells(name)
            if all(self.parsed(t, cell) is None for cell in cells):
                what = f"holds no list of numbers in any of the {len(cells)} rows"
                raise InputError(f"target column {name!r} {what}; one number for each {self.per} was expected")
        return self

    def read(self, target: int, cell: str) -> np.ndarray | None:
        return parse_list(cell, parse_bound)

    def bounds_in_list(self, cell: str) -> int:
        return sum(parse_bound(item) is not None for item in split_list(cell))

    # training

    @property
    def out_channels(self) -> int:
        return len(self.targets)

    @property
    def num_predictions(self) -> int:
        return len(self.targets)

    @property
    def validation_channels(self) -> int:
        return 4 * len(self.targets)

    def fitted(self, train: MoleculeStore) -> Self:
        values = self.values(train).cpu()
        for name, blank in zip(self.targets, values.isnan().all(0).tolist(), strict=True):
            if blank:
                raise InputError(f"target {name!r} has no value among the {self.per}s of the training molecules")
        return self if self.scaler is not None else replace(self, scaler=TargetScaler.fit(values))

    def adopting(self, other: Task) -> Self:
        if not isinstance(other, LevelRegression) or type(other) is not type(self) or other.targets != self.targets:
            return self
        return replace(self, scaler=other.scaler)

    def examples(self, store: MoleculeStore) -> MoleculeStore:
        scaled = self.scaler.scale(self.values(store).cpu()).double().to(store.device)
        return self.with_level_targets(store, scaled)

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return LOSSES[self.loss](output, target, reduction="none")

    def measures(self, output: Tensor, target: Tensor) -> list[Tensor]:
        """Losses, squares and sizes of errors."""
        error = output - target
        return [self.elementwise(output, target), error.square(), error.abs()]

    def validation_scores(self, means: Sequence[Tensor], val: MoleculeStore) -> dict[str, float]:
        y, sd = self.values(val).cpu().double(), self.scaler.sd
        squares, mae = means  # of scaled numbers
        rmse, variance = squares.sqrt(), (y - y.nanmean(0)).square().nanmean(0)
        r2 = torch.where(variance > 0, 1 - squares * sd.square() / variance, torch.nan)
        found = {"rmse": rmse * sd, "mae": mae * sd, "r2": r2}
        logged = {f"val_{name}": float(each.nanmean()) for name, each in found.items() if not each.isnan().all()}
        return {**logged, "val_score": float((mae if self.loss == "mae" else rmse).nanmean())}

    # prediction

    def answer_suffixes(self, target: int, members: int) -> list[str]:
        return ["pred", "std"] if members > 1 else ["pred"]

    def predicted(self, outputs: Tensor) -> tuple[np.ndarray, list[np.ndarray]]:
        """Compute the mean over members, and their standard deviation if there are several."""
        values = self.scaler.unscale(outputs).numpy()
        mean = values.mean(1)
        parts = [mean, values.std(1, ddof=1)] if values.shape[1] > 1 else [mean]
        return mean, [part[:, t] for t in range(len(self.targets)) for part in parts]

    # storage

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        task = super().from_dict(plain)
        return replace(task, scaler=TargetScaler.for_targets(plain["scaler"], task.targets))

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        return Record({"scaler": MappingOf(anything())})  # which checks itself


# --- Regression of atoms, with a total if there is one.

CHARGE = "charge"


@dataclass(frozen=True)
class AtomRegression(OfAtoms, LevelRegression, AtomOptions):
    r"""Task of predicting T numbers for each atom, in the order of the atoms in the SMILES or mol block.

    With `sum_to`, the predictions for the atoms of a molecule sum to a total Q. The network predicts a value \(y_i\)
    and a logit \(u_i\) for each atom i. The softmax of the logits distributes the difference to the total over the
    atoms:

    \[ \hat y_i = y_i + w_i \Big( Q - \sum_j y_j \Big), \qquad w_i = \frac{e^{u_i}}{\sum_j e^{u_j}} \]

    Source: Guan et al. 2021 (https://doi.org/10.1039/D0SC04823B), as in chemprop.

    Args:
        targets: names of the target columns.
        sum_to: total Q of every target: "charge" (the formal charge of the molecule), a number, or the name of a
            feature column (`gtx.data.FeatureColumns`). None for no constraint.
        gap: difference between the sum of the training values and Q, averaged over molecules and targets.
        place: index of the feature column among the descriptors, counted from the end; set by `reading`.

    Raises:
        InputError: `sum_to` is not a finite number.
    """

    name: ClassVar[str] = "atoms"
    unsaved: ClassVar[frozenset[str]] = LevelRegression.unsaved | {"place"}

    gap: float | None = learned()
    place: int | None = learned()

    def __post_init__(self) -> None:
        super().__post_init__()
        total = self.sum_to
        if isinstance(total, str):  # on the command line a number is a word
            with suppress(ValueError):
                total = float(total)
        if isinstance(total, (int, float)):
            if not abs(total) < np.inf:
                raise InputError(f"sum_to: expected a finite number, got {self.sum_to!r}")
            object.__setattr__(self, "sum_to", float(total))

    def reading(self, features: FeatureColumns | None) -> Self:
        if self.sum_to == CHARGE or not isinstance(self.sum_to, str):
            return self
        names = features.names if features else ()
        if features is None or self.sum_to not in names:
            what = f"{CHARGE}, a number or one of --feature-columns"
            raise InputError(f"sum_to: expected {what}, got {self.sum_to!r}{did_you_mean(self.sum_to, names)}")
        return replace(self, place=names.index(self.sum_to) - features.width)

    @property
    def out_channels(self) -> int:
        """Outputs per atom: T numbers, and with a total T logits."""
        return len(self.targets) * (1 if self.sum_to is None else 2)

    def totals(self, atoms: Tensor, descriptors: Tensor, molecule: Tensor, like: Tensor) -> Tensor:
        """Compute the total of each molecule, `[B]`; NaN if a charge has no code or the column is blank.

        Args:
            atoms: codes `[N, A]`.
            descriptors: `[B, D]`.
            molecule: the molecule of each atom, int64 `[N]`.
            like: tensor of the dtype and device of the result.
        """
        count = len(descriptors)
        if self.place is not None:
            return descriptors[:, self.place].to(like.dtype)
        if isinstance(self.sum_to, (int, float)):
            return like.new_full((count,), self.sum_to)
        code = atoms[:, ATOM_INDEX[CHARGE]].to(like.dtype)
        formal = torch.where(code > 0, code - 1 + ATOM_FEATURE_VALUES[CHARGE][0], torch.nan)
        return like.new_zeros(count).index_add(0, molecule, formal)

    def settled_outputs(self, output: Tensor, batch: Any) -> Tensor:
        if self.sum_to is None:
            return output
        scaled, logits = output.chunk(2, dim=1)
        molecule, count = batch.batch, batch.num_graphs
        mean, sd = (constants(each.tolist(), scaled) for each in (self.scaler.mean, self.scaler.sd))
        total = self.totals(batch.x, batch.u, molecule, scaled)[:, None]
        predicted = scaled.new_zeros(count, len(self.targets)).index_add(0, molecule, scaled * sd + mean)
        missing = torch.where(total.isnan(), 0.0, total - predicted) * torch.where(sd > 0, 1 / sd, 0.0)
        return scaled + softmax(logits, molecule, num_nodes=count) * missing[molecule]

    def fitted(self, train: MoleculeStore) -> Self:
        task = super().fitted(train)
        if self.place is None:
            self.reading(None)  # raises if a column is missing
        if self.sum_to is None or task.gap is not None:
            return task
        if self.sum_to == CHARGE and train.atom_columns[ATOM_INDEX[CHARGE] :][:1] != (CHARGE,):
            columns = list(train.atom_columns)
            raise InputError(f"sum_to: expected molecules with formal charges, got atoms with {columns}")
        y, owner = self.values(train).cpu().double(), self.owner(train).cpu()
        total = self.totals(train.atoms.cpu(), train.descriptors.cpu(), owner, y)[:, None]
        off = (y.new_zeros(len(train), y.shape[1]).index_add(0, owner, y) - total).abs()
        return task if off.isnan().all() else replace(task, gap=float(off.nanmean()))  # of whole lists alone

    def prediction_warnings(self, store: MoleculeStore) -> list[list[str]]:
        warnings = super().prediction_warnings(store)
        if self.sum_to is not None:
            why = "an atom's formal charge is beyond ±4" if self.sum_to == CHARGE else f"{self.sum_to!r} is blank"
            unknown = self.totals(store.atoms, store.descriptors, self.owner(store), torch.zeros(0)).isnan()
            for i in unknown.nonzero().flatten().tolist():
                warnings[i].append(f"the values of its atoms sum to no total: {why}")
        return warnings

    def notes(self) -> list[str]:
        if self.sum_to is None:
            return []
        total = "its formal charge" if self.sum_to == CHARGE else self.sum_to
        total = f"{total:g}" if isinstance(total, float) else total
        missed = "" if self.gap is None else f"; those of the training rows miss it by {self.gap:.2g} on average"
        return [f"the predictions of a molecule's atoms sum to {total}{missed}"]

    @classmethod
    def header_entries(cls, targets: int) -> Record:
        total = Value("a text or a number", lambda value: isinstance(value, (str, float)))
        return Record({"scaler": MappingOf(anything())}, {"sum_to": OrNone(total), "gap": OrNone(number(0))})


@dataclass(frozen=True)
class BondRegression(OfBonds, LevelRegression):
    """Task of predicting T numbers for each bond, in RDKit's order of bonds.

    A bond has no direction: its number is a function of the sum and the difference of its atoms' states
    (`gtx.nn.bonds.BondVectorFromAtoms`).
    """

    name: ClassVar[str] = "bonds"


# --- Classification, such as whether an enzyme attacks an atom.

EACH: dict[str, type[BinaryClassification] | type[MulticlassClassification]] = {
    BinaryClassification.name: BinaryClassification,
    MulticlassClassification.name: MulticlassClassification,
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

    Each atom or bond is treated like a molecule: by `BinaryClassification` if all targets have two classes, else by
    `MulticlassClassification`. Predictions are lists. For two classes, `<target>_pred` has the probability of the
    second class. For more classes, `<target>_pred` has the likeliest class, and `<target>_<class>` has the probability
    of each class. A subclass sets the level. The best epoch is the epoch with the smallest validation loss.

    Args:
        targets: names of the target columns; a cell is a list, see `gtx.data.feature_columns.parse_labels`.
        class_weights: "balanced" gives all classes of a target the same total weight in the loss.
        positive: positive class of targets of two classes, see `BinaryClassification`.
        each: task for a single atom or bond, chosen from the cells of the table.
    """

    items: ClassVar[tuple[str, str]] = ("class", "classes")
    unsaved: ClassVar[frozenset[str]] = frozenset({"class_weights", "positive"})  # `each` has them
    discrete: ClassVar[bool] = True
    epochs: ClassVar[int] = 20

    each: BinaryClassification | MulticlassClassification = learned()

    @property
    def metrics(self) -> dict[str, Metric]:  # type: ignore[override]
        """Metrics of `BinaryClassification` or of `MulticlassClassification`."""
        return self.each.metrics

    @property
    def places(self) -> list[Target]:
        return self.each.places

    # a table's cells

    def infer_from_table(self, files: Sequence[InputFile]) -> Self:
        classes = []
        for name in self.targets:
            cells = files[0].cells(name)
            items = [item for cell in cells for item in _labels(cell, forgiving=True) or ()]
            found = in_order(items, self.positive)
            if not found:
                what = f"holds no list of classes in any of the {len(cells)} rows"
                raise InputError(f"target column {name!r} {what}; one class for each {self.per} was expected")
            check_count(found, name, self.name, f"; for numbers there is --task {self.per}s")
            classes.append(found)
        if all(len(labels) == 2 for labels in classes):
            binary = BinaryClassification(self.targets, class_weights=self.class_weights, positive=self.positive)
            for name, labels in zip(self.targets, classes, strict=True):
                binary.check_labels(name, labels)
            return replace(self, each=replace(binary, classes=tuple(classes)))
        if self.positive is not None:
            raise InputError(f"positive: expected targets of two classes, got {listed(max(classes, key=len))}")
        each = MulticlassClassification(self.targets, class_weights=self.class_weights, classes=tuple(classes))
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

    def unread_words(self, cell: str) -> str:
        unknown = _labels(cell, forgiving=True) is not None
        return "a label that the model does not know" if unknown else super().unread_words(cell)

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
        parts = [p[:, target_columns.columns] for target_columns in self.places]
        likeliest = [(one[:, 0] > 0.5).long() if one.shape[1] == 1 else one.argmax(1) for one in parts]
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

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Self:
        task = super().from_dict(plain)
        each = EACH[plain["each"]["name"]].from_dict(plain["each"])
        if each.targets != task.targets:
            raise InputError(f"task.each.targets: expected those of the task, {list(task.targets)}")
        return replace(task, each=each, class_weights=each.class_weights)

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


@dataclass(frozen=True)
class AtomClassification(OfAtoms, LevelClassification):
    """Task of predicting classes of each atom, in the order of the atoms in the SMILES or mol block."""

    name: ClassVar[str] = "atom-classes"


@dataclass(frozen=True)
class BondClassification(OfBonds, LevelClassification):
    """Task of predicting classes of each bond, in RDKit's order of bonds."""

    name: ClassVar[str] = "bond-classes"
