"""No file fills the memory, however small it is on disk; what can go on, goes on."""

import gzip
import io
import sys
import tracemalloc
from functools import partial
from itertools import repeat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rdkit import Chem

from gtx.base.errors import InputError
from gtx.data.rows import LIMITS, Row
from gtx.data.table_writer import TableWriter
from gtx.data.tables import bound_lines, open_table
from gtx.molecules import reading
from tests.training.distributed import processes

TOO_LONG = "has more than 100 characters; its cells are left out"


@pytest.fixture
def short(monkeypatch) -> None:
    monkeypatch.setattr(LIMITS, "longest_row", 100)
    monkeypatch.setattr(LIMITS, "heaviest", 1000)
    monkeypatch.setattr(LIMITS, "most_columns", 5)
    monkeypatch.setattr(reading, "LONGEST_RECORD", 1000)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("length", [99, 100, 101, 205])
def test_a_long_line_is_one_line_whatever_its_end(short, end, length):
    lines = ["a" + end, "x" * length + end, end, "b" + end, "y" * length]
    expected = [line if len(line.rstrip()) <= 100 else None for line in lines]
    assert list(bound_lines(io.StringIO("".join(lines), newline=""))) == expected


def test_a_long_line_costs_its_own_row(short, tmp_path):
    long = "C" * 101
    for name, lines, cells in (
        ("t.csv", ["id,smiles", "1,CCO", long, f'2,"{long}"', "3,N"], [["1", "CCO"], ["", ""], ["", ""], ["3", "N"]]),
        ("t.smi", ["CCO a", long, f"N {long}", "N b"], [["CCO", "a"], ["", ""], ["", ""], ["N", "b"]]),
    ):
        (tmp_path / name).write_text("\n".join(lines))
        rows = list(open_table(tmp_path / name).rows)
        assert [row.cells for row in rows] == cells
        assert [row.error for row in rows] == [None, TOO_LONG, TOO_LONG, None]


def test_a_quoted_cell_of_too_many_characters_costs_its_first_line(short, tmp_path):
    lines = ["smiles,note", "C,a", 'CC,"open', *["x" * 60] * 3, "N,b", 'O,"two', 'lines"', 'S,"open', "x" * 101, "P,c"]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    rows = list(open_table(tmp_path / "t.csv").rows)
    assert [row.text for row in rows if not row.error] == ["C", "N", "O", "P"]
    assert "broken quoting" in rows[1].error and rows[1].cells == ["CC", '"open']


def test_a_header_that_cannot_be_kept_is_refused(short, tmp_path):
    for content, message in (
        ("a" * 101 + ",smiles\nC,C\n", "the header of .* has more than 100 characters"),
        ("smiles,a,b,c,d,e\nC\n", "6 columns or more came; the limit is 5"),
    ):
        (tmp_path / "t.csv").write_text(content)
        with pytest.raises(InputError, match=message):
            open_table(tmp_path / "t.csv")


def test_blank_lines_are_counted_and_not_held(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("smiles\nC\n" + "\n" * 1000 + "N\n" + "\n" * 1000)
    rows = list(open_table(tmp_path / "t.csv").rows)
    assert len(rows) == 1002 and rows[-1] == Row(1002, ["N"], "N")
    for head in (b"CCO\n", b"smiles\nCCO\n"):
        packed = gzip.compress(head + b"\n" * 20_000, mtime=0)
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed)))
        tracemalloc.start()
        assert [row.text for row in open_table("-").rows] == ["CCO"]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000


def test_an_sdf_without_ends_of_records(short, tmp_path):
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    assert len(block) < 1000
    path = tmp_path / "t.sdf"
    path.write_text(f"{block}$$$$\n{block * 5}$$$$\n{block}> <y>\n{'1' * 101}\n\n$$$$\n{block}> <y>\n7\n\n$$$$\n")
    rows = list(open_table(path).rows)
    assert [row.cells for row in rows] == [["CCO", ""], ["", ""], ["", ""], ["CCO", "7"]]
    error = "the record has more than 1,000 characters; its cells are left out"
    assert [row.error for row in rows] == [None, error, error, None]
    path.write_text(block * 50)
    assert [row.error for row in open_table(path).rows] == [error]
    path.write_text(f"{block}$$$$\n" + "\n" * 5000)  # nothing but blank lines follows
    assert len(list(open_table(path).rows)) == 1
    path.write_text("".join(f"{block}> <p{i}>\n1\n\n$$$$\n" for i in range(6)))
    with pytest.raises(InputError, match="6 columns or more came; the limit is 5"):
        open_table(path)


def test_a_long_cell_of_parquet_costs_its_own_row(short, tmp_path):
    long = "C" * 101
    given = pa.table(
        {
            "smiles": ["CCO", long, "N", "C", "CC"],
            "words": pa.array([None, ["a"], ["b"] * 40, None, ["c"]]),
            "raw": pa.array([b"a", None, b"b", b"x" * 101, b"c"]),
            "n": [1, 2, 3, 4, 5],
        },
        pa.schema([("smiles", pa.string(), False), ("words", pa.list_(pa.string())), ("raw", "binary"), ("n", "u1")]),
    )
    pq.write_table(given, tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet")
    rows = list(table.rows)
    assert [row.error for row in rows] == [None, TOO_LONG, TOO_LONG, TOO_LONG, None]
    assert [row.cells for row in rows] == [["CCO", "", "a", "1"], *[[""] * 4] * 3, ["CC", "['c']", "c", "5"]]
    with TableWriter(tmp_path / "out.parquet", table.columns, schema=table.schema) as out:
        for row in rows:
            out.write(row.cells, row.record)
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.schema.types == given.schema.types
    assert written.to_pylist() == [row if row["n"] in (1, 5) else dict.fromkeys(row) for row in given.to_pylist()]


def test_a_text_that_parquet_packs_once_is_not_unpacked_in_every_row(tmp_path, monkeypatch):
    monkeypatch.setattr(LIMITS, "longest_row", 2**19)
    monkeypatch.setattr(LIMITS, "heaviest", 2**21)
    for long, errors in ("C" * 2**20, 500), ("C" * 2**18, 0):  # 500 MB unpacked, and 128 MB of rows that can be kept
        column = pa.array([long]).dictionary_encode().take([0] * 500)
        pq.write_table(pa.table({"smiles": column}), tmp_path / "t.parquet", store_schema=False)
        assert open_table(tmp_path / "t.parquet").schema.types == [pa.string()]
        pool = pa.proxy_memory_pool(pa.default_memory_pool())
        before = pa.default_memory_pool()
        pa.set_memory_pool(pool)
        try:
            rows = open_table(tmp_path / "t.parquet").rows
            assert sum(bool(row.error) for row in rows) == errors
        finally:
            pa.set_memory_pool(before)
        assert pool.max_memory() < 40_000_000


def test_texts_of_a_fixed_length_beyond_the_limit_are_refused_before_they_are_unpacked(tmp_path):
    n = 9_000_000
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"smiles": ["C"], "more": pa.array([b"C" * n], pa.binary(n))}), path)
    before = pa.total_allocated_bytes()
    message = r"cannot read .*t\.parquet: column 'more' holds 9,000,000 bytes in each row"
    with pytest.raises(InputError, match=message):
        open_table(path)
    assert pa.total_allocated_bytes() - before < 1_000_000


def test_texts_within_lists_and_structures_are_weighed_before_they_are_unpacked(short, tmp_path):
    nested = [[{"a": "x" * 40, "b": [1.0]}], [{"a": "x" * 40}] * 3, None, [{"a": "x" * 60, "b": [1.0] * 9}], [None]]
    pairs = pa.array([None, None, [("k", "x" * 120)], [("k", "v")], []], pa.map_(pa.string(), pa.string()))
    fixed = pa.array([[1, 2], None, None, [3, 4], [5, 6]], pa.list_(pa.int8(), 2))
    given = pa.table({"smiles": list("CNOPS"), "nested": nested, "pairs": pairs, "fixed": fixed})
    pq.write_table(given, tmp_path / "t.parquet")
    rows = list(open_table(tmp_path / "t.parquet").rows)
    assert [row.error for row in rows] == [None, TOO_LONG, TOO_LONG, TOO_LONG, None]
    assert rows[0].cells == ["C", str(nested[0]), "", "[1, 2]"] and rows[4].cells == ["S", "[None]", "[]", "[5, 6]"]


def test_groups_of_a_parquet_file_written_are_bounded(short, tmp_path):
    with TableWriter(tmp_path / "t.parquet", ["smiles"]) as out:
        for cells in repeat(["C" * 90], 100):
            out.write(cells)
    file = pq.ParquetFile(tmp_path / "t.parquet")
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (100, 9)


def print_rows_in_little_memory(path: Path) -> None:
    """The rows of a table, in a process that may take 200 MB beside what it has."""
    import resource

    (size,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize"))
    resource.setrlimit(resource.RLIMIT_AS, (int(size.split()[1]) * 1024 + 200_000_000,) * 2)
    print([(row.cells, row.error) for row in open_table(path).rows])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a process are read from /proc")
def test_a_small_packed_file_with_a_line_of_268_megabytes(tmp_path):
    piece = gzip.compress(b"C" * 2**24, 1, mtime=0)  # packed pieces, one after the other, are a packed file
    path = tmp_path / "bomb.csv.gz"
    packed = (gzip.compress(b"id,smiles\n1,CCO\n2,"), *[piece] * 16, gzip.compress(b"\n3,N\n"))
    path.write_bytes(b"".join(packed))
    assert path.stat().st_size < 3_000_000
    ((status, said),) = processes(tmp_path / "said", partial(print_rows_in_little_memory, path))
    error = "has more than 8,388,608 characters; its cells are left out"
    assert said.strip() == str([(["1", "CCO"], None), (["", ""], error), (["3", "N"], None)]) and status == 0
