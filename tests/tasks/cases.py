"""The list of tasks: whatever stands here is trained, saved, loaded, predicted and reported."""

import json
from collections.abc import Callable
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
    """A task, and how its targets follow from the bundled molecules.

    Attributes:
        task: what is asked.
        cells: of the table `tests.tables.molecules`, the targets, a column each.
        answers: columns of the predictions.
        settled: the class that the table makes of the task; the same by default.
    """

    task: Task | InferredTask
    cells: Callable[[pd.DataFrame], dict[str, list]]
    answers: tuple[str, ...]
    settled: type[Task] | None = None


def _above(column: pd.Series, low: object, high: object) -> list:
    return np.where(column > column.median(), high, low).tolist()


def _blanks(values: list) -> list:
    return ["" if i % 7 == 3 else value for i, value in enumerate(values)]


def _of_atoms(smiles: str, value: Callable[[Chem.Atom], object]) -> str:
    """A list of numbers or words, the first of them blank where there are many."""
    found = [value(atom) for atom in Chem.MolFromSmiles(smiles).GetAtoms()]
    return json.dumps([None, *found[1:]] if len(found) > 8 else found)


CASES = {
    "regression": Case(
        Regression(["gap", "dipole"], loss="mae"),
        lambda t: {"gap": _blanks(t.gap.tolist()), "dipole": t.dipole.tolist()},
        ("gap_pred", "gap_low", "gap_high", "dipole_pred", "dipole_low", "dipole_high"),
    ),
    "bounds": Case(
        Regression(["gap", "dipole"], censored=True, target_weights={"gap": 2}),
        lambda t: {"gap": [f">{x - 1}" if i % 7 == 3 else x for i, x in enumerate(t.gap)], "dipole": t.dipole.tolist()},
        ("gap_pred", "gap_low", "gap_high", "dipole_pred", "dipole_low", "dipole_high"),
    ),
    "a loss of one's own": Case(
        Regression("gap", loss=lambda output, target: torch.log(torch.cosh(output - target))),
        lambda t: {"gap": t.gap.tolist()},
        ("gap_pred", "gap_low", "gap_high"),
    ),
    "numbers with quantiles": Case(
        Regression(["gap", "dipole"], uncertainty="quantiles", coverage=0.8),
        lambda t: {"gap": _blanks(t.gap.tolist()), "dipole": t.dipole.tolist()},
        ("gap_pred", "gap_std", "gap_low", "gap_high", "dipole_pred", "dipole_std", "dipole_low", "dipole_high"),
    ),
    "classification": Case(
        InferredTask(["polar", "apolar"]),
        lambda t: {"polar": _blanks(_above(t.dipole, 0, 1)), "apolar": _above(-t.dipole, 0, 1)},
        ("polar_pred", "apolar_pred"),
        BinaryClassification,
    ),
    "two labels": Case(
        BinaryClassification(
            "activity", class_weights="balanced", calibration="temperature", sets=True, uncertainty="evidential"
        ),
        lambda t: {"activity": _blanks(_above(t.dipole, "inactive", "active"))},
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
            "size": _blanks(pd.qcut(t.gap, 3, labels=["s", "m", "l"]).astype(str).tolist()),
            "kind": [len(s) % 2 for s in t.smiles],
        },
        (*("size_pred", "size_l", "size_m", "size_s", "size_set"), *("kind_pred", "kind_0", "kind_1", "kind_set")),
    ),
    "fractions": Case(
        FractionRegression(["carbon", "oxygen", "others"], normalise=True),
        lambda t: {
            "carbon": _blanks([s.upper().count("C") for s in t.smiles]),
            "oxygen": _blanks([s.upper().count("O") for s in t.smiles]),
            "others": _blanks([s.upper().count("N") + 1 for s in t.smiles]),
        },
        ("carbon_pred", "oxygen_pred", "others_pred"),
    ),
    "atoms": Case(
        Regression(["charge", "neighbours"], level="atom", sum_to="charge", loss="mae"),
        lambda t: {
            "charge": _blanks([_of_atoms(s, lambda a: (a.GetAtomicNum() - 7) / 10) for s in t.smiles]),
            "neighbours": [_of_atoms(s, Chem.Atom.GetDegree) for s in t.smiles],
        },
        ("charge_pred", "neighbours_pred"),
    ),
    "bonds": Case(
        Regression("order", level="bond"),
        lambda t: {
            "order": _blanks(
                [str([b.GetBondTypeAsDouble() for b in Chem.MolFromSmiles(s).GetBonds()]) for s in t.smiles]
            )
        },
        ("order_pred",),
    ),
    "classes of atoms": Case(
        InferredTask(["hybrid", "kind"], "atom", class_weights="balanced"),
        lambda t: {
            "hybrid": _blanks([_of_atoms(s, lambda a: str(a.GetHybridization())) for s in t.smiles]),
            "kind": [_of_atoms(s, lambda a: "carbon" if a.GetAtomicNum() == 6 else "other") for s in t.smiles],
        },
        (*("hybrid_pred", "hybrid_SP", "hybrid_SP2", "hybrid_SP3"), *("kind_pred", "kind_carbon", "kind_other")),
        MulticlassClassification,
    ),
    "two classes of bonds": Case(
        BinaryClassification("ring", level="bond"),
        lambda t: {"ring": _blanks([str([b.IsInRing() for b in Chem.MolFromSmiles(s).GetBonds()]) for s in t.smiles])},
        ("ring_pred", "ring_class"),
    ),
    "molecule-atom-bond": Case(
        TaskList(
            tasks=(
                Regression("order", level="bond"),
                Regression("charge", level="atom", sum_to="charge"),
                Regression("gap"),
            )
        ),
        lambda t: {
            "gap": _blanks(t.gap.tolist()),
            "charge": [_of_atoms(s, lambda a: (a.GetAtomicNum() - 7) / 10) for s in t.smiles],
            "order": [str([b.GetBondTypeAsDouble() for b in Chem.MolFromSmiles(s).GetBonds()]) for s in t.smiles],
        },
        ("gap_pred", "gap_low", "gap_high", "charge_pred", "order_pred"),
    ),
    "sequence": Case(
        SequenceGenerationTask("product"),
        lambda t: {"product": _blanks(t.smiles.tolist())},
        ("product_pred", "product_log_probability", "product_valid"),
    ),
    "a task of one's own": Case(
        Yields(["carbon"]), lambda t: {"carbon": [s.upper().count("C") / len(s) for s in t.smiles]}, ("carbon_pred",)
    ),
}
