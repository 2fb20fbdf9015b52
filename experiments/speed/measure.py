"""Time and peak memory of cases that take turns in this process, and what the cases are made of."""

from __future__ import annotations

import ctypes
import gc
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import nn
from torch.utils.benchmark import Timer

from experiments.runs import read_set
from experiments.summary import markdown
from gtx.data import MoleculeStore, featurise
from gtx.data.public_datasets import load_public_dataset
from gtx.models import ARCHITECTURES
from gtx.molecules import Featuriser
from gtx.tasks import Regression, TargetScaler
from gtx.training import TrainSettings
from gtx.workflow.specs import make_model_spec

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
PLAIN = TrainSettings(kernel_parts=["substructures", "descriptors"])
"""Settings of a network that does not read the embedding of the foundation."""
LEAST, MOST = 0.1, 60.0
"""A turn lasts at least so many seconds; no new turn of a group begins after so many."""
SETS = {"zinc12k": ("zinc12k", "split"), "esol": ("mat/esol", "split_random_0"), "xtb9": ("xtb9", "split_random")}


class Case(NamedTuple):
    """One of the things that are compared.

    Attributes:
        group: cases of a group take turns, and are compared with the first of them.
        name: name in the table.
        prepare: sets the case up and returns the function that is measured.
        count: molecules that the function works through.
        once: a single turn without warm-up, for long work.
        own: the function returns measurements of itself: `seconds`, `peak` in bytes, and other columns of the table.
    """

    group: str
    name: str
    prepare: Callable[[], Callable[[], Any]]
    count: int = 1
    once: bool = False
    own: bool = False


Turns = list[dict[str, Any]]
"""Measurements of a case, a dictionary for each turn: `seconds`, `peak` (bytes) and others; or `failed`, a reason."""


def race(cases: Iterable[Case], turns: int, threads: int = 1, device: str = "cpu") -> dict[Case, Turns]:
    """Measure cases, group by group; a case that cannot be set up or fails has the reason as its result."""
    results: dict[Case, Turns] = {case: [] for case in cases}
    for _, group in groupby(results, lambda case: case.group):
        steps = {case: attempt(results[case], case.prepare) for case in group}
        order, begun = list(steps), time.time()
        for turn in range(turns):
            if turn > 2 and time.time() - begun > MOST:
                break
            for case in order:
                lines = results[case]
                if any("failed" in line for line in lines) or (case.once and lines):
                    continue
                line = attempt(lines, partial(measure, case, steps[case], threads, device))
                lines += [line] if line else []
            order = [*order[1:], order[0]]  # no case is always first
    return results


def measure(case: Case, step: Callable[[], Any], threads: int, device: str) -> dict[str, Any]:
    """Measure a turn: median seconds of a call, and the most memory held above what was held before."""
    before, own = memory_before(device), {}
    if case.own or case.once:
        seconds, returned = timed(step, device)
        own = returned if case.own else {}
    else:
        timer = Timer("step()", globals={"step": step}, num_threads=threads)
        seconds = timer.blocked_autorange(min_run_time=LEAST).median
    peak = torch.cuda.max_memory_allocated() if device == "cuda" else resident("VmHWM")
    return {"seconds": seconds, "peak": max(0, peak - before)} | own


def attempt(lines: Turns, function: Callable[[], Any]) -> Any:
    """Call a function; if it fails, note in a few words why."""
    try:
        return function()
    except Exception as error:
        reason = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"
        if isinstance(error, MemoryError) or re.search("out of memory|can't allocate memory", str(error)):
            reason = "out of memory"
        lines.append({"failed": reason})


def table(results: Mapping[Case, Turns]) -> str:
    """Write results as Markdown; ratios to the first case of a group are medians over turns."""
    firsts = {case.group: turns for case, turns in reversed(results.items())}
    known = ("seconds", "peak", "failed")
    extra = list(
        dict.fromkeys(name for turns in results.values() for line in turns for name in line if name not in known)
    )
    cells = []
    for case, turns in results.items():
        cells.append([case.group, case.name, *figures(case, turns, firsts[case.group])])
        cells[-1] += [str(turns[-1].get(name, "")) for name in extra]
    heads = ["case", "", "time", "per second", "peak memory", "time over the first", "memory over the first", *extra]
    rows = [[cell.replace("|", "/") for cell in row] for row in cells]
    return "\n".join(markdown(" | ".join(heads), "ll" + "r" * (len(heads) - 2), rows)) + "\n"


def figures(case: Case, turns: Turns, first: Turns) -> list[str]:
    """Write time, rate and memory of a case, and their ratios to the first case of its group."""
    if "failed" in turns[-1]:
        return [turns[-1]["failed"], "", "", "", ""]
    seconds, peak = statistics.median(turn["seconds"] for turn in turns), max(turn["peak"] for turn in turns)
    cells = [f"{seconds * 1e3:,.4g} ms", f"{case.count / seconds:,.0f}", f"{peak / 2**20:,.0f} MiB"]
    if "failed" in first[-1]:
        return [*cells, "", ""]
    times = statistics.median(one["seconds"] / other["seconds"] for one, other in zip(turns, first, strict=False))
    return [*cells, f"{times:.2f}x", f"{peak / max(1, *(turn['peak'] for turn in first)):.2f}x"]


def timed(function: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Return the seconds until the device is done, and what the function returned."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begun = time.perf_counter()
    returned = function()
    wait()
    return time.perf_counter() - begun, returned


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


def resident(name: str) -> int:
    """Return bytes of this process: VmRSS (now) or VmHWM (the most); the most if there is no /proc."""
    found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text()) if STATUS.exists() else None
    return high_water(resource.RUSAGE_SELF) if found is None else 1024 * int(found[1])


def high_water(whose: int) -> int:
    """Return the most bytes that this process, or the largest of its children, ever held."""
    return resource.getrusage(whose).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


# --------------------------------------------------------------------------------------- what the cases are made of


def sampled(name: str, most: int | None = None) -> pd.DataFrame:
    """Read `smiles`, the first target as `y`, and `split` of one of `PUBLIC_DATASETS`, downloaded if need be."""
    official, split = SETS[name]
    entry = load_public_dataset(official)
    frame = read_set(official)[[entry.smiles_column, entry.targets[0], split]].set_axis(
        ["smiles", "y", "split"], axis=1
    )
    if most is None:
        return frame
    return frame[frame.groupby("split").cumcount() < frame["split"].map({"train": most}).fillna(most // 5)]


def featurised(name: str, most: int) -> MoleculeStore:
    """Featurise the first molecules of a set by default, with their target."""
    frame = sampled(name).head(most)
    done = featurise(Featuriser(), frame["smiles"].tolist(), workers=0)
    return done.store.with_targets(frame["y"].to_numpy(float)[done.good, None])


def default_model() -> tuple[Regression, Featuriser, dict[str, Any], nn.Module]:
    """Build the untrained network of `gtx train`, without embedding, for 10,000 rows: task, featuriser, spec, model."""
    task = Regression("y", scaler=TargetScaler.fit(torch.tensor([[0.0], [1.0]], dtype=torch.float64)))
    spec = make_model_spec(PLAIN, Featuriser(), task, 10_000)
    torch.manual_seed(0)
    return task, Featuriser(), spec, ARCHITECTURES[spec["name"]].make(**spec["arguments"])
