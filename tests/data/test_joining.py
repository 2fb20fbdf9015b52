"""Tables joined by molecule: nothing vanishes, nothing is made up, and the order of tables and rows decides nothing."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from gtx.cli import main
from gtx.data.joining import join_tables
from gtx.errors import InputError
from tests.tables import molecules

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


def test_the_command_writes_the_table_and_the_ledger(
    tables: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "joined.csv"
    assert main(["join", *map(str, tables), "--out", str(out), "--workers", "0"]) == 0
    printed = capsys.readouterr()
    assert "joined: 4 molecules (2 in 1 table, 2 in 2 tables), 5 rows" in printed.out
    assert 'value "C1CC": cannot be read' in printed.err
    assert out.read_text().splitlines()[:2] == ["smiles,logS,dG", "CCO,1.10,-5"]
    ledger = pd.read_csv(tmp_path / "joined-ledger.csv")
    assert len(ledger) == 9 and ledger["error"].notna().sum() == 1
    assert main(["join", *map(str, tables), "--out", str(out), "--ledger", str(out)]) == 2
