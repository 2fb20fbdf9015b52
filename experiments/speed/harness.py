"""Cases that are compared take turns, in a process of their own.

A topic is a module `bench_<topic>.py` of this folder:

    groups(options)       names of cases, group by group; those of a group take turns
    make(name, options)   what a case does: its `Work`
    TABLE                 what `pages.rival_tables` makes of the records; or tables(records), tables in Markdown
    DEFAULTS              of options, where they are others; may be left out

All cases of a group are set up, then take turns, so that whatever else the machine does meets all alike. A case that
cannot be set up, or runs out of memory, has that as its result.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import re
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from experiments.archive import RESULTS, ROOT
from experiments.speed.measure import burst

TOPICS = ("layer", "encodings", "batches", "featurising", "training", "step", "prediction")
"""In the order of the page."""
GPU_TOPICS = {"step": 280.0, "layer": 110.0, "prediction": 90.0}
"""In the order they are measured, with the seconds that each may take: all together less than ten minutes, what a
group may take beyond its time (`GRACE`) included."""
MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
UNKEPT = ROOT / "runs" / "speed"
Record = dict[str, Any]
LATE = {"failed": "no time was left"}
GRACE = 20.0  # seconds until a process that does not end in time is killed


class Work(NamedTuple):
    """What a case does.

    Attributes:
        steps: by name, what is measured.
        facts: figures that go with every result; "rival" names the case that this one is compared with.
        seconds: a step is repeated in its turn until so many are used up; 0 runs it once.
        once: there is one turn alone, and none to warm up: for long work.
    """

    steps: Mapping[str, Callable[[], Any]]
    facts: Mapping[str, Any] = {}
    seconds: float = 0.1
    once: bool = False


def options(words: Sequence[str], about: str = "", **defaults: Any) -> argparse.Namespace:
    """The options of the command, read; `defaults` are those of a topic."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--topics", nargs="+", choices=TOPICS, help="some of the topics")
    add("--cases", default="", help="cases whose name holds this regular expression; results not kept")
    add("--quick", action="store_true", help="a few small cases; results not kept")
    add("--page", action="store_true", help="measure nothing")
    add("--device", default="cpu", choices=["cpu", "cuda"])
    add("--repeats", type=int, help="turns of every case, after one to warm up (default 9; quick 2)")
    add("--threads", type=int, default=torch.get_num_threads(), help="threads (default: what torch chooses)")
    add("--out", type=Path, help="folder of the results")
    parser.set_defaults(**{"clock": "wall"} | defaults)
    read = parser.parse_args(words)
    gpu = read.device == "cuda"
    read.topics = read.topics or ([*GPU_TOPICS] if gpu else TOPICS)
    read.repeats = read.repeats or (2 if read.quick else 9)
    read.seconds = 3.0 if gpu else 60.0  # no new turn of a group after so long
    read.out = read.out or (UNKEPT if read.quick or read.cases else RESULTS)
    read.memory = MEMORY * 3 // 4
    return read


def measure_topic(topic: ModuleType, options: argparse.Namespace, seconds: float = math.inf) -> Iterator[list[Record]]:
    """Measure a topic, group by group.

    Yields:
        After each group a record (see `record`) for every case and step so far. What there was no time for has failed,
        and groups past the deadline start no process.
    """
    os.environ |= dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(options.threads)
    )  # for the processes
    deadline, records = time.time() + seconds, []
    for group in topic.groups(options):
        if not (cases := [name for name in group if re.search(options.cases, name)]):
            continue
        if time.time() >= deadline:
            records += [{"case": name, "step": "all", **LATE} for name in cases]
            continue
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin, (options,)) as process:
            running = process.submit(race, topic.__name__, cases, options, deadline)
            try:
                records += running.result(max(GRACE, deadline - time.time()) if seconds < math.inf else None)
            except (BrokenProcessPool, TimeoutError) as error:
                for child in multiprocessing.active_children():
                    child.kill()
                reason = LATE if isinstance(error, TimeoutError) else {"failed": "the process was killed"}
                records += [{"case": name, "step": "all", **reason} for name in cases]
        yield [*records]
    yield records


def _begin(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    if options.device == "cpu" and sys.platform.startswith("linux"):  # fail, rather than let the machine swap
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory, options.memory))


def race(topic: str, cases: Sequence[str], options: argparse.Namespace, deadline: float = math.inf) -> list[Record]:
    """Measure cases in turns, in this process, until a time."""
    runs, once = [], False  # what a run is called, its step, its turns
    for name in cases:
        work = attempt(partial(import_module(topic).make, name, options)) if time.time() < deadline else LATE
        if isinstance(work, dict):
            runs.append(({"case": name, "step": "all"}, dict, [work]))
            continue
        once |= work.once
        for step, function in work.steps.items():
            measured = partial(burst, function, work.seconds, options.device)
            runs.append(({"case": name, "step": step, **work.facts}, measured, []))
    begun = time.time()
    for turn in range(1 if once else options.repeats + 1):
        if turn > 2 and time.time() - begun > options.seconds:
            break
        first = turn % len(runs)  # nobody is always first
        for _, step, turns in runs[first:] + runs[:first]:
            if time.time() < deadline and not (turns and "failed" in turns[-1]):
                turns.append(attempt(step))
    return [record(named, turns, not once, options.clock) for named, _, turns in runs]


def record(named: Mapping[str, Any], turns: Sequence[Record], warm_up: bool = True, clock: str = "wall") -> Record:
    """One result: medians over what `burst` gave turn by turn, without the one to `warm_up`; or why it `failed`.

    `seconds` are those by the `clock`, "wall" or "cpu"; `turns` the median of each turn; `peak` is in bytes.
    """
    if "failed" in (last := turns[-1] if turns else LATE):
        return {**named, **last}
    counted = turns[1:] if warm_up and len(turns) > 1 else turns
    every = {kind: [value for turn in counted for value in turn[kind]] for kind in ("wall", "cpu")}
    medians = {kind: statistics.median(values) for kind, values in every.items()}
    turns = {"turns": [statistics.median(turn[clock]) for turn in counted], "runs": len(every[clock])}
    peak = max(turn["peak"] for turn in counted)
    return {**named, **counted[-1], **medians, "seconds": medians[clock], **turns, "peak": peak}


def attempt(function: Callable[[], Any]) -> Any:
    """What a function gives, or in a few words why it `failed`."""
    try:
        return function()
    except Exception as error:
        if isinstance(error, MemoryError) or re.search("out of memory|can't allocate memory", str(error)):
            return {"failed": "out of memory"}
        return {"failed": f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:200]}"}
