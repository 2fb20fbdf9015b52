"""How long a step takes and how much memory it takes at its peak, in this process."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

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
        self.start = self._held()
        self.reset()

    def reset(self) -> None:
        """Forget the peak so far; freed memory goes back to the system first, so that it is not counted again."""
        gc.collect()
        if self.cuda:
            import torch

            torch.cuda.reset_peak_memory_stats()
        elif CLEAR.exists():
            _trim()
            CLEAR.write_text("5")  # see proc_pid_clear_refs(5)

    def read(self) -> int:
        """Bytes, never below 0."""
        if self.cuda:
            import torch

            return max(0, torch.cuda.max_memory_allocated() - self.start)
        return max(0, _status("VmHWM") - self.start)

    def _held(self) -> int:
        gc.collect()
        if self.cuda:
            import torch

            return torch.cuda.memory_allocated()
        _trim()
        return _status("VmRSS")


def _status(name: str) -> int:
    """Bytes of a line of `/proc/self/status`; where there is none, the process's high-water mark."""
    if STATUS.exists():
        return int(next(line for line in STATUS.read_text().splitlines() if line.startswith(name)).split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _trim() -> None:
    if sys.platform.startswith("linux"):
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc alone
        if trim is not None:
            trim(0)


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


def free_memory() -> int:
    """Bytes that are free on this machine, or to this container."""
    info = Path("/proc/meminfo")
    if not info.exists():
        return 8 << 30
    free = int(next(line for line in info.read_text().splitlines() if line.startswith("MemAvailable")).split()[1])
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if limit.exists() and limit.read_text().strip() != "max":
        return min(free * 1024, int(limit.read_text()) - int(used.read_text()))
    return free * 1024
