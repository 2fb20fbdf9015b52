"""Answers and scores of several tasks that one model has learned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from gtx.data.rows import Row
from gtx.tasks.metrics import mean_scores
from gtx.tasks.task import Answers, Scores, Task


@dataclass(frozen=True)
class JointAnswers:
    """Answers of each task for m molecules.

    Attributes:
        parts: of each task, in their order.
        remarks: per molecule, what there is to warn of.
    """

    parts: tuple[Answers, ...]
    remarks: list[list[str]]

    @classmethod
    def of(cls, parts: Sequence[Answers]) -> JointAnswers:
        """With the remarks of all."""
        every = zip(*(each.remarks for each in parts), strict=True)
        return cls(tuple(parts), [list(chain(*found)) for found in every])

    @property
    def finite(self) -> np.ndarray:
        """bool `[m]`: the molecules that every task has an answer for."""
        return np.stack([each.finite for each in self.parts]).all(0)

    def subset(self, rows: np.ndarray) -> JointAnswers:
        """Those of the molecules `rows`."""
        return JointAnswers(tuple(each.subset(rows) for each in self.parts), [self.remarks[i] for i in rows])

    def columns(self) -> list[np.ndarray]:
        """Those of all tasks; blank for a molecule that is not `finite`."""
        blank = ~self.finite
        found = [column.copy() for each in self.parts for column in each.columns()]
        for column in found:
            column[blank] = np.nan if column.dtype.kind == "f" else None
        return found


class JointScores:
    """Answers beside the truth, task by task.

    Args:
        parts: of each task.
        names: of the metrics of all.
    """

    def __init__(self, parts: Sequence[Scores], names: Sequence[str]) -> None:
        self.parts, self.names = parts, names

    def add(self, rows: Sequence[Row], answers: JointAnswers) -> None:
        """Take in some rows and their answers."""
        for part, own in zip(self.parts, answers.parts, strict=True):
            part.add(rows, own)

    def metrics(self) -> dict[str, Any] | None:
        """As in `metrics.json`; None if the table holds no truth."""
        found = [scores for part in self.parts if (scores := part.metrics()) is not None]
        return joint_scores(found, self.names) if found else None

    def notes(self) -> list[str]:
        """What else to say of all answers, a line each."""
        return [line for part in self.parts for line in part.notes()]


def joint_scores(parts: Sequence[dict[str, Any]], names: Iterable[str]) -> dict[str, Any]:
    """The scores of several tasks as those of one: means of the metrics `names` over the targets that have them, and
    what only some have besides."""
    joined = mean_scores({name: scores for each in parts for name, scores in each["per_target"].items()}, names)
    return {k: v for each in parts for k, v in each.items()} | joined


def joint_baselines(parts: Sequence[dict[str, Any]], tasks: Sequence[Task]) -> dict[str, Any]:
    """Scores of the baselines of several tasks, by name and part of the split; None for targets that a baseline does
    not predict."""

    def joined(method: str, where: str) -> dict[str, Any]:
        per_target: dict[str, Any] = {}
        for task, found in zip(tasks, parts, strict=True):
            own = found[method][where]["per_target"] if method in found else {}
            per_target |= {name: own.get(name, dict.fromkeys(task.metrics)) for name in task.targets}
        return mean_scores(per_target, dict.fromkeys(name for task in tasks for name in task.metrics))

    methods = dict.fromkeys(name for found in parts for name in found)
    return {method: {where: joined(method, where) for where in ("train", "val", "test")} for method in methods}
