"""Texts to numbers and back; what cannot be is told row by row."""

from __future__ import annotations

import json

import pytest

from gtx.errors import InputError
from gtx.sequence import CHARACTER_TOKENIZER, END_TOKEN, START_TOKEN, TokenVocabulary
from tests.molecules_for_tests import SMILES

VOCABULARY = TokenVocabulary.of(SMILES)


def test_round_trip_and_no_token_is_start_or_end() -> None:
    for smiles in SMILES:
        numbers = VOCABULARY.encode(smiles)
        assert VOCABULARY.decode(numbers) == smiles
        assert {START_TOKEN, END_TOKEN}.isdisjoint(numbers) and max(numbers) < len(VOCABULARY)


def test_survives_json() -> None:
    for one in (VOCABULARY, TokenVocabulary.of(["1+2"], CHARACTER_TOKENIZER)):
        again = TokenVocabulary.from_dict(json.loads(json.dumps(one.to_dict())))
        assert again == one and len(again) == len(one)


def test_does_not_depend_on_the_order_of_the_texts() -> None:
    assert TokenVocabulary.of(SMILES[::-1]) == VOCABULARY


def test_unknown_tokens_are_told_each_once() -> None:
    assert VOCABULARY.unknown("CBr[Se]CBr") == ["Br", "[Se]"]
    with pytest.raises(InputError, match=r"^not in the vocabulary of \d+ tokens: 'Br', '\[Se\]'$"):
        VOCABULARY.encode("CBr[Se]CBr")


def test_nothing_is_lost() -> None:
    encoded = VOCABULARY.encode_all(["CC", "", "CBr", "CXC", "CCCC", "CCC"], limit=3)
    assert encoded.rows == [0, 5] and [VOCABULARY.decode(s) for s in encoded.sequences.lists()] == ["CC", "CCC"]
    assert encoded.errors.keys() == {1, 2, 3, 4} and not any("\n" in e for e in encoded.errors.values())
    assert "empty" in encoded.errors[1] and "'Br'" in encoded.errors[2] and "'X'" in encoded.errors[3]
    assert encoded.errors[4] == "expected at most 3 tokens, got 4"


def test_start_and_end_are_no_text() -> None:
    with pytest.raises(ValueError, match="got 1"):
        VOCABULARY.decode([3, END_TOKEN])
