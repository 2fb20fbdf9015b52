from __future__ import annotations

import gzip
import os
import threading
from pathlib import Path

import pytest

from gtx.data.table_writer import TableWriter, fresh_name
from gtx.data.tables import open_table
from gtx.errors import InputError

COLUMNS = ["smiles", "a,b", "a,b"]
ROWS = [
    ["CCO", "nan", "007"],
    ["", "", ""],
    [" C ", 'say "hi"', "two\nlines"],
    ["N", "old\rMac", "both\r\n"],
    ["O", "a\tb;c,d", '"quoted"'],
    ["S", "M\udcfcller\0", "µ€漢 \u2028"],
]


def write(path: str | Path, rows: list[list[str]], columns: list[str] = COLUMNS) -> None:
    with TableWriter(path, columns) as out:
        for row in rows:
            out.write(row)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "deep/er/t.csv"])
def test_cells_survive_a_round_trip_byte_for_byte(tmp_path, name):
    write(tmp_path / name, ROWS)
    table = open_table(tmp_path / name)
    assert table.columns == COLUMNS
    assert [row.cells for row in table.rows] == ROWS


def test_a_single_column_of_blanks(tmp_path):
    write(tmp_path / "t.csv", [["C"], [""], [""]], ["smiles"])
    assert [row.text for row in open_table(tmp_path / "t.csv").rows] == ["C", "", ""]


def test_parquet_round_trip_and_row_groups(tmp_path):
    rows = [["C", str(n), f"0{n}"] for n in range(20_001)]
    write(tmp_path / "t.parquet", [*ROWS[:5], *rows])
    table = open_table(tmp_path / "t.parquet")
    assert (table.columns, table.length) == (COLUMNS, 20_006)
    assert [row.cells for row in table.rows] == [*ROWS[:5], *rows]
    write(tmp_path / "u.parquet", ROWS[5:])  # Parquet strings are UTF-8: a stray byte is replaced
    assert next(open_table(tmp_path / "u.parquet").rows).cells == ["S", "M\ufffdller\0", "µ€漢 \u2028"]


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_the_same_rows_give_the_same_bytes_and_no_rows_a_header(tmp_path, name):
    write(tmp_path / name, ROWS)
    once = (tmp_path / name).read_bytes()
    write(tmp_path / name, ROWS)
    assert (tmp_path / name).read_bytes() == once
    assert not name.endswith(".gz") or once[3:8] == bytes(5)  # neither a name nor a time in its head
    write(tmp_path / name, [])
    table = open_table(tmp_path / name)
    assert (table.columns, list(table.rows)) == (COLUMNS, [])


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
def test_an_error_leaves_what_was_there(tmp_path, name):
    (tmp_path / name).write_text("before")
    with pytest.raises(RuntimeError), TableWriter(tmp_path / name, COLUMNS) as out:
        out.write(ROWS[0])
        raise RuntimeError
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "before"


def test_a_table_can_be_written_over_its_own_source_and_through_a_link(tmp_path):
    write(tmp_path / "t.csv", ROWS)
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    table = open_table(tmp_path / "t.csv")
    with TableWriter(tmp_path / "link.csv", table.columns) as out:
        for row in table.rows:
            out.write(row.cells)
    assert (tmp_path / "link.csv").is_symlink()
    assert [row.cells for row in open_table(tmp_path / "t.csv").rows] == ROWS


def test_standard_output(capfdbinary):
    write("-", ROWS[:1])
    assert capfdbinary.readouterr().out == b'smiles,"a,b","a,b"\nCCO,nan,007\n'


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe.csv.gz"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write(pipe, ROWS[:1])
    reader.join(10)
    assert gzip.decompress(got[0]).endswith(b"CCO,nan,007\n")
    assert pipe.is_fifo()


def test_what_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "t.csv"):
        with pytest.raises(InputError, match="cannot write"), TableWriter(place, COLUMNS):
            pass
    with pytest.raises(ValueError, match="2 cells for 3 columns"):
        write(tmp_path / "t.csv", [["C", "1"]])


def test_a_fresh_name():
    assert fresh_name(["smiles", "y"], "y_pred") == "y_pred"
    assert fresh_name(["y_pred", "y_pred1"], "y_pred") == "y_pred2"
