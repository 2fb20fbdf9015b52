"""Tasks, the kinds of target that models learn, each of three parts: columns, objective and answers.

`TASKS` names the tasks by the words that the command line and model files use for them. A task of one's own is a
subclass of `NumericTask` or `Task` anywhere, see docs/your-own-task.md.
"""

from __future__ import annotations

from gtx.settings.tasks import TASKS
from gtx.tasks.classification import BinaryClassification, MulticlassClassification
from gtx.tasks.columns import Columns
from gtx.tasks.combined import InferredTask, TaskList, make_task
from gtx.tasks.fractions import FractionRegression
from gtx.tasks.metrics import Metric
from gtx.tasks.numeric import NumericAnswers, NumericObjective, NumericTask, Predictions
from gtx.tasks.regression import Regression, TargetScaler
from gtx.tasks.task import Answers, Task

__all__ = [
    "TASKS",
    "Answers",
    "BinaryClassification",
    "Columns",
    "FractionRegression",
    "InferredTask",
    "Metric",
    "MulticlassClassification",
    "NumericAnswers",
    "NumericObjective",
    "NumericTask",
    "Predictions",
    "Regression",
    "TargetScaler",
    "Task",
    "TaskList",
    "make_task",
]
