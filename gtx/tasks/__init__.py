"""The kinds of target that models learn: one file a task, with all that is special about it.

`TASKS` names the tasks by the words that the command line and model files use for them. A task of one's own is a
subclass of `Task` (or of `gtx.tasks.numbers.NumberTask`) anywhere, see docs/your-own-task.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gtx.lazy import lazy_names
from gtx.tasks.options import TASKS

if TYPE_CHECKING:
    from gtx.tasks.classification import Classification, Multiclass
    from gtx.tasks.counts import Counts, Shares
    from gtx.tasks.inferred import Inferred, make
    from gtx.tasks.numbers import NumberTask
    from gtx.tasks.part_classes import AtomClasses, BondClasses
    from gtx.tasks.part_numbers import AtomNumbers, BondNumbers
    from gtx.tasks.regression import Regression
    from gtx.tasks.scaling import TargetScaler, composition, extensive_part, tells_elements
    from gtx.tasks.sequence import ToSequence, WrittenTexts, exact
    from gtx.tasks.task import Metric, Predictions, Task
    from gtx.tasks.together import Together


# the command line lists tasks without torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "task": ("Task", "Metric", "Predictions"),
        "numbers": ("NumberTask",),
        "regression": ("Regression",),
        "classification": ("Classification", "Multiclass"),
        "counts": ("Counts", "Shares"),
        "part_numbers": ("AtomNumbers", "BondNumbers"),
        "part_classes": ("AtomClasses", "BondClasses"),
        "together": ("Together",),
        "sequence": ("ToSequence", "WrittenTexts", "exact"),
        "inferred": ("Inferred", "make"),
        "scaling": ("TargetScaler", "composition", "extensive_part", "tells_elements"),
    },
)
__all__ = [
    "TASKS",
    "AtomClasses",
    "AtomNumbers",
    "BondClasses",
    "BondNumbers",
    "Classification",
    "Counts",
    "Inferred",
    "Metric",
    "Multiclass",
    "NumberTask",
    "Predictions",
    "Regression",
    "Shares",
    "TargetScaler",
    "Task",
    "ToSequence",
    "Together",
    "WrittenTexts",
    "composition",
    "exact",
    "extensive_part",
    "make",
    "tells_elements",
]
