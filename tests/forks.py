"""Worker processes that are forks: they begin at once, with all that is imported and patched here."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from gtx.data import featurising


def use_forks(patch: pytest.MonkeyPatch) -> None:
    """Let every pool of gtx be one of forks."""
    pools: list[ProcessPoolExecutor] = []

    def forked(count: int, **how: Any) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(count, mp_context=get_context("fork"), **how)

    def reused(count: int, **how: Any) -> ProcessPoolExecutor:
        if not pools or not pools[-1]._processes or pools[-1]._broken or pools[-1]._max_workers != count:
            pools.append(forked(count, **how))
        return pools[-1]

    patch.setattr(featurising, "ProcessPoolExecutor", forked)
    patch.setattr(featurising, "get_reusable_executor", reused)
