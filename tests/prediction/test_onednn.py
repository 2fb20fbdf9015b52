"""Threads that predict at once leave torch's switch as it was."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest
import torch

from gtx.prediction.predictor import without_onednn


@pytest.mark.parametrize("before", [True])
def test_the_last_of_two_threads_puts_it_back(before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", before)
    one_in, both_in, first_out = (Barrier(2, timeout=60) for _ in range(3))
    seen = []

    def first() -> None:
        with without_onednn():
            one_in.wait()
            both_in.wait()
        seen.append(torch.backends.mkldnn.enabled)  # the other still predicts
        first_out.wait()

    thread = Thread(target=first)
    thread.start()
    one_in.wait()
    with without_onednn():
        both_in.wait()
        first_out.wait()
    thread.join()
    assert seen == [False] and torch.backends.mkldnn.enabled is before
