"""What messages about wrong names suggest, and that messages are fit to print."""

import pickle

import pytest

from gtx.base.errors import InputError, did_you_mean, printable

COLUMNS = ["smiles", "logS", "HOMO-LUMO gap"]


@pytest.mark.parametrize(
    ("name", "end"),
    [
        ("logs", "; did you mean 'logS'?"),
        ("LOGS", "; did you mean 'logS'?"),
        ("SMILE", "; did you mean 'smiles'?"),
        ("homo-lumo_gap", "; did you mean 'HOMO-LUMO gap'?"),
        ("viscosity", ""),
        ("", ""),
    ],
)
def test_a_near_name_is_suggested(name: str, end: str) -> None:
    assert did_you_mean(name, COLUMNS) == end


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("logS [mol/L], 25 °C, €漢", "logS [mol/L], 25 °C, €漢"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("\x9b2J\x7f\0", r"\x9b2J\x7f\x00"),
        ("two\r\nlines\u2028", r"two\r\nlines\u2028"),
        ("M\udcfcller", r"M\udcfcller"),
        ("\u202egpj.exe", r"\u202egpj.exe"),  # would be shown as exe.jpg
        ("C" * 80, "C" * 80),
        ("C" * 81, "C" * 79 + "…"),
    ],
)
def test_what_is_shown_of_a_text(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert printable(shown) == shown


def test_an_error_is_one_printable_line_whatever_it_quotes() -> None:
    error = InputError("no such file: \x1b]0;owned\x07.csv\n" + "C" * 500)
    assert str(error) == r"no such file: \x1b]0;owned\x07.csv\n" + "C" * 500
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
