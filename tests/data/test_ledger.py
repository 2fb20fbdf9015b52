from __future__ import annotations

import pytest

from gtx.data.columns import Row
from gtx.data.ledger import RowLedger, format_row_message
from gtx.errors import InputError


def test_every_row_has_one_outcome():
    ledger = RowLedger()
    ledger.enter(
        [Row(1, ["C"], "C"), Row(2, ["C", "1"], "C", error="2 cells where the header has 1"), Row(3, ["?"], "?")]
    )
    ledger.error(3, "smiles", "?", "syntax error")
    ledger.error(3, "y", "high", "is not a number", category="with a bad target")
    ledger.warn(1, "smiles", "C", "element 'C' was not in training")
    ledger.warn(1, None, None, "odd")
    assert ledger.summary() == (
        "3 rows: 1 read, 2 errors (1 with a broken row, 1 with an unusable molecule), 1 with warnings"
    )
    assert ledger.pop(3) == (
        'row 3, column "smiles", value "?": syntax error; row 3, column "y", value "high": is not a number',
        [],
    )
    assert ledger.pop(1)[1] == ['row 1, column "smiles", value "C": element \'C\' was not in training', "row 1: odd"]
    assert ledger.pop(2) == ("row 2: 2 cells where the header has 1", [])
    assert (ledger.errors, ledger.warnings, ledger.num_errors) == ({}, {}, 2)  # taken, but still counted


def test_failing_at_the_first_error():
    ledger = RowLedger("fail")
    ledger.warn(1, None, None, "odd")
    with pytest.raises(InputError, match='row 17, column "smiles", value "C1CC": unclosed ring'):
        ledger.error(17, "smiles", "C1CC", "unclosed ring")
    with pytest.raises(InputError, match="'report' or 'fail'"):
        RowLedger("ignore")


def test_a_message_is_one_printable_line_of_bounded_length():
    message = format_row_message(1, "a\nb", "C\0\r\n\x1b[31m\udcff\u2028" + "C" * 500, "two\nlines")
    assert message.isprintable()
    assert message.startswith(r'row 1, column "a\nb", value "C\x00\r\n\x1b[31m\udcff\u2028CCC')
    assert len(message) < 180
