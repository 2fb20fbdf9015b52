"""What messages about wrong names suggest."""

from __future__ import annotations

import pytest

from gtx.errors import did_you_mean

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


def test_nothing_is_near_where_there_is_nothing() -> None:
    assert did_you_mean("logS", []) == ""
    assert did_you_mean("--epoch", ["--epochs", "--ema"], str) == "; did you mean --epochs?"
