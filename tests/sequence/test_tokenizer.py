"""Tokens side by side are the text; what is no token is told."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from gtx.errors import InputError
from gtx.sequence import CHARACTER_TOKENIZER, SMILES_TOKENIZER
from tests.molecules_for_tests import SMILES as MOLECULES


def test_tokens_of_a_reaction() -> None:
    text = r"Cl/C=C\Br.[13C@@H-]%12=#:1>>c1nn[nH]c1*"
    expected = r"Cl / C = C \ Br . [13C@@H-] %12 = # : 1 > > c 1 n n [nH] c 1 *"
    assert SMILES_TOKENIZER.split(text) == expected.split()


@pytest.mark.parametrize("smiles", MOLECULES)
def test_round_trip(smiles: str) -> None:
    assert "".join(SMILES_TOKENIZER.split(smiles)) == smiles


def test_round_trip_of_all_of_zinc(shared_data: Path) -> None:
    path = shared_data / "zinc12k" / "zinc12k.csv"
    if not path.is_file():
        pytest.skip(f"real data not at hand: no {path.name}")
    with path.open(newline="") as file:
        smiles = [row["smiles"] for row in csv.DictReader(file)]
    assert len(smiles) == 12000
    assert all("".join(SMILES_TOKENIZER.split(one)) == one for one in smiles)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("CXC", "got 'X' at character 2 of 'CXC'"),
        ("CC[N", "got '\\[' at character 3"),
        (" C", "got ' ' at character 1"),
    ],
)
def test_what_is_no_token_is_told(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        SMILES_TOKENIZER.split(text)


def test_characters() -> None:
    assert CHARACTER_TOKENIZER.split("12+3\n") == ["1", "2", "+", "3", "\n"]
