"""Work on many batches, spread over threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

T, Made = TypeVar("T"), TypeVar("Made")


def in_threads(function: Callable[[T], Made], items: Sequence[T]) -> list[Made]:
    """`function(item)` for every item, in order, several at once: as many as torch has threads, which they share.

    A thread to a batch is faster than all threads to each operation on it, most of which are small; and torch's threads
    spin while they wait for the next.

    Args:
        function: spends its time in torch, which lets other threads run. What holds for one thread alone, such as
            `torch.inference_mode`, it sets itself.
        items: what to call it with.
    """
    threads = torch.get_num_threads()
    count = min(threads, len(items))
    if count < 2:
        return [function(item) for item in items]
    try:
        with ThreadPoolExecutor(count, "gtx", torch.set_num_threads, (threads // count,)) as pool:
            return list(pool.map(function, items))
    finally:
        torch.set_num_threads(threads)  # threads to come take their number from whoever set it last
