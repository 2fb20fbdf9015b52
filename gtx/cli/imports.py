"""Imports of PyTorch and PyTorch Geometric at the start of a command."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing() -> Iterator[None]:
    """Leave garbage alone while packages are imported: their million objects stay, and to look through them takes 1 s.

    Until the end of the process, Python does not look through them again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
