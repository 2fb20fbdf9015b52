"""Time and peak memory of cases that take turns in this process, and the tables made of them."""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import nn

from gtx.data import MoleculeStore, featurise
from gtx.data.named_sets import load_set
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.tasks import Regression, TargetScaler
from gtx.training import TrainSettings
from gtx.workflow.specs import model_spec

MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
Result = dict[str, Any]
"""`group`, `name`, `count`; then `failed`, or `seconds` (median), `turns` (median of each turn) and `peak` in bytes,
with whatever the measured function returned."""


class Case(NamedTuple):
    """One of the things that are compared.

    Attributes:
        group: cases of a group take turns, and are compared with the first of them.
        name: in the table.
        prepare: sets the case up and returns the function that is measured; a dict that this returns joins the result.
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


def race(cases: Iterable[Case], options: argparse.Namespace) -> list[Result]:
    """Measure cases, group by group; a case that cannot be set up or fails has the reason as its result.

    Args:
        cases: in the order of the tables.
        options: `repeats`, `seconds` and `device`.
    """
    results = []
    for _, group in groupby(cases, lambda case: case.group):
        runners = [(case, attempt(case.prepare), []) for case in group]
        begun = time.time()
        for turn in range(options.repeats + 1):
            if turn > 2 and time.time() - begun > options.seconds:
                break
            first = turn % len(runners)  # no case is always first
            for case, step, turns in runners[first:] + runners[:first]:
                if isinstance(step, dict):
                    turns[:] = [step]
                elif not (turns and (case.once or "failed" in turns[-1])):
                    turns.append(attempt(lambda step=step, case=case: burst(step, case.seconds, options.device)))
        results += [summarise(case, turns) for case, _, turns in runners]
    return results


def summarise(case: Case, turns: Sequence[Result]) -> Result:
    """Medians over the turns of a case, without the first, which warms up."""
    result = {"group": case.group, "name": case.name, "count": case.count}
    if "failed" in turns[-1]:
        return result | turns[-1]
    counted = turns if case.once else turns[1:] or turns
    medians = [statistics.median(turn["wall"]) for turn in counted]
    seconds = statistics.median([wall for turn in counted for wall in turn["wall"]])
    return {**counted[-1], **result, "seconds": seconds, "turns": medians, "peak": max(t["peak"] for t in counted)}


def attempt(function: Callable[[], Any]) -> Any:
    """Return what a function returns, or in a few words why it failed."""
    try:
        return function()
    except Exception as error:
        if isinstance(error, MemoryError) or re.search("out of memory|can't allocate memory", str(error)):
            return {"failed": "out of memory"}
        return {"failed": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"}


def burst(step: Callable[[], Any], seconds: float, device: str) -> Result:
    """Run a step once, and again until so many seconds are used up; a dict that it returns joins the result.

    Memory on a GPU is what torch has allocated. On a CPU it is the resident set, whose high-water mark (VmHWM) Linux
    resets on demand; elsewhere the mark is that of the whole process.

    Returns:
        `wall`, a list of seconds; `peak`, the most memory held, bytes, above what was held before.
    """
    walls, own, gpu = [], {}, device == "cuda"
    gc.collect()
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    elif CLEAR.exists():
        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # glibc alone
            trim(0)  # freed memory goes back to the system, so that it is not counted again
        CLEAR.write_text("5")  # see proc_pid_clear_refs(5)
    before = torch.cuda.memory_allocated() if gpu else resident("VmRSS")
    while not walls or sum(walls) < seconds:
        wall, figures = timed(step, device)
        walls.append(wall)
        own = figures if isinstance(figures, dict) else own
        del figures  # nothing of this run lives on in the next
    peak = torch.cuda.max_memory_allocated() if gpu else resident("VmHWM")
    return {"wall": walls, "peak": max(0, peak - before), **own}


def timed(function: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Return the seconds until the device is done, and what the function returned."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begun = time.perf_counter()
    returned = function()
    wait()
    return time.perf_counter() - begun, returned


def resident(name: str) -> int:
    """Return bytes of this process: VmRSS (now) or VmHWM (the most); the most where there is no /proc."""
    if not STATUS.exists():
        return high_water(resource.RUSAGE_SELF)
    found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text())
    assert found
    return 1024 * int(found[1])


def high_water(whose: int) -> int:
    """Return the most bytes that this process, or the largest of its children, ever held."""
    return resource.getrusage(whose).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def captured(step: Callable[[], Any]) -> Callable[[], dict[str, int]]:
    """Record a step on a GPU as a CUDA graph; each call replays it and returns the `peak` of the recording."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.reset_peak_memory_stats()
    graph, before = torch.cuda.CUDAGraph(), torch.cuda.memory_allocated()
    with torch.cuda.graph(graph):
        step()
    peak = {"peak": torch.cuda.max_memory_allocated() - before}
    return lambda: graph.replay() or peak


def table(title: str, rows: Sequence[Mapping[str, str]]) -> str:
    """Write rows of cells by their heads as Markdown below a heading; a cell that a row lacks is empty."""
    frame = pd.DataFrame(rows).fillna("")
    lines = [f"### {title}", ""]
    for cells in (frame.columns, ["---", *["--:"] * (frame.shape[1] - 1)], *frame.to_numpy()):
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines) + "\n"


def figure_rows(
    results: Iterable[Result], heads: Sequence[str], figures: Mapping[str, Callable[[Result], str]]
) -> list[dict[str, str]]:
    """Return a row for each result: group and name under `heads`, then its figures, or why it failed."""
    rows = []
    for result in results:
        rows.append(dict(zip(heads, [result["group"], result["name"]][-len(heads) :], strict=True)))
        if "failed" in result:
            rows[-1][next(iter(figures))] = result["failed"]
        else:
            rows[-1] |= {head: figure(result) for head, figure in figures.items()}
    return rows


def relative(results: Sequence[Result], key: str = "seconds") -> Callable[[Result], str]:
    """Return a figure: a result relative to the first of its group; for times the median over turns."""
    first = {result["group"]: result for result in reversed(results)}

    def figure(result: Result) -> str:
        ratio = quotient(result, first[result["group"]], key)
        return "" if ratio is None else f"{ratio:.2f}x"

    return figure


def quotient(one: Result | None, other: Result | None, key: str = "seconds") -> float | None:
    """Divide a figure of one result by that of another; None where one is missing."""
    if not one or not other or "failed" in one or "failed" in other or not other[key]:
        return None
    if key == "seconds" and len(one["turns"]) == len(other["turns"]):
        return statistics.median(a / b for a, b in zip(one["turns"], other["turns"], strict=True))
    return one[key] / other[key]


def megabytes(result: Result) -> str:
    """Write the peak memory of a result."""
    return f"{result['peak'] / 2**20:,.0f} MiB"


def molecule_rate(result: Result) -> str:
    """Write the molecules per second of a result."""
    return f"{result['count'] / result['seconds']:,.0f}"


SETS = {"zinc12k": ("zinc12k", "split"), "esol": ("mat/esol", "split_random_0"), "xtb9": ("xtb9", "split_random")}


def sampled(name: str, most: int | None = None) -> pd.DataFrame:
    """Read `smiles`, the first target as `y`, and `split` of one of `SETS`, downloaded if need be.

    Args:
        name: of the set.
        most: training rows; a fifth as many of validation and of test. None for all rows.
    """
    official, split = SETS[name]
    entry = load_set(official)
    read = pd.read_parquet if entry.path.suffix == ".parquet" else pd.read_csv
    frame = read(entry.path)[[entry.smiles_column, entry.targets[0], split]].set_axis(["smiles", "y", "split"], axis=1)
    if most is None:
        return frame
    return frame[frame.groupby("split").cumcount() < frame["split"].map({"train": most}).fillna(most // 5)]


def featurised(name: str, most: int) -> MoleculeStore:
    """Featurise the first molecules of a set by default, with their target."""
    found = sampled(name).head(most)
    done = featurise(Featuriser(), found["smiles"].tolist(), workers=0)
    return done.store.with_targets(found["y"].to_numpy(float)[done.good, None])


def default_model() -> tuple[Regression, Featuriser, dict[str, Any], nn.Module]:
    """Build the untrained model of `gtx train` for 10,000 molecules: task, featuriser, description, model."""
    task = Regression("y", scaler=TargetScaler.fit(torch.tensor([[0.0], [1.0]], dtype=torch.float64)))
    spec = model_spec(TrainSettings(), Featuriser(), task, 10_000)
    torch.manual_seed(0)
    return task, Featuriser(), spec, ARCHITECTURES[spec["name"]].make(**spec["arguments"])
