"""How long a step takes, in parts and in all, and how much memory it takes at its peak, in this process."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class Gauge:
    """The most memory held since the last `reset`, above what was held when the gauge was made.

    On a GPU it is what torch has allocated. On a CPU it is the resident set: Linux knows its high-water mark (VmHWM)
    and forgets it on demand; elsewhere the mark is that of the whole process, so `read` shows what went beyond set-up.

    Args:
        device: as torch names it.
    """

    def __init__(self, device: str) -> None:
        self.cuda = device.startswith("cuda")
        self._give_back()
        self.start = torch.cuda.memory_allocated() if self.cuda else _status("VmRSS")
        self.reset()

    def reset(self) -> None:
        """Forget the peak so far."""
        self._give_back()
        if self.cuda:
            torch.cuda.reset_peak_memory_stats()
        elif CLEAR.exists():
            CLEAR.write_text("5")  # see proc_pid_clear_refs(5)

    def read(self) -> int:
        """Bytes, never below 0."""
        return max(0, (torch.cuda.max_memory_allocated() if self.cuda else _status("VmHWM")) - self.start)

    def _give_back(self) -> None:
        """Freed memory goes back to the system, so that it is not counted again."""
        gc.collect()
        if not self.cuda and (trim := getattr(ctypes.CDLL(None), "malloc_trim", None)):  # of glibc alone
            trim(0)


def _status(name: str) -> int:
    """Bytes of a line of `/proc/self/status`; where there is none, the process's high-water mark."""
    if STATUS.exists():
        return _kibibytes(STATUS, name)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _kibibytes(file: Path, name: str) -> int:
    """Bytes of a line such as `VmRSS:   123 kB`."""
    return int(next(line for line in file.read_text().splitlines() if line.startswith(name)).split()[1]) * 1024


def burst(step: Callable[[], Any], seconds: float, synchronise: Callable[[], None] | None = None) -> dict[str, Any]:
    """Run a step once, and again until so many seconds are used up.

    Args:
        step: what is measured; figures of its own that it gives as a dict join the result.
        seconds: how long; 0 runs the step once.
        synchronise: waits for the device.

    Returns:
        `wall` and `cpu`, a list of seconds each: by the clock, and of the processor over all threads of this process.
    """
    wait = synchronise or (lambda: None)
    walls, cpus, own = [], [], {}
    while not walls or sum(walls) < seconds:
        wait()
        wall, cpu = time.perf_counter(), time.process_time()
        figures = step()
        wait()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
        if isinstance(figures, dict):
            own = figures
        del figures  # nothing of this run lives on in the next
    return {"wall": walls, "cpu": cpus, **own}


def limit_memory(size: int) -> None:
    """Let this process fail, rather than the machine swap, when its data grows beyond `size` bytes."""
    if sys.platform.startswith("linux"):
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def spare_memory() -> int:
    """Bytes that are free on this machine, or to this container."""
    info = Path("/proc/meminfo")
    if not info.exists():
        return 8 << 30
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    own = limit.read_text().strip() if limit.exists() else "max"
    free = _kibibytes(info, "MemAvailable")
    return free if own == "max" else min(free, int(own) - int(used.read_text()))


class Stopwatch:
    """Seconds spent in parts of a program, summed; a part within another counts for itself alone.

    Attributes:
        seconds: by part.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._running: list[str] = []
        self._since = 0.0

    @contextmanager
    def running(self, part: str) -> Iterator[None]:
        """Count what is done within to a part."""
        self._turn()
        self._running.append(part)
        try:
            yield
        finally:
            self._turn()
            self._running.pop()

    def put_on(self, owner: object, name: str, part: str) -> None:
        """Count every call of `owner.name` to a part, from now on in this process."""
        function = getattr(owner, name)

        def timed(*arguments: object, **named: object) -> object:
            with self.running(part):
                return function(*arguments, **named)

        setattr(owner, name, timed)

    def put_on_training(self) -> None:
        """Count "backward" and "optimiser" (Adam and AdamW) of all training in this process."""
        self.put_on(torch.autograd, "backward", "backward")
        step = torch.optim.Adam.step

        def timed(optimiser: torch.optim.Optimizer, closure: Callable | None = None) -> object:
            with self.running("optimiser"):
                return step(optimiser, None if closure is None else partial(self._elsewhere, closure))

        torch.optim.Adam.step = timed

    def _elsewhere(self, closure: Callable) -> object:
        with self.running("elsewhere"):  # Lightning puts forward, backward and more into the optimiser's step
            return closure()

    def _turn(self) -> None:
        now = time.perf_counter()
        if self._running:
            part = self._running[-1]
            self.seconds[part] = self.seconds.get(part, 0.0) + now - self._since
        self._since = now
