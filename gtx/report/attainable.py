"""How good a model can get: the noise of the measurements, and the error that more training rows would give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gtx.data.ledger import plural
from gtx.report.kinds import number

if TYPE_CHECKING:
    from gtx.data.targets import MeasurementNoise
    from gtx.kernel import LearningCurve

FACTOR = 1.16
"""Nine of ten errors after a doubling of the rows were within this factor of the forecast, see
experiments/results/learning-curve.md."""


class Forecast(NamedTuple):
    """Forecast of the error with more training rows, and its interval, which should contain it nine times of ten."""

    rows: int
    low: float
    error: float
    high: float


@dataclass(frozen=True)
class Attainable:
    """Limits of the error of one numeric target.

    Attributes:
        noise: the noise of repeated measurements; None without enough of them.
        curve: the learning curve of a kernel model on the training rows; None without a kernel or enough rows.
    """

    noise: MeasurementNoise | None = None
    curve: LearningCurve | None = None

    def __bool__(self) -> bool:
        return self.noise is not None or self.curve is not None

    def forecast(self, error: float, rows: float) -> Forecast:
        """Forecast the RMSE of the model on the same molecules after training on more rows like those it has.

        The kernel's learning curve gives the ratio to the error now. No forecast is below the noise of the
        measurements, unless the error is already.

        Args:
            error: RMSE of the model.
            rows: number of training rows as a multiple of those now, 1 to 2. The interval is that of a doubling to the
                power of log₂ of it.

        Raises:
            ValueError: there is no learning curve.
        """
        if self.curve is None:
            raise ValueError("expected a learning curve, got None")
        now = self.curve.rows[-1]
        least = 0.0 if self.noise is None else min(self.noise.sd, error)
        middle, factor = error * self.curve.ratio(rows * now), FACTOR ** math.log2(rows)
        low, middle, high = (max(least, value) for value in (middle / factor, middle, middle * factor))
        return Forecast(round((rows - 1) * now), low, middle, high)

    def describe(self, error: float, unit: str = "") -> str:
        """Describe the limits in words, beside the RMSE of the model."""
        words = [f"RMSE {number(error)} {unit}".rstrip()]
        if self.noise is not None:
            same = f", {self.noise.identical} of them with identical values" if self.noise.identical else ""
            of = f"{plural(self.noise.molecules, 'molecule')}{same}"
            words.append(f"repeated measurements have a standard deviation of {number(self.noise.sd)} ({of})")
        if self.curve is not None:
            double = self.forecast(error, 2)
            span = f"[{number(double.low)}, {number(double.high)}]"
            gain = f"would give about {number(double.error)} {span}"
            if not self.curve.exponent:
                gain = f"would hardly change it {span}"
            words.append(f"{double.rows:,} more training rows like these (twice as many) {gain}")
        return "; ".join(words)
