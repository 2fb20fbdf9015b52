"""Which validation score decides the epoch that is kept."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor

from gtx.data import MoleculeStore
from gtx.errors import InputError, did_you_mean
from gtx.tasks import Task

LOSS = "loss"


def check_selection(task: Task, keep_by: str | None, validated: bool) -> None:
    """Raise an `InputError` unless a task has the score, and there are validation rows to be scored.

    Args:
        task: what is learned.
        keep_by: the name of one of the task's metrics, or "loss"; None for the task's own choice.
        validated: whether there are validation rows.
    """
    if keep_by is None:
        return
    known = [*task.validated, LOSS]
    if keep_by not in known:
        near = did_you_mean(keep_by, known)
        raise InputError(f"keep_by: expected one of {', '.join(known)} for {task.name}, got {keep_by!r}{near}")
    if not validated:
        raise InputError(f"keep_by: no rows validate, so no epoch has a validation {keep_by}; leave it out")


def selecting(task: Task, val: MoleculeStore, keep_by: str | None) -> Callable[[Tensor], dict[str, float]]:
    """`Task.validation`, whose `val_score` is a metric of the user's choice, first in order: as it is where lower is
    better, else its negative.

    Args:
        task: what is learned, fitted.
        val: validation rows.
        keep_by: as `check_selection` takes it.

    Returns:
        A function of what was `kept` of the rows, `[n, K]`. It raises an `InputError` if the rows do not define the
        metric, and gives NaN, which no epoch is kept by, if the predictions are not finite.
    """
    scores = task.validation(val)
    if keep_by is None:
        return scores
    lower, column = keep_by == LOSS or task.metrics[keep_by].lower, f"val_{keep_by}"

    def selected(kept: Tensor) -> dict[str, float]:
        found = scores(kept)
        value = found.get(column, math.nan)
        if math.isnan(value) and math.isfinite(found.get("val_loss", 0.0)) and bool(kept.isfinite().all()):
            raise InputError(f"keep_by: the validation rows do not define {keep_by}; too few of their values differ")
        return {column: value} | found | {"val_score": value if lower else -value}

    return selected
