"""Compiled loops over molecules, spread over threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import torch

_LEAST = 20_000  # units of work worth a thread: some 20 microseconds


def spread(kernel: Callable[..., None], work: np.ndarray, *arguments: Any) -> None:
    """Call `kernel(first, last, *arguments)` on ranges of molecules that together are all of them.

    The ranges hold about the same work, and each runs in a thread of its own, as many as `torch.get_num_threads()`.

    Args:
        kernel: compiled by numba with `nogil=True`; it writes only what belongs to the molecules of its range.
        work: int64 `[B + 1]`, the work of all molecules before each (as `ptr` or `pair_ptr`), in units of a nanosecond
            or so.
        arguments: of the kernel.
    """
    last = len(work) - 1
    total = int(work[-1] - work[0])
    parts = max(1, min(torch.get_num_threads(), total // _LEAST))
    if parts == 1:
        return kernel(0, last, *arguments)
    cuts = np.searchsorted(work, work[0] + total * np.arange(1, parts) // parts).tolist()
    ranges = list(pairwise([0, *cuts, last]))
    others = [_pool(os.getpid(), parts - 1).submit(kernel, *each, *arguments) for each in ranges[1:]]
    try:
        kernel(*ranges[0], *arguments)
    finally:
        for other in others:
            other.result()


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads of this process: a forked one has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="gtx")
