"""Loops over molecules, compiled by numba, which keeps their machine code for the next run, and spread over threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, wraps
from itertools import pairwise
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numba
import numpy as np


def compiled_loop(function: Callable) -> Callable:
    """Compile a function with `numba.njit(cache=True)`, without Python's lock and with division as in numpy.

    numba keeps the machine code in the folder `NUMBA_CACHE_DIR`, or beside the source, or in the user's cache. It
    notices a change of the function's own file, so the function must call compiled functions of that file only. A
    damaged file is made anew; where no folder can be written, the function is compiled in every run.
    """
    try:
        loop = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # no folder can be written
        return numba.njit(nogil=True, error_model="numpy")(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return loop(*arguments)
        except (EOFError, UnpicklingError):  # a file of the cache was cut off
            for file in Path(str(loop.stats.cache_path)).glob("*.nb[ci]"):
                file.unlink(missing_ok=True)
            return loop(*arguments)

    return call


_LEAST = 5_000_000  # work worth a Python thread, in nanoseconds: spinning threads of torch delay its start by 2 ms


def split_work(work: np.ndarray, least: int) -> np.ndarray:
    """Divide molecules into ranges of about the same work, at most as many as torch has threads.

    Args:
        work: int64 `[B + 1]`, cumulative work of the molecules before each (like `ptr`), in about nanoseconds.
        least: smallest work worth a thread.

    Returns:
        int64 `[T + 1]`: range t contains the molecules `cuts[t]` to `cuts[t + 1]`.
    """
    import torch  # not to read molecules: an exported model does without

    last, total = len(work) - 1, int(work[-1] - work[0])
    parts = max(1, min(torch.get_num_threads(), total // least))
    inner = np.searchsorted(work, work[0] + total * np.arange(1, parts) // parts)
    return np.concatenate([[0], inner, [last]]).astype(np.int64)


def run_in_threads(kernel: Callable[..., None], work: Any, *arguments: Any) -> None:
    """Call `kernel(first, last, *arguments)` on ranges of molecules of about the same work, each in a thread.

    There are at most `torch.get_num_threads()` threads.

    Args:
        kernel: function compiled by numba with `nogil=True`, which writes only to the molecules of its range.
        work: int64 tensor `[B + 1]`, cumulative work of the molecules before each (like `ptr`), in about nanoseconds.
        arguments: further arguments of the kernel; tensors, on the processor, are passed as arrays.
    """
    arrays = [x.numpy() if hasattr(x, "numpy") else x for x in arguments]
    first, *others = pairwise(split_work(work.numpy(), _LEAST).tolist())
    running = [_pool(os.getpid(), len(others)).submit(kernel, *each, *arrays) for each in others]
    try:
        kernel(*first, *arrays)
    finally:
        for other in running:
            other.result()


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return the threads of a process, as a forked one has none of its parent's."""
    return ThreadPoolExecutor(threads, thread_name_prefix="gtx")
