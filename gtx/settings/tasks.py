"""Tasks by the words that the command line and model files use, and the options of each, as fields of its class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from gtx.base import additions
from gtx.settings import TaskEntry, option


@dataclass(frozen=True, kw_only=True)
class WeightOptions:
    """Options of every task of numbers or classes."""

    target_weights: dict[str, float] | None = option(
        None, "weights of the targets in the loss, by name, such as a=2 b=0.5; default: 1 each"
    )


@dataclass(frozen=True, kw_only=True)
class CoverageOptions(WeightOptions):
    """Options of every task with intervals or sets."""

    coverage: float = option(
        0.9,
        "fraction of molecules whose true value is in the interval, or in the set of classes; 0.9 needs 9 validation "
        "values, 0.95 needs 19, 0.99 needs 99",
    )


@dataclass(frozen=True, kw_only=True)
class LossOptions:
    """Options of `Regression` of any level."""

    loss: str | Callable[..., Any] = option("mse", "loss in scaled units: mse, mae or huber")


@dataclass(frozen=True, kw_only=True)
class NumberOptions(LossOptions, CoverageOptions):
    """Options of `Regression` of molecules."""

    uncertainty: Literal["none", "variance", "quantiles", "evidential", "similarity"] = option(
        "none",
        "method that estimates the standard deviation of each prediction and scales its interval: a second output "
        "(variance), quantiles (pinball loss), evidential regression, or distance to the training molecules "
        "(similarity); none: all intervals have the same width. For classes, only evidential: the amount of evidence "
        "for the probabilities",
    )
    element_reference: bool | None = option(
        None,
        "subtract from all targets, or from none, a reference per element, fitted to the training rows; default: from "
        "extensive targets, for which the composition explains 95 % of the variance",
    )
    censored: bool | None = option(
        None, "also learn from bounds, such as >5 or <=0.1; by default, a row with a bound gets an error"
    )
    relation_column: str | None = option(
        None,
        "a column with the relation of each value of the one target, such as ChEMBL's Standard Relation: = or ~ "
        "for a value, > or < for a bound to learn from",
    )


@dataclass(frozen=True, kw_only=True)
class ClassWeightOptions:
    """Options of every task of classes."""

    class_weights: Literal["none", "balanced"] = option(
        "none", "weights of the classes in the loss; balanced: rarer classes have larger weights"
    )


@dataclass(frozen=True, kw_only=True)
class PositiveClassOptions:
    """Options of every task of two classes."""

    positive: str | None = option(
        None,
        "positive one of two classes, whose probability is predicted; default: the larger number, or the label that "
        "does not begin with non, not, no, in or un, nor end in a minus sign",
    )


@dataclass(frozen=True, kw_only=True)
class LevelClassOptions(ClassWeightOptions, PositiveClassOptions):
    """Options of classes of atoms or bonds."""


@dataclass(frozen=True, kw_only=True)
class ClassOptions(CoverageOptions, ClassWeightOptions):
    """Options of `BinaryClassification` and `MulticlassClassification`."""

    calibration: Literal["none", "temperature", "isotonic"] = option(
        "none",
        "calibration of probabilities on validation rows: one temperature per target, or a step function",
    )
    uncertainty: Literal["none", "evidential"] = option(
        "none",
        "method that estimates the evidence for the classes of a molecule; evidential: a Dirichlet distribution",
    )
    sets: bool = option(
        False, "also predict a set of classes, which holds the true class of the fraction --coverage of the molecules"
    )
    set_kind: Literal["smallest", "adaptive"] = option(
        "smallest",
        "kind of sets; smallest: the smallest sets on average; adaptive: smaller sets for easy "
        "molecules, larger for hard ones",
    )


@dataclass(frozen=True, kw_only=True)
class BinaryOptions(ClassOptions, PositiveClassOptions):
    """Options of `BinaryClassification`."""


@dataclass(frozen=True, kw_only=True)
class FractionOptions(WeightOptions):
    """Options of `FractionRegression`."""

    normalise: bool = option(
        False, "divide the targets of a row by their sum; by default, the sum must be 1 within 0.01"
    )


@dataclass(frozen=True, kw_only=True)
class TotalOptions:
    """Options of numbers of atoms alone."""

    sum_to: str | float | None = option(
        None,
        "total of the values of a molecule's atoms: charge (its formal charge), a number, or one of the "
        "--feature-columns; default: any total",
    )


@dataclass(frozen=True, kw_only=True)
class AtomOptions(LossOptions, TotalOptions):
    """Options of `Regression` of atoms."""


@dataclass(frozen=True, kw_only=True)
class MoleculeAtomBondOptions:
    """Options of `TaskList`: none, beside those of its tasks."""


TASKS: dict[str, TaskEntry] = {
    "regression": TaskEntry("gtx.tasks.regression", "Regression", NumberOptions),
    "classification": TaskEntry("gtx.tasks.classification", "BinaryClassification", BinaryOptions),
    "multiclass": TaskEntry("gtx.tasks.classification", "MulticlassClassification", ClassOptions, "classes"),
    "fractions": TaskEntry("gtx.tasks.fractions", "FractionRegression", FractionOptions),
    "atoms": TaskEntry("gtx.tasks.regression", "Regression", AtomOptions, level="atom"),
    "bonds": TaskEntry("gtx.tasks.regression", "Regression", LossOptions, level="bond"),
    "atom-classes": TaskEntry("gtx.tasks.combined", "InferredTask", LevelClassOptions, level="atom"),
    "bond-classes": TaskEntry("gtx.tasks.combined", "InferredTask", LevelClassOptions, level="bond"),
    "molecule-atom-bond": TaskEntry("gtx.tasks.combined", "TaskList", MoleculeAtomBondOptions),
    **additions("tasks"),
}
"""Tasks by the names that `--task` and model files use, those of annexes too."""
