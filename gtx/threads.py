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

_LEAST = 5_000_000  # units of work worth a Python thread: torch's own, still spinning, keep it waiting for some 2 ms


def shares(work: np.ndarray, least: int) -> np.ndarray:
    """Cut molecules into ranges of about the same work, at most as many as torch has threads.

    Args:
        work: int64 `[B + 1]`, the work of all molecules before each (as `ptr` or `pair_ptr`), in nanoseconds or so.
        least: work worth a thread.

    Returns:
        int64 `[T + 1]`: range t has the molecules `cuts[t]` to `cuts[t + 1]`.
    """
    last, total = len(work) - 1, int(work[-1] - work[0])
    parts = max(1, min(torch.get_num_threads(), total // least))
    inner = np.searchsorted(work, work[0] + total * np.arange(1, parts) // parts)
    return np.concatenate([[0], inner, [last]]).astype(np.int64)


def spread(kernel: Callable[..., None], work: np.ndarray, *arguments: Any) -> None:
    """Call `kernel(first, last, *arguments)` on ranges of molecules that together are all of them.

    The ranges hold about the same work, and each runs in a thread of its own, as many as `torch.get_num_threads()`.

    Args:
        kernel: compiled by numba with `nogil=True`; it writes only what belongs to the molecules of its range.
        work: int64 `[B + 1]`, the work of all molecules before each (as `ptr` or `pair_ptr`), in nanoseconds or so.
        arguments: of the kernel.
    """
    own, *others = pairwise(shares(work, _LEAST).tolist())
    pool = _pool(os.getpid(), len(others)) if others else None
    running = [pool.submit(kernel, *each, *arguments) for each in others]
    try:
        kernel(*own, *arguments)
    finally:
        for other in running:
            other.result()


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads of this process: a forked one has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="gtx")
