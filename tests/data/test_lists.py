"""A cell with one number for each atom or bond."""

from __future__ import annotations

import json

import numpy as np
import pytest

from gtx.data.lists import list_text, parse_list
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
        ("[[1, 2]]", r"item 1, '\[1', is neither"),
        ("[true]", "item 1, 'true', is neither"),
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
