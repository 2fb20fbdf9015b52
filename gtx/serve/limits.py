"""Limits on the size and waiting time of requests, and counts of requests."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from threading import Lock
from typing import TypeVar

from gtx.errors import InputError

Number = TypeVar("Number", int, float)


def _limit(default: Number, about: str, least: float = 1) -> Number:
    return field(default=default, metadata={"help": about, "least": least})


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of the HTTP service, such as the number of molecules per request.

    Each limit is an option of `gtx serve` of the same name, and `GET /model` returns it.

    Raises:
        InputError: one of them is too small.
    """

    max_body: int = _limit(4 * 2**20, "bytes of a request")
    max_molecules: int = _limit(10_000, "rows of a request")
    max_smiles: int = _limit(2_000, "characters of a SMILES; a longer one is an error of its row")
    max_requests: int = _limit(128, "open requests; further ones get status 503")
    max_explained: int = _limit(60, "atoms of a molecule to explain")
    timeout: float = _limit(60.0, "seconds for a request, from its first byte to the last of the answer", 0.01)
    grace: float = _limit(5.0, "seconds for open requests when the service shuts down", 0)
    wait: float = _limit(5.0, "milliseconds that a request waits to be batched with others", 0)

    def __post_init__(self) -> None:
        for one in fields(self):
            value, least = getattr(self, one.name), one.metadata["least"]
            if not least <= value < float("inf"):
                raise InputError(f"{one.name}: expected a number of {least} or more, got {value}")


SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
MOLECULES = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000)


class Counts:
    """Counter for each set of labels."""

    kind = "counter"

    def __init__(self, name: str, about: str, *labels: str) -> None:
        self.name = name
        self.about = about
        self.labels: tuple[str, ...] = labels
        self._lock, self._counts = Lock(), Counter[tuple[str, ...]]()

    def add(self, *values: object, by: int = 1) -> None:
        """Add `by` to the count of these values of the labels."""
        with self._lock:
            self._counts[tuple(map(str, values))] += by

    def lines(self) -> list[str]:
        """Write a line for each set of labels that has a count."""
        with self._lock:
            counts = sorted(self._counts.items())
        return [f"{self.name}{_labelled(self.labels, values)} {number}" for values, number in counts]


class Histogram:
    """Cumulative counts of observations by upper limit, their number and their sum."""

    kind = "histogram"

    def __init__(self, name: str, about: str, bounds: Sequence[float]) -> None:
        self.name = name
        self.about = about
        self.bounds = bounds
        self._lock, self._counts, self._sum = Lock(), [0] * (len(bounds) + 1), 0.0

    def observe(self, value: float) -> None:
        """Add one observation."""
        with self._lock:
            self._counts[bisect_left(self.bounds, value)] += 1
            self._sum += value

    def lines(self) -> list[str]:
        """Write the cumulative counts, the sum and the number."""
        with self._lock:
            counts, total = list(self._counts), self._sum
        lines, below = [], 0
        for bound, count in zip((*map("{:g}".format, self.bounds), "+Inf"), counts, strict=True):
            below += count
            lines.append(f'{self.name}_bucket{{le="{bound}"}} {below}')
        return [*lines, f"{self.name}_sum {total:.9g}", f"{self.name}_count {below}"]


class Gauge:
    """Number that is computed when it is read."""

    kind = "gauge"

    def __init__(self, name: str, about: str, value: Callable[[], float]) -> None:
        self.name = name
        self.about = about
        self.value = value

    def lines(self) -> list[str]:
        """Write the current number."""
        return [f"{self.name} {self.value():g}"]


class Metrics:
    """Metrics of the HTTP service, such as the number of requests.

    Attributes:
        requests: number of requests, by path and status.
        molecules: number of rows, predicted or with an error.
        batches: sizes of batches, in molecules.
        seconds: time from the first byte of a `POST` request to the response.
        gauges: further numbers.
    """

    def __init__(self) -> None:
        self.requests: Counts = Counts("gtx_requests_total", "Requests answered.", "path", "status")
        self.molecules: Counts = Counts("gtx_molecules_total", "Rows answered.", "outcome")
        self.batches: Histogram = Histogram("gtx_batch_molecules", "Molecules predicted together.", MOLECULES)
        self.seconds: Histogram = Histogram("gtx_request_seconds", "Seconds of a POST request.", SECONDS)
        self.gauges: list[Gauge] = []

    def text(self) -> str:
        """Write all counts in the format of Prometheus."""
        lines: list[str] = []
        every: list[Counts | Histogram | Gauge] = [self.requests, self.molecules, self.batches, self.seconds]
        for one in [*every, *self.gauges]:
            lines += [f"# HELP {one.name} {one.about}", f"# TYPE {one.name} {one.kind}", *one.lines()]
        return "\n".join(lines) + "\n"


def _labelled(names: Sequence[str], values: Sequence[str]) -> str:
    escaped = (value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for value in values)
    return "{" + ",".join(f'{name}="{value}"' for name, value in zip(names, escaped, strict=True)) + "}"
