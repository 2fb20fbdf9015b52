"""What models learn: one file a task, and all that a task knows.

`TASKS` names the tasks by the words that the command line and model files use for them. A task of one's own is a
subclass of `Task` (or of `gtx.tasks.numbers.NumberTask`) anywhere, see docs/your-own-task.md.
"""

from __future__ import annotations

from gtx.lazy import lazy_names
from gtx.tasks.options import TASKS

# the command line lists tasks without torch
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        **{word.replace("-", "_"): (entry.task,) for word, entry in TASKS.items()},
        "inferred": ("Inferred", "make"),
        "task": ("Task", "Metric"),
        "numbers": ("NumberTask",),
        "predictions": ("Predictions",),
        "scaling": ("TargetScaler", "composition", "extensive_part", "tells_elements"),
        "written": ("WrittenTexts",),
        "teacher_forcing": ("exact",),
    },
)
__all__ = ["TASKS"]
