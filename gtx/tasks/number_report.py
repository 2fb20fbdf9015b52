"""What the report shows and says of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gtx.tasks.conformal import LEVEL, percent

if TYPE_CHECKING:
    from pathlib import Path

    from gtx.dataset import Dataset
    from gtx.report.context import Report
    from gtx.report.gallery import Panel
    from gtx.report.similarity import Nearest
    from gtx.tasks.predictions import Predictions


class NumberReport:
    """The part of a `gtx.tasks.NumberTask` that its report asks."""

    has_thresholds: ClassVar[bool] = False
    """Whether a prediction is a probability that a threshold makes a class."""

    @property
    def level(self) -> float:
        """The share of molecules that an interval should hold."""
        return LEVEL

    def write_report(self, path: Path, dataset: Dataset, answers: Predictions, facts: dict[str, Any]) -> list[str]:
        from gtx.report import Report, write_report

        numbers = {"y": dataset.y, "prediction": answers.mean, "low": answers.low, "high": answers.high}
        numbers["std"] = answers.std
        return write_report(path, Report(**facts, **numbers, task=self, targets=self.targets))

    def panels(self, report: Report, t: int, near: Callable[[], Nearest]) -> Iterator[Panel]:
        """The pictures of a target's predictions."""
        from gtx.report.panels import value_panels

        return value_panels(report, t, near)

    def lede(self, several: bool) -> str:
        """What follows the names of the targets in the first sentence."""
        return ""

    def panel_words(self, intervals: bool) -> str:
        """What to know of the pictures."""
        words = "On the diagonal line, the prediction equals the measurement."
        more = f" Vertical lines are intervals that should hold {percent(self.level)} of the values. The validation "
        more += "molecules set the width of intervals of every level; the coverage picture shows which share of the "
        more += "test molecules is inside. In the grey band, the difference "
        more += "can be chance. By similarity, the numbers below are the mean widths of intervals."
        return words + more * intervals

    def errors(self, y: np.ndarray, prediction: np.ndarray) -> np.ndarray:
        """How far off predictions of a target are, `[m]`, with a sign."""
        return prediction - y

    def value_text(self, t: int, y: float) -> str:
        """A measured value as a reader sees it."""
        from gtx.report.words import number

        return number(y)

    def prediction_text(self, t: int, prediction: Any) -> str:
        """A prediction as a reader sees it."""
        from gtx.report.words import number

        return number(float(prediction))

    def summary(self, t: int, y: np.ndarray) -> dict[str, str]:
        """How the measured values `[m]` of a target lie, in words."""
        from gtx.report.words import number

        found: dict[str, float | None] = dict.fromkeys(("mean", "sd", "smallest", "largest"))
        if len(y):
            found = {"mean": y.mean(), "sd": y.std(), "smallest": y.min(), "largest": y.max()}
            if abs(found["mean"]) < 1e-6 * found["sd"]:
                found["mean"] = 0.0  # a z-score's, but for rounding
        return {name: number(value) for name, value in found.items()}
