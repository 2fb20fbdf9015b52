"""Choice of a task by the cells of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gtx.data.targets import COMMA_HINT, has_comma, parse_number
from gtx.errors import InputError
from gtx.tasks.classification import BinaryClassification
from gtx.tasks.labels import in_order, label, listed
from gtx.tasks.options import TASKS, chosen
from gtx.tasks.regression import Regression
from gtx.tasks.task import Task

if TYPE_CHECKING:
    from gtx.data.row_log import InputFile

AnyTask = TypeVar("AnyTask", bound=Task)


class InferredTask:
    """Placeholder for a task that gtx chooses after reading the table.

    The choice is `BinaryClassification` if every target has two classes (0 and 1, or two texts and no number), else
    `Regression`.

    Args:
        targets: names of the target columns.
        options: options of either task; an option that the chosen task does not have is an error.
    """

    name = "inferred"
    writes: bool = Regression.writes
    per: str = Regression.per
    also: Mapping[str, int] = Regression.also
    supports: frozenset[str] = Regression.supports & BinaryClassification.supports

    def __init__(self, targets: Sequence[str], **options: object) -> None:
        self.targets: tuple[str, ...] = tuple(targets)
        self.options: dict[str, object] = options

    def infer_from_table(self, files: Sequence[InputFile]) -> Task:
        """Choose the task.

        Raises:
            InputError: a column is missing, blank, or holds texts that are not two classes.
        """
        classes = all(_two_classes(files[0].cells(name), name) for name in self.targets)
        return make_task(BinaryClassification if classes else Regression, self.targets, self.options).infer_from_table(
            files
        )


def make_task(task: type[AnyTask], targets: Sequence[str], options: Mapping[str, Any]) -> AnyTask:
    """Make a task from its class, its targets and those options that are not None.

    Raises:
        InputError: the task does not have one of them.
    """
    chosen_options = {name: value for name, value in options.items() if value is not None}
    unknown = chosen_options.keys() - {field.name for field in chosen(task)}
    if unknown:
        raise InputError(f"{min(unknown)}: {task.name} has no such option; leave it out")
    return task(tuple(targets), **chosen_options)


def _two_classes(cells: Sequence[str], name: str) -> bool:
    numbers = np.array([parse_number(cell) for cell in cells])
    finite = numbers[np.isfinite(numbers)]
    if len(finite):
        return bool(np.isin(finite, (0, 1)).all() and not np.isinf(numbers).any())
    labels = in_order(map(label, cells))
    if len(labels) > 2:
        message = f"target column {name!r} holds text: {listed(labels, 3)}; numbers were expected"
        if all(map(has_comma, labels)):
            raise InputError(f"{message}, {COMMA_HINT}")
        to_write = ", for texts that a model is to write --task sequence" if "sequence" in TASKS else ""
        raise InputError(f"{message}. For classes say --task multiclass{to_write}")
    return len(labels) == 2
