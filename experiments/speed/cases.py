"""A case is measured in a process of its own; the cases to be compared take turns.

Every script of this folder that measures has cases, each with a name. The script run with `--case NAME` sets that one
case up, says so, and then runs one of its steps whenever it is told to by a line on standard input. The script run
without it starts such a process for every case of a group and lets them take turns, so that whatever else the machine
does meets all of them alike; yet no case sees another's memory, caches of code or threads, and one that runs out of
memory takes nobody with it: that is its result.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from experiments.speed.measure import Gauge, burst, free_memory, limit_memory

LIBRARY_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Work(NamedTuple):
    """What a case does.

    Attributes:
        steps: by name, what is measured.
        facts: figures that go with every result, such as counts of molecules.
        seconds: a step is repeated in its turn until so many are used up; 0 runs it once.
    """

    steps: Mapping[str, Callable[[], Any]]
    facts: Mapping[str, Any] = {}
    seconds: float = 0.1


def cores() -> int:
    """The cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def options(doc: str, arguments: Sequence[str] | None = None, more: Callable | None = None) -> argparse.Namespace:
    """The options all scripts share, read from `arguments` or the command line.

    Args:
        doc: the script's docstring.
        arguments: words of the command line.
        more: adds options of the script's own to the parser.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few small cases, in a minute or so; results not kept")
    parser.add_argument("--repeats", type=int, help="turns of every case, after one to warm up (default 9; quick 2)")
    parser.add_argument("--seconds", type=float, default=60.0, help="no new turn of a group after so long")
    parser.add_argument("--limit", type=float, default=600.0, help="a turn that takes longer ends the case, seconds")
    parser.add_argument(
        "--memory", type=float, help="GiB that a case may use (default: three quarters of what is free)"
    )
    parser.add_argument(
        "--clock", default="wall", choices=["wall", "cpu"], help="seconds of the clock, or (machine busy) processor"
    )
    parser.add_argument("--threads", type=int, default=cores(), help="threads of torch (default: all cores)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--out", help="folder of the results (default experiments/results/speed; quick: runs/speed)")
    parser.add_argument("--case", help="set up this one case; then every line of standard input runs a step of it")
    if more is not None:
        more(parser)
    read = parser.parse_args(arguments)
    read.repeats = read.repeats or (2 if read.quick else 9)
    read.memory = read.memory or 0.75 * free_memory() / 2**30
    return read


def race(
    module: str,
    cases: Sequence[str],
    options: argparse.Namespace,
    warm_up: bool = True,
    words: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Measure cases in turns.

    Args:
        module: the script, as `python -m` knows it.
        cases: their names.
        options: what `options` read.
        warm_up: leave out the times of the first turn; without it there is one turn alone, for long work.
        words: options of the script's own, for the cases' processes.

    Returns:
        A record for every case and step, see `record`.
    """
    runs = [Process(module, case, options, words) for case in cases]
    try:
        for run in runs:
            run.set_up()
        begun = time.perf_counter()
        for turn in range(options.repeats + 1 if warm_up else 1):
            if turn > 2 and time.perf_counter() - begun > options.seconds:
                break
            for run in runs[turn % len(runs) :] + runs[: turn % len(runs)]:  # nobody is always first
                run.turn()
    finally:
        for run in runs:
            run.close()
    return [
        record(run.case, step, turns, run.facts, warm_up, options.clock)
        for run in runs
        for step, turns in run.turns.items()
    ]


def record(
    case: str,
    step: str,
    turns: Sequence[dict[str, Any]],
    facts: Mapping[str, Any],
    warm_up: bool = True,
    clock: str = "wall",
) -> dict[str, Any]:
    """One result.

    Args:
        case: its name.
        step: of the case.
        turns: what the process replied, turn by turn; the last one may have failed.
        facts: figures of the case.
        warm_up: the first turn does not count.
        clock: which seconds to tell of.

    Returns:
        `seconds`, the median of all runs, by that clock; `low` and `high`, their quartiles; `turns`, the median of each
        turn; `wall` and `cpu`, the median by either clock; `runs`, how many there were; `peak`, bytes; and the case's
        own figures. Or `failed`, why there is nothing to tell.
    """
    named = {"case": case, "step": step, **facts}
    if turns and "failed" in turns[-1]:
        return named | {"failed": turns[-1]["failed"]}
    counted = turns[1:] if warm_up and len(turns) > 1 else turns
    seconds = [value for turn in counted for value in turn[clock]]
    quarters = statistics.quantiles(seconds, n=4, method="inclusive") if len(seconds) > 1 else seconds * 3
    own = {key: value for key, value in counted[-1].items() if key not in ("wall", "cpu", "peak")}
    return named | {
        "seconds": statistics.median(seconds),
        "low": quarters[0],
        "high": quarters[2],
        "turns": [statistics.median(turn[clock]) for turn in counted],
        "wall": statistics.median(value for turn in counted for value in turn["wall"]),
        "cpu": statistics.median(value for turn in counted for value in turn["cpu"]),
        "runs": len(seconds),
        "peak": max(turn["peak"] for turn in counted),
        **own,
    }


class Process:
    """A case, in a process of its own.

    Args:
        module: the script.
        case: the case's name.
        options: as for `race`.
        more: as its `words`.
    """

    def __init__(self, module: str, case: str, options: argparse.Namespace, more: Sequence[str] = ()) -> None:
        self.case, self.limit = case, options.limit
        self.facts: dict[str, Any] = {}
        self.turns: dict[str, list[dict[str, Any]]] = {}
        words = [*("--case", case), *("--threads", str(options.threads)), *("--device", options.device)]
        words += [*("--memory", str(options.memory)), *(["--quick"] if options.quick else []), *more]
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | dict.fromkeys(LIBRARY_THREADS, str(options.threads)),
        )

    def set_up(self) -> None:
        """Wait until the case is ready."""
        reply = self._reply()
        self.facts = reply.get("facts", {})
        self.turns = {step: [] for step in reply.get("steps", ["all"])}
        if "failed" in reply:
            self.turns = {"all": [reply]}

    def turn(self) -> None:
        """Run every step that has not failed."""
        for step, turns in self.turns.items():
            if not turns or "failed" not in turns[-1]:
                turns.append(self._ask(step))

    def close(self) -> None:
        """End the process: it ends by itself, and its workers with it, when nobody asks any more."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _ask(self, step: str) -> dict[str, Any]:
        try:
            self.process.stdin.write(f"{step}\n")
            self.process.stdin.flush()
        except OSError:  # it ended during the step before
            return {"failed": "ended by the step before"}
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        late = threading.Event()

        def stop() -> None:
            late.set()
            self.process.kill()

        timer = threading.Timer(self.limit, stop)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if line:
            return json.loads(line)
        code = self.process.wait()
        if late.is_set():
            return {"failed": f"longer than {self.limit:.0f} s"}
        return {"failed": f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"}


def serve(make: Callable[[str], Work], options: argparse.Namespace) -> None:
    """Be the process of one case: set it up, then run a step for every line that names one.

    Args:
        make: from the case's name to its work.
        options: `case`, `threads`, `device`, `memory`.
    """
    import torch

    replies = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # whatever libraries print does not mix with the replies
    torch.set_num_threads(options.threads)
    wait = torch.cuda.synchronize if options.device.startswith("cuda") else None
    if wait is None:
        limit_memory(int(options.memory * 2**30))
    work, failed = _attempt(lambda: make(options.case))
    if failed:
        print(json.dumps({"failed": failed}), file=replies)
        return
    print(json.dumps({"steps": list(work.steps), "facts": dict(work.facts)}), file=replies)
    gauge, warm = Gauge(options.device), set()
    for line in sys.stdin:
        name = line.strip()
        gauge.reset()
        figures, failed = _attempt(partial(burst, work.steps[name], work.seconds, wait))
        reply = {"failed": failed} if failed else {"peak": gauge.read(), **figures}
        print(json.dumps(reply), file=replies)
        if name not in warm:  # what libraries keep of a first run is not the step's
            warm.add(name)
            gauge = Gauge(options.device)


def _attempt(function: Callable[[], Any]) -> tuple[Any, str | None]:
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
