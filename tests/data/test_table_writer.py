import gzip
import os
import threading
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gtx.base.errors import InputError
from gtx.data.table_writer import TableWriter
from gtx.data.tables import open_table

COLUMNS = ["smiles", "a,b", "a,b"]
ROWS = [
    ["CCO", "nan", "007"],
    ["", "", ""],
    [" C ", 'say "hi"', "two\nlines"],
    ["N", "old\rMac", "both\r\n"],
    ["O", "a\tb;c,d", '"quoted"'],
    ["S", "Müller\0", "µ€漢 \u2028"],
]


def write(path: str | Path, rows: list[list[str]], columns: list[str] = COLUMNS) -> None:
    with TableWriter(path, columns) as out:
        for row in rows:
            out.write(row)


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "deep/er/t.csv", "t.parquet"])
def test_cells_survive_a_round_trip_byte_for_byte(tmp_path, name):
    write(tmp_path / name, ROWS)
    table = open_table(tmp_path / name)
    assert table.columns == COLUMNS
    assert [row.cells for row in table.rows] == ROWS


def test_numbers_yes_and_no_and_what_is_missing(tmp_path):
    columns, types = ["id", "y", "valid", "error"], {"y": float, "valid": bool}
    rows = [["007", 1 / 3, True, None], ["", float("nan"), False, "odd"], [None, None, None, ""], ["nan", 2, None, "é"]]
    for name in ("t.csv", "t.parquet"):
        with TableWriter(tmp_path / name, columns, types) as out:
            for row in rows:
                out.write(row)
    text = "id,y,valid,error\n007,0.333333333,1,\n,,0,odd\n,,,\nnan,2,,é\n"
    assert (tmp_path / "t.csv").read_text() == text
    table = pq.read_table(tmp_path / "t.parquet")
    assert table.schema.types == [pa.string(), pa.float64(), pa.bool_(), pa.string()]
    missing = [None if cell != cell else cell for cell in (row[1] for row in rows)]
    assert table.to_pydict() == {
        "id": ["007", "", None, "nan"],
        "y": missing,
        "valid": [True, False, None, None],
        "error": [None, "odd", "", "é"],
    }


def test_what_comes_from_parquet_keeps_its_types(tmp_path):
    given = pa.table(
        {
            "smiles": pa.array(["C", None, "CC", ""], pa.large_string()),
            "single": pa.array([0.1, None, float("nan"), -0.0], pa.float32()),
            "count": pa.array([2**63, 0, None, 1], pa.uint64()),
            "flag": pa.array([True, None, False, True]),
            "when": pa.array([1, None, 3, 4], pa.timestamp("ns", "UTC")),
            "price": pa.array([Decimal("1.10"), None, Decimal("-2.00"), Decimal("0.01")], pa.decimal128(10, 2)),
            "kind": pa.array(["a", "b", None, "a"]).dictionary_encode(),
            "raw": pa.array([b"\xff", b"", None, b"a"]),
            "words": pa.array([["a"], None, [], ["b", None]]),
            "pair": pa.array([{"x": 1}, None, {"x": None}, {"x": 4}]),
        },
        metadata={"licence": "CC0"},
    )
    given = given.set_column(1, given.schema.field(1).with_metadata({"unit": "eV"}), given.column(1))
    given = given.append_column("count", given.column("count"))  # a name may be there twice
    pq.write_table(given, tmp_path / "in.parquet", row_group_size=3)
    table = open_table(tmp_path / "in.parquet")
    with TableWriter(tmp_path / "out.parquet", [*table.columns, "y"], {"y": float}, table.schema) as out:
        for row in table.rows:
            out.write([*row.cells, 0.5], row.record)
    written = pq.ParquetFile(tmp_path / "out.parquet").read()
    assert written.column("y").to_pylist() == [0.5] * 4
    kept = written.select(range(len(given.column_names)))
    assert kept.schema.equals(pq.read_schema(tmp_path / "in.parquet"), check_metadata=True)
    assert str(kept.to_pylist()) == str(given.to_pylist())  # as text, nan is nan


@pytest.mark.parametrize("name", ["p.xlsx", "p.parquet.gz", "p"])
def test_a_name_that_says_something_else_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"one of \.csv, \.tsv, \.tab \(\.gz may follow\) and \.parquet, \.pq"):
        write(tmp_path / name, ROWS)
    assert list(tmp_path.iterdir()) == []


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet"])
@pytest.mark.parametrize("rows", [1, 10_001])  # written at the end alone, or before
def test_a_full_disk_is_one_error(tmp_path, name, rows):
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(InputError, match=rf"^cannot write .*{name}: No space left on device$") as error:
        write(tmp_path / name, [["C" * 100, "1", str(n)] for n in range(rows)])
    assert error.value.__context__ is None or error.value.__suppress_context__


def test_a_reader_that_has_gone_is_no_error_of_the_input(tmp_path):
    os.mkfifo(tmp_path / "t.csv")
    reader = os.open(tmp_path / "t.csv", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(BrokenPipeError), TableWriter(tmp_path / "t.csv", COLUMNS) as out:
        os.close(reader)
        for _ in range(1000):
            out.write(["C" * 100, "", ""])


def test_what_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path, tmp_path / "file" / "t.csv"):
        with pytest.raises(InputError, match="cannot write"), TableWriter(place, COLUMNS):
            pass
    with pytest.raises(ValueError, match="2 cells for 3 columns"):
        write(tmp_path / "t.csv", [["C", "1"]])
