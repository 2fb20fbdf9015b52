"""The kinds of target that models learn: one file a task, with all that is special about it.

`TASKS` names the tasks by the words that the command line and model files use for them. A task of one's own is a
subclass of `Task` (or of `gtx.tasks.numbers.NumberTask`) anywhere, see docs/your-own-task.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names
from gtx.tasks.options import TASKS

if TYPE_CHECKING:
    from gtx.tasks.atoms_and_bonds import AtomClassification, AtomRegression, BondClassification, BondRegression
    from gtx.tasks.classification import Classification, Multiclass
    from gtx.tasks.counts import Counts, Shares
    from gtx.tasks.inferred import Inferred, make
    from gtx.tasks.multi_level import MultiLevel
    from gtx.tasks.numbers import NumberTask
    from gtx.tasks.regression import Regression
    from gtx.tasks.scaling import TargetScaler, composition, extensive_part, tells_elements
    from gtx.tasks.sequence import ToSequence, WrittenTexts, exact
    from gtx.tasks.task import Metric, Predictions, Task, require


# the command line lists tasks without torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "task": ("Task", "Metric", "Predictions", "require"),
        "numbers": ("NumberTask",),
        "regression": ("Regression",),
        "classification": ("Classification", "Multiclass"),
        "counts": ("Counts", "Shares"),
        "atoms_and_bonds": ("AtomClassification", "AtomRegression", "BondClassification", "BondRegression"),
        "multi_level": ("MultiLevel",),
        "sequence": ("ToSequence", "WrittenTexts", "exact"),
        "inferred": ("Inferred", "make"),
        "scaling": ("TargetScaler", "composition", "extensive_part", "tells_elements"),
    },
)
__all__ = [
    "TASKS",
    "AtomClassification",
    "AtomRegression",
    "BondClassification",
    "BondRegression",
    "Classification",
    "Counts",
    "Inferred",
    "Metric",
    "MultiLevel",
    "Multiclass",
    "NumberTask",
    "Predictions",
    "Regression",
    "Shares",
    "TargetScaler",
    "Task",
    "ToSequence",
    "WrittenTexts",
    "composition",
    "exact",
    "extensive_part",
    "make",
    "require",
    "tells_elements",
]
