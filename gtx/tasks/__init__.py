"""Tasks, the kinds of target that models learn: each file has all code that is special to one task.

`TASKS` names the tasks by the words that the command line and model files use for them. A task of one's own is a
subclass of `Task` (or of `gtx.tasks.numbers.NumericTask`) anywhere, see docs/your-own-task.md.
"""

from __future__ import annotations

from gtx.settings.tasks import TASKS
from gtx.tasks.atoms_and_bonds import AtomClassification, AtomRegression, BondClassification, BondRegression
from gtx.tasks.classification import BinaryClassification, MulticlassClassification
from gtx.tasks.fractions import FractionRegression
from gtx.tasks.inferred import make_task
from gtx.tasks.molecule_atom_bond import MoleculeAtomBondTask
from gtx.tasks.numbers import NumericTask
from gtx.tasks.regression import Regression
from gtx.tasks.scaling import TargetScaler
from gtx.tasks.task import Metric, Predictions, Task

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
