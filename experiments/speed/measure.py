"""How long a step takes and how much memory it takes at its peak, in this process."""

from __future__ import annotations

import ctypes
import gc
import re
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def burst(step: Callable[[], Any], seconds: float, device: str) -> dict[str, Any]:
    """Run a step once, and again until so many seconds are used up; a dict that it gives joins the result.

    Memory on a GPU is what torch has allocated. On a CPU it is the resident set: Linux knows its high-water mark
    (VmHWM) and forgets it on demand; elsewhere the mark is that of the whole process.

    Returns:
        `wall` and `cpu`, a list of seconds each: by the clock, and of the processor over all threads of this process.
        `peak`, the most memory held, bytes, above what was held before.
    """
    walls, cpus, own, gpu = [], [], {}, device == "cuda"
    gc.collect()
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    elif CLEAR.exists():
        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # of glibc alone
            trim(0)  # freed memory goes back to the system, so that it is not counted again
        CLEAR.write_text("5")  # see proc_pid_clear_refs(5)
    held = torch.cuda.memory_allocated() if gpu else resident("VmRSS")
    while not walls or sum(walls) < seconds:
        begun = time.process_time()
        wall, figures = timed(step, device)
        walls, cpus = [*walls, wall], [*cpus, time.process_time() - begun]
        own = figures if isinstance(figures, dict) else own
        del figures  # nothing of this run lives on in the next
    peak = torch.cuda.max_memory_allocated() if gpu else resident("VmHWM")
    return {"wall": walls, "cpu": cpus, "peak": max(0, peak - held), **own}


def timed(function: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Seconds by the clock, until the device is done, and what the function gave."""
    wait = torch.cuda.synchronize if device == "cuda" else lambda: None
    wait()
    begun = time.perf_counter()
    given = function()
    wait()
    return time.perf_counter() - begun, given


def resident(name: str) -> int:
    """Bytes of this process: VmRSS, held now, or VmHWM, the most; where Linux does not tell, always the most."""
    if not STATUS.exists():
        return high_water(resource.RUSAGE_SELF)
    return 1024 * int(re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text())[1])


def high_water(whose: int) -> int:
    """Most bytes that this process, or the largest of its children, ever held."""
    return resource.getrusage(whose).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def captured(step: Callable[[], Any]) -> Callable[[], dict[str, int]]:
    """A step on a GPU as a CUDA graph, recorded now and replayed by each call; `peak` is that of the recording."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.reset_peak_memory_stats()
    graph, held = torch.cuda.CUDAGraph(), torch.cuda.memory_allocated()
    with torch.cuda.graph(graph):
        step()
    peak = {"peak": torch.cuda.max_memory_allocated() - held}
    return lambda: graph.replay() or peak
