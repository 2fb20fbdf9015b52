"""Worker processes: how many, a stream of work through them, and their end."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from itertools import islice
from typing import Any, TypeVar

from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend.utils import kill_process_tree

Made = TypeVar("Made")


def default_workers() -> int:
    """Worker processes used unless told otherwise: the cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_workers(
    function: Callable[..., Made], chunks: Iterable[tuple[Any, ...]], workers: int, ahead: int = 2
) -> Iterator[Made]:
    """`function(*chunk)` for every chunk, in order, never more than `ahead` chunks per worker in hand.

    Args:
        function: it and all it returns can be pickled.
        chunks: drawn only as they are needed, so memory stays bounded.
        workers: processes, one or more.
        ahead: chunks in hand per worker.
    """
    chunks = iter(chunks)
    # loky's workers outlive the call and need no `if __name__ == "__main__"` in the user's script
    pool = get_reusable_executor(workers)

    def submit(count: int) -> list[Future]:
        return [pool.submit(function, *chunk) for chunk in islice(chunks, count)]

    waiting = deque(submit(workers * ahead))
    try:
        while waiting:
            made = waiting.popleft().result()
            waiting.extend(submit(1))
            yield made
    except BaseException:  # nobody reads on, after an error or a signal: the workers must not either
        stop_workers(pool)
        raise


def stop_workers(pool: Executor) -> None:
    """End loky's workers at once, whatever they have in hand; nobody wants it any more.

    Its own `shutdown(kill_workers=True)` fails in a thread, with a traceback, where tasks wait for a worker.
    """
    for process in list((pool._processes or {}).values()):
        kill_process_tree(process)
    pool.shutdown()
