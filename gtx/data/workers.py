"""Worker processes: how many, and their end."""

from __future__ import annotations

import os
from concurrent.futures import Executor

from joblib.externals.loky.backend.utils import kill_process_tree


def default_workers() -> int:
    """Worker processes used unless told otherwise: the cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def stop_workers(pool: Executor) -> None:
    """End loky's workers at once, whatever they have in hand; nobody wants it any more.

    Its own `shutdown(kill_workers=True)` fails in a thread, with a traceback, where tasks wait for a worker.
    """
    for process in list((pool._processes or {}).values()):
        kill_process_tree(process)
    pool.shutdown()
