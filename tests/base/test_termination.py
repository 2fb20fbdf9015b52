"""SIGTERM as an exception."""

import os
import pickle
import signal
from threading import Thread

import pytest

from gtx.base.errors import Terminated, raise_on_sigterm, raise_terminated


def test_sigterm_raises_within_alone() -> None:
    with pytest.raises(Terminated) as end, raise_on_sigterm():
        assert signal.getsignal(signal.SIGTERM) is raise_terminated
        os.kill(os.getpid(), signal.SIGTERM)
    assert end.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_handler_of_the_program_stays() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with raise_on_sigterm():
            os.kill(os.getpid(), signal.SIGTERM)
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_than_the_main_one_have_no_handlers() -> None:
    entered: list[bool] = []

    def enter() -> None:
        with raise_on_sigterm():
            entered.append(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)

    thread = Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [True]


def test_a_worker_process_can_hand_it_on() -> None:
    assert pickle.loads(pickle.dumps(Terminated())).code == 143
