"""Tasks, the kinds of target that models learn: each file has all code that is special to one task.

`TASKS` names the tasks by the words that the command line and model files use for them. A task of one's own is a
subclass of `Task` (or of `gtx.tasks.numbers.NumericTask`) anywhere, see docs/your-own-task.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names
from gtx.tasks.options import TASKS

if TYPE_CHECKING:
    from gtx.sequence.task import GeneratedTexts as GeneratedTexts
    from gtx.sequence.task import SequenceGenerationTask as SequenceGenerationTask
    from gtx.sequence.task import exact_match_accuracy as exact_match_accuracy
    from gtx.tasks.atoms_and_bonds import AtomClassification, AtomRegression, BondClassification, BondRegression
    from gtx.tasks.classification import BinaryClassification, MulticlassClassification
    from gtx.tasks.fractions import FractionRegression
    from gtx.tasks.inferred import make_task
    from gtx.tasks.molecule_atom_bond import MoleculeAtomBondTask
    from gtx.tasks.numbers import NumericTask
    from gtx.tasks.regression import Regression
    from gtx.tasks.scaling import TargetScaler
    from gtx.tasks.task import Metric, Predictions, Task


# the command line lists tasks without torch
__getattr__, __dir__ = lazy_names(__name__)
__all__ = [
    "TASKS",
    "AtomClassification",
    "AtomRegression",
    "BinaryClassification",
    "BondClassification",
    "BondRegression",
    "FractionRegression",
    "Metric",
    "MoleculeAtomBondTask",
    "MulticlassClassification",
    "NumericTask",
    "Predictions",
    "Regression",
    "TargetScaler",
    "Task",
    "make_task",
]
