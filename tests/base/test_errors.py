"""What messages about wrong names suggest, and that messages are fit to print."""

import os
import pickle
import signal
from threading import Thread
from typing import Any

import pytest

from gtx.base.errors import InputError, Terminated, did_you_mean, printable, raise_on_sigterm, raise_terminated

COLUMNS = ["smiles", "logS", "HOMO-LUMO gap"]


def test_a_near_name_is_suggested() -> None:
    for name, end in (
        ("logs", "; did you mean 'logS'?"),
        ("LOGS", "; did you mean 'logS'?"),
        ("SMILE", "; did you mean 'smiles'?"),
        ("homo-lumo_gap", "; did you mean 'HOMO-LUMO gap'?"),
        ("viscosity", ""),
        ("", ""),
    ):
        assert did_you_mean(name, COLUMNS) == end


def test_what_is_shown_of_a_text() -> None:
    for text, shown in (
        ("logS [mol/L], 25 °C, €漢", "logS [mol/L], 25 °C, €漢"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b2J\x7f\0", r"\x9b2J\x7f\x00"),
        ("two\r\nlines\u2028", r"two\r\nlines\u2028"),
        ("M\udcfcller", r"M\udcfcller"),
        ("\u202egpj.exe", r"\u202egpj.exe"),  # would be shown as exe.jpg
        ("C" * 80, "C" * 80),
        ("C" * 81, "C" * 79 + "…"),
    ):
        assert printable(text) == shown
        assert printable(shown) == shown


def test_an_error_is_one_printable_line_whatever_it_quotes() -> None:
    error = InputError("no such file: \x1b]0;owned\x07.csv\n" + "C" * 500)
    assert str(error) == r"no such file: \x1b]0;owned\x07.csv\n" + "C" * 500
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# --- SIGTERM as an exception.


def test_sigterm_raises_within_alone() -> None:
    with pytest.raises(Terminated) as end, raise_on_sigterm():
        assert signal.getsignal(signal.SIGTERM) is raise_terminated
        os.kill(os.getpid(), signal.SIGTERM)
    assert end.value.code == pickle.loads(pickle.dumps(end.value)).code == 143  # a worker process can hand it on
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
    entered: list[Any] = []

    def enter() -> None:
        with raise_on_sigterm():
            entered.append(signal.getsignal(signal.SIGTERM))

    thread = Thread(target=enter)
    thread.start()
    thread.join()
    assert entered == [signal.SIG_DFL]
