"""A cell with a number, or the label of a class, for each atom or bond."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gtx.data.feature_columns import cell_text, list_text, parse_labels, parse_list
from gtx.errors import InputError


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("[0.1, null, -2e-3]", [0.1, np.nan, -0.002]),
        (" [1]\n", [1.0]),
        ("0.1 n/a\n-0.2", [0.1, np.nan, -0.2]),  # as RDKit writes atom property lists, in lines
        ("[0.5, nan, None]", [0.5, np.nan, np.nan]),  # as lists of Parquet come
        ("[]", []),
    ],
)
def test_what_a_list_may_look_like(cell: str, expected: list[float]) -> None:
    np.testing.assert_array_equal(parse_list(cell), expected)


@pytest.mark.parametrize("cell", ["", "  ", "null", "NaN"])
def test_a_blank_cell_is_no_list(cell: str) -> None:
    assert parse_list(cell) is None


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("[1, x, 3]", "item 2, 'x', is neither a finite number nor null"),
        ("[1, inf]", "item 2, 'inf', is neither"),
        ("[2, 1e31]", r"item 2, '1e31', is too large: a number lies between -1e\+30 and 1e\+30"),
    ],
)
def test_an_item_that_is_no_number_is_named(cell: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_list(cell)


def test_what_is_written_is_read_back() -> None:
    values = np.array([0.1, -1 / 3, 1e-12, 12345.678])
    np.testing.assert_allclose(json.loads(list_text(values)), values, rtol=1e-8)
    np.testing.assert_allclose(parse_list(list_text(values)), values, rtol=1e-8)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ('["sp3", null, "sp2"]', ["sp3", None, "sp2"]),
        ("['sp3', None, \"it's\", nan]", ["sp3", None, "it's", None]),  # as Python and Parquet have it
        ("[sp3, sp2]", ["sp3", "sp2"]),
        ("a b\nn/a", ["a", "b", None]),
        ("[true, False]", ["true", "false"]),
        ("[0, 1.5, null]", ["0", "1.5", None]),
        ('["Na", "", "x, y"]', ["Na", None, "x, y"]),  # in quotes a label, and without them a blank
        ("[]", []),
    ],
)
def test_what_a_list_of_labels_may_look_like(cell: str, expected: list[str | None]) -> None:
    assert parse_labels(cell) == expected


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ('["a", ["b"]]', "item 2 is neither a word nor a number nor null"),
        ("[[a, b]]", r"item 1, '\[a', is a list in the list"),
        ("['a, b']", "item 1, 'a, has a quote on one side"),
        ("[" * 100_000, "is a list in the list"),
    ],
)
def test_an_item_that_is_no_label_is_named(cell: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_labels(cell)


def test_labels_that_are_written_are_read_back() -> None:
    labels = ["Na", "1.5", "it's", "x, y", "nan", 'say "a"', "é"]
    assert parse_labels(list_text(np.array(labels, object))) == labels
    assert list_text(np.array(["0", "1"], object)) == "[0, 1]"


@pytest.mark.parametrize("kind", [list, np.array])
def test_a_list_of_a_frame_is_read_as_its_text(kind: type) -> None:
    assert parse_labels(cell_text(kind(["Na", "C", "x, y"]))) == ["Na", "C", "x, y"]
    assert parse_labels(cell_text(kind([True, False]))) == ["true", "false"]
    assert parse_labels(cell_text(["a", None, float("nan")])) == ["a", None, None]
    np.testing.assert_array_equal(parse_list(cell_text(kind([0.5, np.nan]))), [0.5, np.nan])
