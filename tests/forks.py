"""Worker processes that are forks: they begin at once, with all that is imported and patched here."""

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest

from gtx.data import featurising


class Forks(ProcessPoolExecutor):
    """Pool of forks with the methods of loky's."""

    def __init__(self, count: int, **how: Any) -> None:
        super().__init__(count, mp_context=get_context("fork"), **how)

    def shutdown(self, wait: bool = True, *, kill_workers: bool = False) -> None:
        for process in list((self._processes or {}).values()) if kill_workers else []:
            process.kill()
        super().shutdown(wait)


def use_forks(patch: pytest.MonkeyPatch) -> None:
    """Let every pool of gtx be one of forks."""
    pools: list[Forks] = []

    def reused(count: int, **how: Any) -> Forks:
        if not pools or not pools[-1]._processes or pools[-1]._broken or pools[-1]._max_workers != count:
            pools.append(Forks(count, **how))
        return pools[-1]

    patch.setattr(featurising, "ProcessPoolExecutor", Forks)
    patch.setattr(featurising, "get_reusable_executor", reused)


def until(true: Callable[[], Any], seconds: int = 60) -> None:
    """Wait for something, such as processes that end, a minute at most."""
    for _ in range(100 * seconds):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it never came")
