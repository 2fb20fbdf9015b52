"""Loops compiled by numba, which keeps their machine code for the next run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numba


def compiled_loop(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function with `numba.njit(cache=True, nogil=True)`, and survive a damaged cache.

    numba keeps the machine code in the folder `NUMBA_CACHE_DIR`, or beside the source, or in the user's cache. It
    notices a change of the function's own file, so the function must call compiled functions of that file only. Where
    no folder can be written, the function is compiled in every run.

    Args:
        function: function to compile.
        options: further options of `numba.njit`.
    """
    if function is None:
        return partial(compiled_loop, **options)
    try:
        loop = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # no folder can be written
        return numba.njit(nogil=True, **options)(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return loop(*arguments)
        except (EOFError, UnpicklingError):  # a file of the cache was cut off
            for file in Path(loop.stats.cache_path).glob("*.nb[ci]"):
                file.unlink(missing_ok=True)
            return loop(*arguments)

    return call
