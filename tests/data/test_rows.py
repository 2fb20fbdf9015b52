"""Rows: lists of atoms and bonds, targets, and the row log that no row leaves in silence."""

import json

import numpy as np
import pytest

from gtx.base.errors import InputError
from gtx.data.cells import cell_text, list_text, parse_labels, parse_list, parse_number
from gtx.data.rows import Row, RowLog, find_column, format_row_message, percent
from gtx.training_data import find_duplicates


def test_every_row_has_one_outcome():
    row_log = RowLog()
    ragged = Row(2, ["C", "1"], "C", error="2 cells where the header has 1")
    row_log.enter([Row(1, ["C"], "C"), ragged, Row(3, ["?"], "?")])
    row_log.error(3, "smiles", "?", "syntax error")
    row_log.error(3, "y", "high", "is not a number", category="with a bad target")
    row_log.warn(1, "smiles", "C", "element 'C' was not in training")
    row_log.warn(1, None, None, "odd")
    said = "3 rows: 1 read, 2 errors (1 with a broken row, 1 with an unusable molecule), 1 with warnings"
    wrong = 'row 3, column "smiles", value "?": syntax error; row 3, column "y", value "high": is not a number'
    assert row_log.summary() == said and row_log.pop(3) == (wrong, [])
    assert row_log.pop(1)[1] == ['row 1, column "smiles", value "C": element \'C\' was not in training', "row 1: odd"]
    assert row_log.pop(2) == ("row 2: 2 cells where the header has 1", [])
    assert (row_log.errors, row_log.warnings, row_log.num_errors) == ({}, {}, 2)  # taken, but still counted


def test_a_message_is_one_printable_line_of_bounded_length():
    message = format_row_message(1, "a\nb", "C\0\r\n\x1b[31m\udcff\u2028" + "C" * 500, "two\nlines")
    assert message.isprintable()
    assert message.startswith(r'row 1, column "a\nb", value "C\x00\r\n\x1b[31m\udcff\u2028CCC')
    assert len(message) < 180


@pytest.mark.parametrize(
    ("share", "text"), [(0, "0%"), (0.005, "<1%"), (0.006, "1%"), (0.994, "99%"), (0.996, ">99%"), (1, "100%")]
)
def test_only_all_is_the_whole_and_only_none_is_nothing(share: float, text: str) -> None:
    assert percent(share) == text


def test_names_with_commas_between_are_told_apart() -> None:
    columns = ["smiles", "temperature", "lab", "pH value"]
    with pytest.raises(InputError, match="no column 'temperature,lab'; spaces separate names: temperature lab; the"):
        find_column(columns, "temperature,lab")
    with pytest.raises(InputError, match="; spaces separate names: lab 'pH value'; the columns are"):
        find_column(columns, "lab, pH value")


# --- A cell with a number, or the label of a class, for each atom or bond.


def test_what_a_list_may_look_like() -> None:
    for cell, expected in (
        ("[0.1, null, -2e-3]", [0.1, np.nan, -0.002]),
        (" [1]\n", [1.0]),
        ("0.1 n/a\n-0.2", [0.1, np.nan, -0.2]),  # as RDKit writes atom property lists, in lines
        ("[0.5, nan, None]", [0.5, np.nan, np.nan]),  # as lists of Parquet come
        ("[]", []),
        *((blank, None) for blank in ("", "  ", "null", "NaN")),
    ):
        np.testing.assert_array_equal(parse_list(cell), expected)


def test_what_is_written_is_read_back() -> None:
    values = np.array([0.1, -1 / 3, 1e-12, 12345.678])
    np.testing.assert_allclose(json.loads(list_text(values)), values, rtol=1e-8)
    np.testing.assert_allclose(parse_list(list_text(values)), values, rtol=1e-8)
    labels = ["Na", "1.5", "it's", "x, y", "nan", 'say "a"', "é"]
    assert parse_labels(list_text(np.array(labels, object))) == labels
    assert list_text(np.array(["0", "1"], object)) == "[0, 1]"


def test_what_a_list_of_labels_may_look_like() -> None:
    for cell, expected in (
        ('["sp3", null, "sp2"]', ["sp3", None, "sp2"]),
        ("['sp3', None, \"it's\", nan]", ["sp3", None, "it's", None]),  # as Python and Parquet have it
        ("[sp3, sp2]", ["sp3", "sp2"]),
        ("a b\nn/a", ["a", "b", None]),
        ("[true, False]", ["true", "false"]),
        ("[0, 1.5, null]", ["0", "1.5", None]),
        ('["Na", "", "x, y"]', ["Na", None, "x, y"]),  # in quotes a label, and without them a blank
        ("[]", []),
    ):
        assert parse_labels(cell) == expected


def test_an_item_that_cannot_be_read_is_named() -> None:
    for parse, cell, reason in (
        (parse_list, "[1, x, 3]", "item 2, 'x', is neither a finite number nor null"),
        (parse_list, "[1,, 3]", "item 2, '', is neither"),
        (parse_list, "[1, inf]", "item 2, 'inf', is neither"),
        (parse_list, "[2, 1e31]", r"item 2, '1e31', is too large: a number lies between -1e\+30 and 1e\+30"),
        (parse_labels, '["a", ["b"]]', "item 2 is neither a word nor a number nor null"),
        (parse_labels, "[[a, b]]", r"item 1, '\[a', is a list in the list"),
        (parse_labels, "['a, b']", "item 1, 'a, has a quote on one side"),
        (parse_labels, "[" * 100_000, "is a list in the list"),
    ):
        with pytest.raises(InputError, match=reason):
            parse(cell)


@pytest.mark.parametrize("kind", [list, np.array])
def test_a_list_of_a_frame_is_read_as_its_text(kind: type) -> None:
    assert parse_labels(cell_text(kind(["Na", "C", "x, y"]))) == ["Na", "C", "x, y"]
    assert parse_labels(cell_text(kind([True, False]))) == ["true", "false"]
    assert parse_labels(cell_text(["a", None, float("nan")])) == ["a", None, None]
    np.testing.assert_array_equal(parse_list(cell_text(kind([0.5, np.nan]))), [0.5, np.nan])


# --- Targets.


BLANK = ("", "  ", "nan", "NaN", "NA", "n/a", "None", "null", " NULL ", "#N/A", "#NV")
TEXT = ("high", ">10", "1,5", "1_000", "inf", "-Infinity", "1e999", "0x10", "--1", "1 2", "-", "?", "n.d.", "\u20131")


def test_numbers_blanks_and_text():
    for cell, number in {"007": 7, " -1.50 ": -1.5, "1e-3": 1e-3, "+2.": 2, "\u22124.1": -4.1}.items():
        assert parse_number(cell) == number
    assert [cell for cell in BLANK if not np.isnan(parse_number(cell))] == []
    assert [cell for cell in TEXT if parse_number(cell) != np.inf] == []


def test_conflicting_duplicates():
    nan = np.nan
    smiles = ["C", "CC", "C", "CCC", "CC", None, None, "", "", "O", "O", "O"]
    y = np.array([[1, nan], [2, 5], [1, 3], [0, 0], [2, 6]] + [[0, 0], [1, 1]] * 2 + [[nan, 1], [4, nan], [4, 1]])
    assert find_duplicates(smiles, y) == (3, 7, [(1, [1, 4])])  # C and O agree where both have numbers, CC differs
    one = find_duplicates(["C", "C", "C"], np.array([[1.0], [2], [nan]]))
    assert one == (1, 3, [(0, [0, 1])])
