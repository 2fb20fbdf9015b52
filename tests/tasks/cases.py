"""The list of tasks: whatever stands here is trained, saved, loaded, predicted and reported."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from rdkit import Chem
from torch import Tensor

from gtx.sequence.task import SequenceGenerationTask
from gtx.tasks import (
    BinaryClassification,
    FractionRegression,
    InferredTask,
    Metric,
    MulticlassClassification,
    NumericObjective,
    NumericTask,
    Regression,
    Task,
    TaskList,
)
from gtx.tasks.metrics import has_values
from tests.tables import blanks, of_atoms, of_bonds


class YieldObjective(NumericObjective):
    metrics: ClassVar = {"mae": Metric("MAE", lambda p, y: (p - y).abs().mean(), has_values, lower=True)}

    def elementwise(self, output: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(output, target, reduction="none")

    def unscale(self, output: Tensor, store: object = None) -> Tensor:
        return output.double().sigmoid()


class Yields(NumericTask):
    """A task of one's own, in a user's file: numbers from 0 to 1, learned as their logits."""

    name = "yields"

    @property
    def objective(self) -> YieldObjective:
        return YieldObjective(self)


@dataclass(frozen=True)
class Case:
    """A task, its targets for the table `tests.tables.molecules`, columns of its predictions, and what it becomes."""

    task: Task | InferredTask
    cells: Callable[[pd.DataFrame], dict[str, Sequence]]
    answers: tuple[str, ...]
    settled: type[Task] | None = None


def above(column: pd.Series, low: object, high: object) -> list:
    return np.where(column > column.median(), high, low).tolist()


def count(table: pd.DataFrame, letter: str) -> list[int]:
    return [text.upper().count(letter) for text in table.smiles]


def partly(value: Callable[[Chem.Atom], object]) -> Callable[[Chem.Atom], object]:
    """The same but for the first atom of a large molecule, of which nothing is known."""
    return lambda atom: None if atom.GetIdx() == 0 and atom.GetOwningMol().GetNumAtoms() > 8 else value(atom)


CHARGE = partly(lambda atom: (atom.GetAtomicNum() - 7) / 10)
CHARGES = Regression("charge", level="atom", sum_to="charge")
INTERVALS = ("gap_pred", "gap_low", "gap_high", "dipole_pred", "dipole_low", "dipole_high")
ORDER, DEGREE = Chem.Bond.GetBondTypeAsDouble, partly(Chem.Atom.GetDegree)

CASES = {
    "regression": Case(
        Regression(["gap", "dipole"], loss="mae"), lambda t: {"gap": blanks(t.gap), "dipole": t.dipole}, INTERVALS
    ),
    "bounds": Case(
        Regression(["gap", "dipole"], censored=True, target_weights={"gap": 2}),
        lambda t: {"gap": [f">{x - 1}" if i % 7 == 3 else x for i, x in enumerate(t.gap)], "dipole": t.dipole},
        INTERVALS,
    ),
    "a loss of one's own": Case(
        Regression("gap", loss=lambda output, target: torch.log(torch.cosh(output - target))),
        lambda t: {"gap": t.gap},
        INTERVALS[:3],
    ),
    "numbers with quantiles": Case(
        Regression(["gap", "dipole"], uncertainty="quantiles", coverage=0.8),
        lambda t: {"gap": blanks(t.gap), "dipole": t.dipole},
        ("gap_pred", "gap_std", "gap_low", "gap_high", "dipole_pred", "dipole_std", "dipole_low", "dipole_high"),
    ),
    "classification": Case(
        InferredTask(["polar", "apolar"]),
        lambda t: {"polar": blanks(above(t.dipole, 0, 1)), "apolar": above(-t.dipole, 0, 1)},
        ("polar_pred", "apolar_pred"),
        BinaryClassification,
    ),
    "two labels": Case(
        BinaryClassification(
            "activity", class_weights="balanced", calibration="temperature", sets=True, uncertainty="evidential"
        ),
        lambda t: {"activity": blanks(above(t.dipole, "inactive", "active"))},
        ("activity_pred", "activity_class", "activity_vacuity", "activity_set"),
    ),
    "multiclass": Case(
        MulticlassClassification(
            ["size", "kind"],
            class_weights="balanced",
            calibration="isotonic",
            sets=True,
            set_kind="adaptive",
            coverage=0.8,
        ),
        lambda t: {
            "size": blanks(pd.qcut(t.gap, 3, labels=["s", "m", "l"]).astype(str)),
            "kind": [len(s) % 2 for s in t.smiles],
        },
        (*("size_pred", "size_l", "size_m", "size_s", "size_set"), *("kind_pred", "kind_0", "kind_1", "kind_set")),
    ),
    "fractions": Case(
        FractionRegression(["carbon", "oxygen", "others"], normalise=True),
        lambda t: {
            "carbon": blanks(count(t, "C")),
            "oxygen": blanks(count(t, "O")),
            "others": blanks(n + 1 for n in count(t, "N")),
        },
        ("carbon_pred", "oxygen_pred", "others_pred"),
    ),
    "atoms": Case(
        Regression(["charge", "neighbours"], level="atom", sum_to="charge", loss="mae"),
        lambda t: {"charge": blanks(of_atoms(t.smiles, CHARGE)), "neighbours": of_atoms(t.smiles, DEGREE)},
        ("charge_pred", "neighbours_pred"),
    ),
    "bonds": Case(
        Regression("order", level="bond"), lambda t: {"order": blanks(of_bonds(t.smiles, ORDER))}, ("order_pred",)
    ),
    "classes of atoms": Case(
        InferredTask(["hybrid", "kind"], "atom", class_weights="balanced"),
        lambda t: {
            "hybrid": blanks(of_atoms(t.smiles, partly(lambda a: str(a.GetHybridization())))),
            "kind": of_atoms(t.smiles, partly(lambda a: "carbon" if a.GetAtomicNum() == 6 else "other")),
        },
        (*("hybrid_pred", "hybrid_SP", "hybrid_SP2", "hybrid_SP3"), *("kind_pred", "kind_carbon", "kind_other")),
        MulticlassClassification,
    ),
    "two classes of bonds": Case(
        BinaryClassification("ring", level="bond"),
        lambda t: {"ring": blanks(of_bonds(t.smiles, Chem.Bond.IsInRing))},
        ("ring_pred", "ring_class"),
    ),
    "molecule-atom-bond": Case(
        TaskList(tasks=(Regression("order", level="bond"), CHARGES, Regression("gap"))),
        lambda t: {"gap": blanks(t.gap), "charge": of_atoms(t.smiles, CHARGE), "order": of_bonds(t.smiles, ORDER)},
        (*INTERVALS[:3], "charge_pred", "order_pred"),
    ),
    "sequence": Case(
        SequenceGenerationTask("product"),
        lambda t: {"product": blanks(t.smiles)},
        ("product_pred", "product_log_probability", "product_valid"),
    ),
    "a task of one's own": Case(
        Yields(["carbon"]),
        lambda t: {"carbon": [n / len(s) for n, s in zip(count(t, "C"), t.smiles, strict=True)]},
        ("carbon_pred",),
    ),
}
