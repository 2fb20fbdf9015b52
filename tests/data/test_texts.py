from __future__ import annotations

import pytest

from gtx.data import Ledger, Row, parse_texts
from gtx.errors import InputError

COLUMNS = ["smiles", "product"]


def rows(*texts: str) -> list[Row]:
    return [Row(i, ["C", text], "C") for i, text in enumerate(texts, start=1)]


def short(text: str) -> None:
    if len(text) > 3:
        raise InputError(f"expected at most 3 letters, got {len(text)}")


def test_a_text_a_row_and_what_is_wrong_with_the_others() -> None:
    ledger, given = Ledger(), rows("CO", " CN ", "", "CCCCC")
    given.append(Row(5, ["C", "CC"], "C", error="blank line"))
    assert parse_texts(given, COLUMNS, "product", ledger, short) == ["CO", "CN", "", "", ""]
    assert ledger.errors == {4: 'row 4, column "product", value "CCCCC": expected at most 3 letters, got 5'}
    assert ledger.warnings == {
        3: ['row 3, column "product", value "": there is no sequence to learn; the row is only predicted']
    }
    assert ledger.kinds == {"with a bad target": 1}


def test_a_column_without_texts_teaches_nothing() -> None:
    with pytest.raises(InputError, match="'product' is blank in all of the 2 rows; sequences were expected"):
        parse_texts(rows("", "  "), COLUMNS, "product", Ledger(), short)
    assert parse_texts(rows("", ""), COLUMNS, "product", Ledger(), short, trains=False) == ["", ""]
    with pytest.raises(InputError, match="there is no column 'yield'"):
        parse_texts(rows("C"), COLUMNS, "yield", Ledger(), short)
