from __future__ import annotations

import numpy as np
import pytest

from gtx.data.ledger import Ledger
from gtx.data.rows import Row
from gtx.data.tables import open_table
from gtx.data.targets import conflicting_duplicates, infer_task, parse_number, parse_targets, read_targets
from gtx.errors import InputError

COLUMNS = ["smiles", "y", "z"]


def rows_of(*cells: tuple[str, str]) -> list[Row]:
    return [Row(number, ["C", *pair], "C") for number, pair in enumerate(cells, start=1)]


@pytest.mark.parametrize("blank", ["", "  ", "nan", "NaN", "NA", "n/a", "None", "null", " NULL "])
def test_blanks(blank):
    assert np.isnan(parse_number(blank))


@pytest.mark.parametrize("cell", ["high", ">10", "1,5", "1_000", "inf", "-Infinity", "1e999", "0x10", "--1", "1 2"])
def test_what_is_no_number(cell):
    assert parse_number(cell) == np.inf


@pytest.mark.parametrize(
    ("cell", "number"), [("007", 7), (" -1.50 ", -1.5), ("1e-3", 1e-3), ("+2.", 2), ("−1", np.inf)]
)
def test_numbers(cell, number):
    assert parse_number(cell) == number


def test_targets_with_blanks_and_bad_cells():
    ledger = Ledger()
    rows = [*rows_of(("1.5", ""), ("nan", "2"), ("x", "3"), ("4", "inf")), Row(5, ["C", "9", ""], "C", error="ragged")]
    y = parse_targets(rows, COLUMNS, ["z", "y"], ledger)
    assert np.array_equal(y, [[np.nan, 1.5], [2, np.nan]] + [[np.nan] * 2] * 3, equal_nan=True)
    assert ledger.errors == {
        3: 'row 3, column "y", value "x": is not a finite number, nor blank',
        4: 'row 4, column "z", value "inf": is not a finite number, nor blank',
    }
    with pytest.raises(InputError, match='row 3, column "y", value "x"'):
        parse_targets(rows, COLUMNS, ["y"], Ledger("fail"))


@pytest.mark.parametrize(
    ("cells", "task", "message"),
    [
        ([("low", "1"), ("", "2"), ("high", "3")], None, "'y' holds text, e.g. 'low'; numbers were expected"),
        ([("", "1"), ("NaN", "2")], None, "'y' is blank in all of the 2 rows"),
        ([], None, "'y' is blank in all of the 0 rows"),
        ([("inf", "1"), ("inf", "2")], None, "'y' holds text, e.g. 'inf'"),
        ([("1", "0"), ("1", "1"), ("", "1")], None, "'y' holds only the class 1"),
        ([("0", "0"), ("0", "1"), ("7", "1")], "classification", "'y' holds only the class 0"),
        ([("2", "0"), ("3", "1")], "classification", "'y' holds no class at all"),
        ([("1", "2")], "ranking", "regression, classification, not 'ranking'"),
    ],
)
def test_hopeless_targets_are_refused(cells, task, message):
    with pytest.raises(InputError, match=message):
        parse_targets(rows_of(*cells), COLUMNS, ["y", "z"], Ledger(), task)


def test_a_missing_target_column():
    with pytest.raises(InputError, match="no column 'w'; the columns are 'smiles', 'y', 'z'"):
        parse_targets(rows_of(("1", "2")), COLUMNS, ["w"], Ledger())


def test_classes_that_are_not_0_or_1_are_row_errors_if_classes_were_asked_for():
    ledger = Ledger()
    y = parse_targets(rows_of(("0", ""), ("1.0", ""), ("2", ""), ("0.5", "")), COLUMNS, ["y"], ledger, "classification")
    assert np.array_equal(y[:, 0], [0, 1, np.nan, np.nan], equal_nan=True)
    assert list(ledger.errors) == [3, 4]


def test_one_class_is_fine_as_a_number():
    assert parse_targets(rows_of(("1", ""), ("1", "")), COLUMNS, ["y"], Ledger(), "regression").tolist() == [[1], [1]]


def test_the_task_is_inferred():
    assert infer_task(np.array([[0, 1], [np.nan, 1]])) == "classification"
    assert infer_task(np.array([[0, 1], [np.nan, 0.5]])) == "regression"
    assert infer_task(np.full((2, 1), np.nan)) == "regression"


def test_targets_that_are_only_scored_are_never_refused():
    rows, names = rows_of(("x", "2"), ("1", "inf")), ["y", "z"]
    for task, expected in (("regression", [[np.nan, 2], [1, np.nan]]), ("classification", [[np.nan] * 2, [1, np.nan]])):
        assert np.array_equal(read_targets(rows, COLUMNS, names, task), expected, equal_nan=True)
    assert read_targets([], COLUMNS, names, "regression").shape == (0, 2)


def test_a_target_named_twice():
    with pytest.raises(InputError, match="'y' is named twice"):
        parse_targets(rows_of(("1", "2")), COLUMNS, ["y", "z", "y"], Ledger())


def test_tox21(shared_data):
    table = open_table(shared_data / "scaffold" / "tox21.csv")
    names = [name for name in table.columns if name not in ("smiles", "split")]
    ledger = Ledger()
    y = parse_targets(list(table.rows), table.columns, names, ledger)
    assert y.shape == (7831, 12)
    assert infer_task(y) == "classification"
    assert 0.1 < np.isnan(y).mean() < 0.25  # MoleculeNet counts about one blank in six
    assert not ledger.errors


def test_conflicting_duplicates():
    nan = np.nan
    smiles = ["C", "CC", "C", "CCC", "CC", None, None, "", "", "O", "O", "O"]
    y = np.array([[1, nan], [2, 5], [1, 3], [0, 0], [2, 6]] + [[0, 0], [1, 1]] * 2 + [[nan, 1], [4, nan], [4, 1]])
    assert conflicting_duplicates(smiles, y) == (3, 7, 1)  # C agrees where both have numbers, CC differs, O agrees
    assert str(conflicting_duplicates(smiles, y)) == "3 molecules fill 7 rows, 1 of them with conflicting labels"
