"""Rows: lists of atoms and bonds, targets, and the row log that no row leaves in silence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gtx.cli import main
from gtx.data.columns import Row
from gtx.data.feature_columns import cell_text, list_text, parse_labels, parse_list
from gtx.data.joining import join_tables
from gtx.data.row_log import RowLog, format_row_message
from gtx.data.targets import find_duplicates, parse_number
from gtx.errors import InputError
from tests.tables import molecules

# --- Row log.


def test_every_row_has_one_outcome():
    row_log = RowLog()
    row_log.enter(
        [Row(1, ["C"], "C"), Row(2, ["C", "1"], "C", error="2 cells where the header has 1"), Row(3, ["?"], "?")]
    )
    row_log.error(3, "smiles", "?", "syntax error")
    row_log.error(3, "y", "high", "is not a number", category="with a bad target")
    row_log.warn(1, "smiles", "C", "element 'C' was not in training")
    row_log.warn(1, None, None, "odd")
    assert row_log.summary() == (
        "3 rows: 1 read, 2 errors (1 with a broken row, 1 with an unusable molecule), 1 with warnings"
    )
    assert row_log.pop(3) == (
        'row 3, column "smiles", value "?": syntax error; row 3, column "y", value "high": is not a number',
        [],
    )
    assert row_log.pop(1)[1] == ['row 1, column "smiles", value "C": element \'C\' was not in training', "row 1: odd"]
    assert row_log.pop(2) == ("row 2: 2 cells where the header has 1", [])
    assert (row_log.errors, row_log.warnings, row_log.num_errors) == ({}, {}, 2)  # taken, but still counted


def test_failing_at_the_first_error():
    row_log = RowLog("fail")
    row_log.warn(1, None, None, "odd")
    with pytest.raises(InputError, match='row 17, column "smiles", value "C1CC": unclosed ring'):
        row_log.error(17, "smiles", "C1CC", "unclosed ring")
    with pytest.raises(InputError, match="'report' or 'fail'"):
        RowLog("ignore")


def test_a_message_is_one_printable_line_of_bounded_length():
    message = format_row_message(1, "a\nb", "C\0\r\n\x1b[31m\udcff\u2028" + "C" * 500, "two\nlines")
    assert message.isprintable()
    assert message.startswith(r'row 1, column "a\nb", value "C\x00\r\n\x1b[31m\udcff\u2028CCC')
    assert len(message) < 180


# --- A cell with a number, or the label of a class, for each atom or bond.


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


# --- Targets.


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


# --- Tables joined by molecule.


SOLUBLE = "smiles,logS,source\nCCO,1.10,ours\nc1ccccc1,-2,ours\nC1CC,0,ours\nCC(=O)O,,ours\nC(C)O,1.1,theirs\n"
HYDRATION = "name,SMILES,dG\nbenzene,C1=CC=CC=C1,-0.9\nmethane,C,2\nethanol,OCC,-5\nethanol again,CCO,-5.01\n"


@pytest.fixture
def tables(tmp_path: Path) -> list[Path]:
    files = [tmp_path / "soluble.csv", tmp_path / "hydration.csv"]
    for file, text in zip(files, (SOLUBLE, HYDRATION), strict=True):
        file.write_text(text)
    return files


def test_a_molecule_has_the_cells_of_all_tables_and_blanks_stay_blanks(tables: list[Path]) -> None:
    joined = join_tables(tables)
    assert joined.columns == ["smiles", "logS", "dG"]
    assert joined.rows == [
        ["CCO", "1.10", "-5"],  # 1.1 is the same number
        ["CCO", "", "-5.01"],
        ["c1ccccc1", "-2", "-0.9"],
        ["CC(=O)O", "", ""],
        ["C", "", "2"],
    ]
    assert joined.shared == {1: 2, 2: 2} and joined.conflicts == {"dG": 1}
    assert list(joined.left_out.values()) == [["source"], ["name"]]


def test_every_row_of_every_table_has_an_outcome(tables: list[Path]) -> None:
    joined = join_tables(tables)
    assert [(one.row, one.joined, bool(one.error), len(one.warnings)) for one in joined.outcomes] == [
        *((1, [1], False, 0), (2, [3], False, 0), (3, [], True, 0), (4, [4], False, 0), (5, [1], False, 0)),
        *((1, [3], False, 0), (2, [5], False, 0), (3, [1], False, 1), (4, [2], False, 1)),
    ]
    assert 'value "C1CC": cannot be read' in joined.outcomes[2].error
    (warning,) = joined.outcomes[-1].warnings
    assert 'row 4, column "dG", value "-5.01": row 3 of' in warning and "has -5; each has a row of its own" in warning


def test_the_order_of_tables_and_rows_decides_nothing_but_the_order(tmp_path: Path) -> None:
    frame = molecules(40)
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    frame.iloc[:30][["smiles", "gap"]].to_csv(one, index=False)
    frame.iloc[20:][["smiles", "dipole", "gap"]].sample(frac=1, random_state=0).to_csv(other, index=False)
    found = []
    for sources in ((one, other), (other, one)):
        joined = join_tables(sources)
        found.append(pd.DataFrame(joined.rows, columns=joined.columns).sort_values("smiles").reset_index(drop=True))
    pd.testing.assert_frame_equal(found[0], found[1][found[0].columns])
    assert len(found[0]) == 40 and (found[0]["dipole"] == "").sum() == 20 and (found[0]["gap"] != "").all()


def test_columns_are_named_by_their_file_and_the_split_is_that_of_the_first_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("smiles,y,split\nCCO,1,test\nCC,2,train\nOCC,3,train\n")
    (tmp_path / "b.csv").write_text("smiles,y,split\nCCO,4,train\nCCC,5,test\nCC,2,val\n")
    joined = join_tables([tmp_path / "a.csv", tmp_path / "b.csv"], split_column="split", by_file=True)
    assert joined.columns == ["smiles", "a_y", "b_y", "split"]
    # no molecule of a test row is in another part, whatever its other values are
    assert joined.rows == [
        ["CCO", "1", "4", "test"],
        ["CCO", "3", "", "test"],
        ["CC", "2", "2", "train"],
        ["CCC", "", "5", "train"],
    ]
    assert any("has test, which is taken" in warning for warning in joined.outcomes[2].warnings)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["logs"]}, "there is no column 'logs'; did you mean 'logS'"),
        ({"split_column": "part"}, "there is no column 'part'"),
        ({"smiles_column": "SMILES"}, "there is no column 'SMILES'"),
    ],
)
def test_a_missing_column_is_named(tables: list[Path], options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        join_tables(tables, **options)


def test_one_table_cannot_be_joined(tables: list[Path]) -> None:
    with pytest.raises(InputError, match="expected two tables or more to join, got 1"):
        join_tables(tables[:1])
    with pytest.raises(InputError, match=r"names of their own, got .* 2 times"):
        join_tables([tables[0], tables[0]])


def test_the_command_writes_the_table_and_the_row_log(
    tables: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "joined.csv"
    assert main(["join", *map(str, tables), "--out", str(out), "--workers", "0"]) == 0
    printed = capsys.readouterr()
    assert "joined: 4 molecules (2 in 1 table, 2 in 2 tables), 5 rows" in printed.out
    assert 'value "C1CC": cannot be read' in printed.err
    assert out.read_text().splitlines()[:2] == ["smiles,logS,dG", "CCO,1.10,-5"]
    row_log = pd.read_csv(tmp_path / "joined-row-log.csv")
    assert len(row_log) == 9 and row_log["error"].notna().sum() == 1
    assert main(["join", *map(str, tables), "--out", str(out), "--row-log", str(out)]) == 2
    assert main(["join", *map(str, tables), "--out", str(tables[1])]) == 2
    assert "it is read as input" in capsys.readouterr().err
