"""A case is measured in a process of its own; cases that are compared take turns.

A script `bench_<topic>.py` of this folder has a `Topic`, and a topic has cases, each with a name. Every case of a group
is set up in a process of its own, then they take turns. So whatever else the machine does meets all cases alike, no
case sees another's memory, caches of code or threads, and a case that runs out of memory takes nobody with it: that is
its result.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import torch

from experiments.speed.measure import Gauge, burst, limit_memory, spare_memory

LIBRARY_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Record = dict[str, Any]


class Work(NamedTuple):
    """What a case does.

    Attributes:
        steps: by name, what is measured.
        facts: figures that go with every result, such as counts of molecules; "rival" names the case of the same step
            that this one is rival_table with.
        seconds: a step is repeated in its turn until so many are used up; 0 runs it once.
        once: there is one turn alone, and none to warm up: for long work.
    """

    steps: Mapping[str, Callable[[], Any]]
    facts: Mapping[str, Any] = {}
    seconds: float = 0.1
    once: bool = False


class Topic(NamedTuple):
    """What a script measures.

    Attributes:
        name: the script is `experiments.speed.bench_<name>`.
        about: its docstring.
        make: from a case's name and the options to its work.
        groups: from the options to the names of cases that take turns, group by group.
        tables: from the records to tables in Markdown.
        options: the script's own, by their names, as `add_argument` takes them.
        defaults: of the shared options, where they are others.
        module: the script, where it has another name.
    """

    name: str
    about: str
    make: Callable[[str, argparse.Namespace], Work]
    groups: Callable[[argparse.Namespace], list[list[str]]]
    tables: Callable[[Sequence[Record]], list[str]]
    options: Mapping[str, Mapping[str, Any]] = {}
    defaults: Mapping[str, Any] = {}
    module: str = ""

    @property
    def script(self) -> str:
        """As `python -m` knows it."""
        return self.module or f"experiments.speed.bench_{self.name}"


def options(topic: Topic, words: Sequence[str]) -> argparse.Namespace:
    """The shared options and those of a topic, read."""
    parser = argparse.ArgumentParser(description=topic.about, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--quick", action="store_true", help="a few small cases, in a minute or so; results not kept")
    add("--repeats", type=int, help="turns of every case, after one to warm up (default 9; quick 2)")
    add("--seconds", type=float, default=60.0, help="no new turn of a group after so long")
    add("--limit", type=float, default=600.0, help="a turn that takes longer ends the case, seconds")
    add("--memory", type=float, help="GiB that a case may use (default: three quarters of what is free)")
    add(
        "--clock",
        default="wall",
        choices=["wall", "cpu"],
        help="seconds of the clock, or of a busy machine's processor",
    )
    add("--threads", type=int, default=cores(), help="threads of torch (default: all cores)")
    add("--device", default="cpu", help="cpu or cuda")
    add("--out", help="folder of the results (default experiments/results; quick: runs/speed)")
    add("--name", help="on the page (default: the script's, with the device if that is not cpu)")
    for name, how in topic.options.items():
        add(name, **how)
    parser.set_defaults(**topic.defaults)
    read = parser.parse_args(words)
    read.repeats = read.repeats or (2 if read.quick else 9)
    read.memory = read.memory or 0.75 * spare_memory() / 2**30
    read.name = read.name or "-".join([topic.name, *[read.device] * (read.device != "cpu")])
    return read


def cores() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def race(topic: Topic, cases: Sequence[str], options: argparse.Namespace) -> list[Record]:
    """Measure cases in turns.

    Args:
        topic: whose cases they are.
        cases: their names.
        options: what `options` read.

    Returns:
        A record for every case and step, see `record`.
    """
    os.environ |= dict.fromkeys(LIBRARY_THREADS, str(options.threads))  # for the processes
    runs = [Case(topic, name, options) for name in cases]
    try:
        for run in runs:
            run.set_up()
        once, begun = any(run.once for run in runs), time.perf_counter()
        for turn in range(1 if once else options.repeats + 1):
            if turn > 2 and time.perf_counter() - begun > options.seconds:
                break
            for run in runs[turn % len(runs) :] + runs[: turn % len(runs)]:  # nobody is always first
                run.turn()
    finally:
        for run in runs:
            run.close()
    return [
        record({"case": run.name, "step": step, **run.facts}, turns, not once, options.clock)
        for run in runs
        for step, turns in run.turns.items()
    ]


def record(named: Mapping[str, Any], turns: Sequence[Record], warm_up: bool = True, clock: str = "wall") -> Record:
    """One result.

    Args:
        named: the case, the step, and figures of the case.
        turns: what the process replied, turn by turn; the last one may have failed.
        warm_up: the first turn does not count.
        clock: which seconds to tell of.

    Returns:
        `seconds`, the median of all runs, by that clock; `turns`, the median of each turn; `wall` and `cpu`, the median
        by either clock; `runs`, how many there were; `peak`, bytes; and the case's own figures. Or `failed`, why there
        is nothing to tell.
    """
    if turns and "failed" in turns[-1]:
        return {**named, "failed": turns[-1]["failed"]}
    counted = turns[1:] if warm_up and len(turns) > 1 else turns
    by_clock = {kind: [value for turn in counted for value in turn[kind]] for kind in ("wall", "cpu")}
    seconds = by_clock[clock]
    return {
        **named,
        "seconds": statistics.median(seconds),
        "turns": [statistics.median(turn[clock]) for turn in counted],
        **{kind: statistics.median(values) for kind, values in by_clock.items()},
        "runs": len(seconds),
        "peak": max(turn["peak"] for turn in counted),
        **{key: value for key, value in counted[-1].items() if key not in ("wall", "cpu", "peak")},
    }


class Case:
    """A case, in a process of its own; arguments as of `race`."""

    def __init__(self, topic: Topic, name: str, options: argparse.Namespace) -> None:
        self.name, self.limit, self.once = name, options.limit, False
        self.facts: Record = {}
        self.turns: dict[str, list[Record]] = {}
        spawn = multiprocessing.get_context("spawn")
        self.pipe, own = spawn.Pipe()
        self.process = spawn.Process(target=serve, args=(topic.script, name, options, own))
        self.process.start()
        own.close()

    def set_up(self) -> None:
        """Wait until the case is ready."""
        reply = self._reply()
        self.facts, self.once = reply.get("facts", {}), reply.get("once", False)
        self.turns = {"all": [reply]} if "failed" in reply else {step: [] for step in reply["steps"]}

    def turn(self) -> None:
        """Run every step that has not failed."""
        for step, turns in self.turns.items():
            if not turns or "failed" not in turns[-1]:
                turns.append(self._run(step))

    def close(self) -> None:
        """End the process: it ends by itself, and its workers with it, when nobody names a step any more."""
        self.pipe.close()
        self.process.join(10)
        self.process.kill()
        self.process.join()

    def _run(self, step: str) -> Record:
        try:
            self.pipe.send(step)
        except OSError:
            return {"failed": "ended by the step before"}
        return self._reply()

    def _reply(self) -> Record:
        try:
            if self.pipe.poll(self.limit):
                return self.pipe.recv()
            self.process.kill()
            return {"failed": f"longer than {self.limit:.0f} s"}
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
        return {"failed": f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"}


def serve(script: str, name: str, options: argparse.Namespace, pipe: Connection) -> None:
    """Be the process of one case: set it up, then run a step whenever one is named."""
    torch.set_num_threads(options.threads)
    wait = torch.cuda.synchronize if options.device.startswith("cuda") else None
    if wait is None:
        limit_memory(int(options.memory * 2**30))
    work, failed = attempt(lambda: import_module(script).TOPIC.make(name, options))
    pipe.send({"failed": failed} if failed else {"steps": [*work.steps], "facts": {**work.facts}, "once": work.once})
    gauge, warm = Gauge(options.device), set()
    while not failed:
        try:
            step = pipe.recv()
        except EOFError:
            return
        gauge.reset()
        figures, reason = attempt(partial(burst, work.steps[step], work.seconds, wait))
        pipe.send({"failed": reason} if reason else {"peak": gauge.read(), **figures})
        if step not in warm:  # what libraries keep of a first run is not the step's
            warm.add(step)
            gauge = Gauge(options.device)


def attempt(function: Callable[[], Any]) -> tuple[Any, str | None]:
    """What a function gives, or in a few words why it gave nothing."""
    try:
        return function(), None
    except MemoryError:
        return None, "out of memory"
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        if any("out of memory" in line or "can't allocate memory" in line for line in lines):
            return None, "out of memory"
        return None, f"{type(error).__name__}: {lines[0][:200]}"
