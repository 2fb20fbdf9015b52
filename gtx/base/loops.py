"""Loops over molecules, compiled by numba, which keeps their machine code for the next run."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numba


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
