"""Time and peak memory of cases that take turns in this process, and what the cases are made of."""

from __future__ import annotations

import argparse
import ctypes
import gc
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import nn

from experiments.summary import markdown
from gtx.data import MoleculeStore, featurise
from gtx.data.public_datasets import load_public_dataset
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.tasks import Regression, TargetScaler
from gtx.training import TrainSettings
from gtx.workflow.specs import make_model_spec

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Case(NamedTuple):
    """One of the things that are compared.

    Attributes:
        group: cases of a group take turns, and are compared with the first of them.
        name: name in the table.
        prepare: sets the case up and returns the function that is measured. If this returns a `Figures`, that is taken
            in place of what was measured.
        count: molecules that the function works through.
        seconds: a turn repeats the function until so many have passed.
        once: a single turn without warm-up, for long work.
    """

    group: str
    name: str
    prepare: Callable[[], Callable[[], Any]]
    count: int = 1
    seconds: float = 0.0
    once: bool = False


class Figures(NamedTuple):
    """Measurements that a function returns of itself: seconds, peak memory in bytes, and other columns of the table."""

    seconds: float | None = None
    peak: int | None = None
    columns: Mapping[str, str] = {}


@dataclass
class Result:
    """Measurements of a case, one of each turn, and the reason if it failed; the first turn warms up."""

    case: Case
    seconds: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)
    columns: Mapping[str, str] = field(default_factory=dict)
    failed: str = ""

    def measure(self, step: Callable[[], Any], device: str) -> None:
        """Add a turn: median seconds, and the most memory held above what was held before."""
        walls, before = [], memory_before(device)
        while not walls or sum(walls) < self.case.seconds:
            wall, returned = timed(step, device)
            walls.append(wall)
            own = returned if isinstance(returned, Figures) else Figures()
            del returned  # nothing of this run lives on in the next
        peak = torch.cuda.max_memory_allocated() if device == "cuda" else resident("VmHWM")
        self.seconds.append(statistics.median(walls) if own.seconds is None else own.seconds)
        self.peaks.append(max(0, peak - before) if own.peak is None else own.peak)
        self.columns = own.columns

    def plural(self, values: Sequence[float]) -> Sequence[float]:
        """Leave out the turn that warms up."""
        return values[1:] or values

    def cells(self, first: Result) -> list[str]:
        """Write the cells of the table; ratios to the first of the group are medians over turns."""
        if self.failed:
            return [self.case.group, self.case.name, self.failed, "", "", "", ""]
        seconds, peak = statistics.median(self.plural(self.seconds)), max(self.plural(self.peaks))
        times = memory = ""
        if not first.failed:
            turns = zip(self.plural(self.seconds), first.plural(first.seconds), strict=False)
            times = f"{statistics.median(a / b for a, b in turns):.2f}x"
            memory = f"{peak / max(1, *first.plural(first.peaks)):.2f}x"
        figures = [f"{seconds * 1e3:,.4g} ms", f"{self.case.count / seconds:,.0f}", f"{peak / 2**20:,.0f} MiB"]
        return [self.case.group, self.case.name, *figures, times, memory]


def race(cases: Iterable[Case], options: argparse.Namespace) -> list[Result]:
    """Measure cases, group by group; a case that cannot be set up or fails has the reason as its result.

    Args:
        cases: cases in the order of the table.
        options: `repeats`, `seconds` and `device`.
    """
    results = []
    for _, group in groupby(cases, lambda case: case.group):
        runners = []
        for case in group:
            results.append(Result(case))
            runners.append((results[-1], attempt(results[-1], case.prepare)))
        begun = time.time()
        for turn in range(options.repeats + 1):
            if turn > 2 and time.time() - begun > options.seconds:
                break
            first = turn % len(runners)  # no case is always first
            for result, step in runners[first:] + runners[:first]:
                if not result.failed and not (turn and result.case.once):
                    attempt(result, partial(result.measure, step, options.device))
    return results


def attempt(result: Result, function: Callable[[], Any]) -> Any:
    """Call a function; if it fails, note in a few words why."""
    try:
        return function()
    except Exception as error:
        result.failed = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
        if isinstance(error, MemoryError) or re.search("out of memory|can't allocate memory", str(error)):
            result.failed = "out of memory"


def memory_before(device: str) -> int:
    """Return the bytes held now, and begin to watch for the most.

    On a GPU it is what torch has allocated. On a CPU it is the resident set, whose high-water mark (VmHWM) Linux resets
    on demand; elsewhere the mark is that of the whole process.
    """
    gc.collect()
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    if CLEAR.exists():
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc alone
        if trim is not None:
            trim(0)  # freed memory goes back to the system, so that it is not counted again
        CLEAR.write_text("5")  # see proc_pid_clear_refs(5)
    return resident("VmRSS")


def timed(function: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Return the seconds until the device is done, and what the function returned."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begun = time.perf_counter()
    returned = function()
    wait()
    return time.perf_counter() - begun, returned


def resident(name: str) -> int:
    """Return bytes of this process: VmRSS (now) or VmHWM (the most); the most if there is no /proc."""
    found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    return high_water(resource.RUSAGE_SELF) if found is None else 1024 * int(found[1])


def high_water(whose: int) -> int:
    """Return the most bytes that this process, or the largest of its children, ever held."""
    return resource.getrusage(whose).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def table(results: Sequence[Result]) -> str:
    """Write the results of a topic as Markdown."""
    firsts = {result.case.group: result for result in reversed(results)}
    extra = {name: "" for result in results for name in result.columns}
    cells = [[*r.cells(firsts[r.case.group]), *(extra | dict(r.columns)).values()] for r in results]
    heads = "case | | time | per second | peak memory | time over the first | memory over the first"
    rows = [[cell.replace("|", "/") for cell in row] for row in cells]
    return "\n".join(markdown(" | ".join([heads, *extra]), "ll" + "r" * (5 + len(extra)), rows)) + "\n"


SETS = {"zinc12k": ("zinc12k", "split"), "esol": ("mat/esol", "split_random_0"), "xtb9": ("xtb9", "split_random")}


def sampled(name: str, most: int | None = None) -> pd.DataFrame:
    """Read `smiles`, the first target as `y`, and `split` of one of `PUBLIC_DATASETS`, downloaded if need be.

    Args:
        name: name of the set.
        most: training rows; a fifth as many of validation and of test. None for all rows.
    """
    official, split = SETS[name]
    entry = load_public_dataset(official)
    read = pd.read_parquet if entry.path.suffix == ".parquet" else pd.read_csv
    frame = read(entry.path)[[entry.smiles_column, entry.targets[0], split]].set_axis(["smiles", "y", "split"], axis=1)
    if most is None:
        return frame
    return frame[frame.groupby("split").cumcount() < frame["split"].map({"train": most}).fillna(most // 5)]


def featurised(name: str, most: int) -> MoleculeStore:
    """Featurise the first molecules of a set by default, with their target."""
    frame = sampled(name).head(most)
    done = featurise(Featuriser(), frame["smiles"].tolist(), workers=0)
    return done.store.with_targets(frame["y"].to_numpy(float)[done.good, None])


def default_model() -> tuple[Regression, Featuriser, dict[str, Any], nn.Module]:
    """Build the untrained model of `gtx train` for 10,000 molecules: task, featuriser, description, model."""
    task = Regression("y", scaler=TargetScaler.fit(torch.tensor([[0.0], [1.0]], dtype=torch.float64)))
    spec = make_model_spec(TrainSettings(), Featuriser(), task, 10_000)
    torch.manual_seed(0)
    return task, Featuriser(), spec, ARCHITECTURES[spec["name"]].make(**spec["arguments"])
