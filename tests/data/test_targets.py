from __future__ import annotations

import numpy as np
import pytest

from gtx.data.targets import find_duplicates, parse_number


@pytest.mark.parametrize("blank", ["", "  ", "nan", "NaN", "NA", "n/a", "None", "null", " NULL ", "#N/A", "#NV"])
def test_blanks(blank):
    assert np.isnan(parse_number(blank))


@pytest.mark.parametrize(
    "cell", ["high", ">10", "1,5", "1_000", "inf", "-Infinity", "1e999", "0x10", "--1", "1 2", "-", "?", "n.d."]
)
def test_what_is_no_number(cell):
    assert parse_number(cell) == np.inf


@pytest.mark.parametrize(
    ("cell", "number"), [("007", 7), (" -1.50 ", -1.5), ("1e-3", 1e-3), ("+2.", 2), ("−1", np.inf)]
)
def test_numbers(cell, number):
    assert parse_number(cell) == number


def test_conflicting_duplicates():
    nan = np.nan
    smiles = ["C", "CC", "C", "CCC", "CC", None, None, "", "", "O", "O", "O"]
    y = np.array([[1, nan], [2, 5], [1, 3], [0, 0], [2, 6]] + [[0, 0], [1, 1]] * 2 + [[nan, 1], [4, nan], [4, 1]])
    assert find_duplicates(smiles, y) == (
        3,
        7,
        [(1, [1, 4])],
    )  # C agrees where both have numbers, CC differs, O agrees
    assert str(find_duplicates(smiles, y)) == "3 molecules fill 7 rows, 1 of them with conflicting labels"
    one = find_duplicates(["C", "C", "C"], np.array([[1.0], [2], [nan]]))
    assert str(one) == "1 molecule fills 3 rows, 1 of them with conflicting labels" and one.conflicts == [(0, [0, 1])]
