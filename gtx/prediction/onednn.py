"""Torch's switch for oneDNN, which holds for the whole process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_users = 0
_before = True


@contextmanager
def without_onednn() -> Iterator[None]:
    """oneDNN is off within, and as it was when the last of several threads has left.

    It keeps code for every shape it meets, and each batch has another: half a gigabyte, and no faster.
    """
    global _users, _before
    with _lock:
        if not _users:
            _before, torch.backends.mkldnn.enabled = torch.backends.mkldnn.enabled, False
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                torch.backends.mkldnn.enabled = _before
