"""Tables read: columns, separators, lists, targets, the row log, hostile files."""

import bz2
import csv
import gzip
import io
import lzma
import random
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from rdkit import Chem

from gtx.base.errors import InputError
from gtx.data.rows import Row, RowLog, Table
from gtx.data.table_writer import TableWriter
from gtx.data.tables import check_source, open_table, records, sniff


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_cells_are_those_of_the_library(delimiter: str) -> None:
    """The library reads lines with a quote, a shortcut those without: the cells must not tell which."""
    draw = random.Random(0)
    plain = ["", " ", "C", "007", "nan", "x\0y", "ü\udc80", "\v", "\u2028", " a "]
    quoted = ['"a"', f'"a{delimiter}b"', '"a""b"', '"two\nlines"', '""', '"\r\n"']
    rows = (draw.choices(plain + quoted * (draw.random() < 0.2), k=draw.randrange(5)) for _ in range(2000))
    text = "".join(delimiter.join(row) + draw.choice(["\n", "\r\n", "\r"]) for row in rows)
    lines = list(io.StringIO(text, newline=""))
    expected = list(csv.reader(lines, delimiter=delimiter, strict=True))
    assert list(records(lines, delimiter)) == [(cells, None) for cells in expected]


# --- Tables.


HEADER = "id,smiles,y\n"


@pytest.fixture
def table_of(tmp_path):
    """Opens bytes (or text, as UTF-8) as a file of the given name."""

    def make(content: bytes | str, name: str = "t.csv", smiles_column: str | None = None) -> Table:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return open_table(path, smiles_column)

    return make


def cells(table: Table) -> list[list[str]]:
    return [row.cells for row in table.rows]


# Delimited text


WRITTEN = [(",", "\n", "\ufeff", True), (";", "\r\n", "", True), ("\t", "\r", "\ufeff", False)]


@pytest.mark.parametrize(("delimiter", "end", "mark", "packed"), [*WRITTEN, (",", "\r\n", "\ufeff", False)])
def test_delimiters_line_ends_marks_and_compression(table_of, delimiter, end, mark, packed):
    lines = ["id", "smiles", "y"], ["007", "CCO", "nan"], ["", "c1ccccc1", " 1.50 "]
    content = (mark + end.join(map(delimiter.join, lines)) + end).encode()
    table = table_of(gzip.compress(content) if packed else content, "t.csv.gz" if packed else "t.csv")
    assert (table.columns, table.smiles_column) == (lines[0], "smiles")
    assert list(table.rows) == [Row(1, lines[1], "CCO"), Row(2, lines[2], "c1ccccc1")]


def test_the_delimiter_is_sniffed_from_unquoted_text():
    assert sniff("smiles;IC50 (nM, pH 7)", ["smiles"]) == ";"  # one of each: that which sets the SMILES column free
    assert sniff('"a;b;c;d",smiles', ["smiles"]) == sniff('smiles,"an open\n', ["smiles"]) == ","


@pytest.mark.parametrize("broken", ['"open,C,1', '"shut"early,C,1', 'x,C,"open'])
def test_a_broken_quote_costs_one_row(table_of, broken):
    rows = list(table_of(f'{HEADER}a,CC,1\n{broken}\nb,CCO,2\n"c",CCC,3\n').rows)
    assert [row.cells[0] for row in rows if not row.error] == ["a", "b", "c"]
    assert (rows[1].number, ",".join(rows[1].cells)) == (2, broken)
    assert "broken quoting" in rows[1].error


def test_names_are_kept_repeated_or_in_windows_1252_and_cells_of_megabytes(table_of):
    table, long = table_of("y,smiles,y\n1,C,2\n"), "x" * 4_000_000
    assert table.columns == ["y", "smiles", "y"] and cells(table) == [["1", "C", "2"]]
    with pytest.raises(InputError, match="2 columns are called 'y'"):
        table.index("y")
    assert table.notes == ("column 'y': 2 are called so, and none is read",)
    table = table_of("smiles,smiles,y\n1,C,2\n")
    assert table.notes == ("column 'smiles': 2 are called so, and the molecules are those of column 2 of 3",)
    assert next(table.rows).text == "C"
    table = table_of("smiles;Löslichkeit µM\nC;1\n".encode("cp1252"))
    assert table.columns == ["smiles", "Löslichkeit µM"] and cells(table) == [["C", "1"]]
    assert cells(table_of(f'smiles,a,b\nC,"{long}",{long}\n')) == [["C", long, long]]


def test_ragged_and_blank_rows_keep_their_place_and_content(table_of):
    rows = table_of(f"{HEADER}a,C\n\nb,CC,1,2,3\n,,\nc,CCC,1\n\n\n").rows
    assert [(row.number, row.cells, row.error) for row in rows] == [
        (1, ["a", "C", ""], "2 cells where the header has 3"),
        (2, ["", "", ""], "blank line"),
        (3, ["b", "CC", "1,2,3"], "5 cells where the header has 3"),
        (4, ["", "", ""], None),
        (5, ["c", "CCC", "1"], None),
    ]


def test_blank_cells_at_the_end_that_the_header_lacks_or_has_are_no_error(table_of):
    for header, row, expected in (
        ("id,smiles,y", "a,C,1,", ["a", "C", "1"]),  # a comma too many, as some programs write
        ("id,smiles,y", "a,C,1, ,", ["a", "C", "1"]),
        ("id;smiles;y", "a;C;1;;", ["a", "C", "1"]),
        ("id,smiles,y,", "a,C,1", ["a", "C", "1", ""]),  # the other way around
        ("smiles", "C,", ["C"]),
    ):
        (only,) = table_of(f"{header}\n{row}\n").rows
        assert (only.cells, only.error, only.text) == (expected, None, "C")


@pytest.mark.parametrize("name", ["t.csv", "t.smi"])
def test_stray_bytes_are_an_error_in_the_smiles_and_read_as_windows_1252_elsewhere(table_of, tmp_path, name):
    content = b"smiles,id,y\nCCO,M\xfcller \x80,1\nC\xffC,x,2\nC\0C,y,3\nCO,M\xc3\xbcller,4\n"
    table = table_of(content if name == "t.csv" else content.replace(b"r \x80", b"r\x80").replace(b",", b" "), name)
    rows = list(table.rows)
    utf8 = "is not UTF-8 text; save the table as UTF-8"
    assert [row.error for row in rows] == [None, utf8, "holds a NUL byte", None]
    assert rows[0].cells[1].replace(" ", "") == "Müller€" and rows[3].cells[1] == "Müller"
    said = 'column "id" is not UTF-8 text: it is read as Windows-1252, of which Latin-1 is a part, and written as UTF-8'
    assert [row.warnings for row in rows] == [(said,), (), (), ()]
    log = RowLog()
    log.enter(rows)
    assert log.pop(1) == (None, [f"row 1: {said}"])
    with TableWriter(tmp_path / "out.csv", ["smiles", "id", "y"]) as out:
        for row in rows:
            out.write(row.cells)
    assert "Müller" in (tmp_path / "out.csv").read_text("utf-8").splitlines()[1]


UNNAMED = "id,structure,name,y", "1,CCO,ethanol,0.5\n2,,,\n3,C1CC,torso,7\n4,c1ccccc1,?,x"


@pytest.mark.parametrize(
    ("header", "rows", "usual", "found"),
    [
        (*UNNAMED, None, "structure"),
        (*UNNAMED, "name", "structure"),
        ("a,SMILES,b", "C,C,C", None, "SMILES"),
        ("a, smiles ,b", "C,C,C", "smiles", " smiles "),
        ("canonical_smiles,Smiles", "C,C", None, "Smiles"),
        ("mol,smiles", "C,C", "mol", "mol"),
        ("smiles_id,structure,y", "17,CCO,1.5", None, "structure"),
        ("smiles_id,canonical_smiles,y", "17,CCO,1.5", None, "canonical_smiles"),
        ("smiles,canonical_smiles,y", "17,CCO,1.5", None, "canonical_smiles"),
        ("drug,smiles", "17,CCO", "drug", "smiles"),
        ("smiles,solvent_smiles", ",CCO", None, "smiles"),  # blank is no other thing than a molecule
        ("smiles_error,structure", ",CCO", None, "structure"),
        ("smiles_id,y", "17,1.5", None, "smiles_id"),  # there is nothing better: each row says what is wrong
        ("smiles", "C1CC", None, "smiles"),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.txt"])
def test_a_name_wins_but_against_cells_that_are_no_molecules(tmp_path, name, header, rows, usual, found):
    if name == "t.txt":
        (tmp_path / name).write_text(f"{header}\n{rows}\n".replace(",", "\t"))
    else:
        with TableWriter(tmp_path / name, header.split(",")) as out:
            for row in rows.splitlines():
                out.write(row.split(","))
    assert open_table(tmp_path / name, usual_column=usual).smiles_column == found
    if rows.startswith("C"):
        assert open_table(tmp_path / name, usual).smiles_column == found
    asked = "smiles_id" if "smiles_id" in header else None
    assert open_table(tmp_path / name, asked, usual).smiles_column == (asked or found)


def test_a_first_molecule_in_place_of_a_header_and_a_line_of_excel(table_of):
    with pytest.raises(InputError, match="the header has the molecule 'CCO'"):
        table_of("CCO,1\nCCC,2\n")
    assert table_of("CCO,1\nCCC,2\n", smiles_column="CCO").columns == ["CCO", "1"]
    with pytest.raises(InputError, match=r"the header has the molecule 'C': .* if it is a name, say which with `smi"):
        table_of("C\nCC\nCCC\n")
    for blank in ("", "\n \n"):
        table = table_of(f"sep=;\n{blank}smiles;y\nC;1,5\n")
        assert table.columns == ["smiles", "y"] and [row.cells for row in table.rows] == [["C", "1,5"]]


def test_what_cannot_be_a_table_is_refused(table_of):
    for content, asked, message in (
        ("", None, "is empty"),
        ("sep=;\n\n", None, "is empty"),
        ("mol,y\nQ,1\n", None, "no column called 'smiles', and no column of .* `smiles_column`; .*'mol', 'y'"),
        ("a,b\nC,N\n", None, "and several columns of which the first rows can be read as molecules"),
        ("logS,y\nC,1\n", "logs", "no column 'logs'; did you mean 'logS'\\? the columns are 'logS', 'y'"),
        ("smiles_x,smiles_y\nC,C\n", None, "several columns"),
        ("smiles,y\nC,1\n".encode("utf-16-le"), None, "header of .* holds a NUL byte"),
        ('smiles,"y\nC,1\n', None, "broken quoting"),
        (b"\x1f\x8b not gzip at all", None, "cannot read"),
        (gzip.compress(b"smiles\n" + bytes(range(65, 90)) * 9999, mtime=0)[:-20], None, "cannot read"),
    ):
        with pytest.raises(InputError, match=message):
            list(table_of(content, smiles_column=asked).rows)


WORKBOOKS = {
    "xlsx": (b"PK\x03\x04\x14\0\x06\0", "is an Excel workbook: save it as CSV UTF-8"),
    "ods": (b"PK\x03\x04\x14\0\x06\0", "is a LibreOffice workbook: save it as CSV UTF-8"),
    "zip": (b"PK\x03\x04\x14\0\x06\0", "is a ZIP file: unpack it, and give the table inside"),
    "bz2": (bz2.compress(b"smiles\nC\n"), "is packed by bzip2: unpack it, or pack it with gzip"),
    "xz": (lzma.compress(b"smiles\nC\n"), "is packed by xz: unpack it, or pack it with gzip"),
    "csv": (b"PK\x03\x04\x14\0\x06\0", "is an Excel workbook: save it as CSV UTF-8"),
    "txt": ("smiles\ty\nC\t1\n".encode("utf-16"), "is UTF-16 text: save it as CSV UTF-8"),
    "sdf": ("\n\n\n  0  0".encode("utf-16"), "is UTF-16 text: save it as CSV UTF-8"),
}


@pytest.mark.parametrize("ending", WORKBOOKS)
def test_a_workbook_is_told_from_text_by_its_first_bytes(table_of, tmp_path, monkeypatch, ending):
    content, message = WORKBOOKS[ending]
    with pytest.raises(InputError, match=f"t.{ending} {message}$"):
        list(table_of(content, f"t.{ending}").rows)
    with pytest.raises(InputError, match=f"t.{ending}.gz is "):
        list(table_of(gzip.compress(content), f"t.{ending}.gz").rows)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(InputError, match=r"^standard input is (an Excel workbook|UTF-16 text|packed by)"):
        list(open_table("-").rows)


def test_a_header_alone_is_a_table_of_no_rows(table_of):
    for content in ("id,smiles", HEADER, f"{HEADER}\n\n"):
        table = table_of(content)
        assert table.columns[:2] == ["id", "smiles"]
        assert list(table.chunks(10)) == []


# Other sources


def test_a_smiles_file(table_of):
    table = table_of("CCO ethanol\r\n  c1ccccc1\tben zene \n\nC1CC\n\n", "t.smi")
    assert table.columns == ["smiles", "name"]
    assert cells(table) == [["CCO", "ethanol"], ["c1ccccc1", "ben zene "], ["", ""], ["C1CC", ""]]
    assert cells(table_of("SMILES Name \nCCO 7\n", "t.smiles")) == [["CCO", "7"]]
    with pytest.raises(InputError, match="nothing to read"):
        table_of("", "t.smi")


@pytest.mark.parametrize(("tab", "cells"), [("\t", ["CCO", "", "2.5"]), (" ", ["CCO", "2.5", ""])])
def test_a_blank_cell_of_a_smiles_file_moves_no_number_to_another_column(table_of, tab, cells):
    lines = ["smiles", "y", "z"], ["C", "1", "2"], ["CCO", "", "2.5"], ["CC", "3", "4"]
    rows = list(table_of("\n".join(map(tab.join, lines)), "t.smi").rows)
    assert [row.cells for row in rows] == [["C", "1", "2"], cells, ["CC", "3", "4"]]
    error = None if tab == "\t" else "2 cells where the header has 3"
    assert [row.error for row in rows] == [None, error, None]


def test_tabs_of_a_header_keep_names_with_spaces_together(table_of):
    table = table_of("name\tsmiles\ty\nmol 1\tCCO\t2.5\nmol 2\tC\t1\n", "t.smi")
    assert table.smiles_column == "smiles" and cells(table) == [["mol 1", "CCO", "2.5"], ["mol 2", "C", "1"]]


@pytest.mark.parametrize("name", ["t.txt", "t.smi", "t.csv", "t.tsv", "-"])
@pytest.mark.parametrize(
    ("header", "row", "column"),
    [
        ("smiles y", "CCO 1.5", "smiles"),
        ("SMILES   logS\tnote ", "CCO\t1.5  as measured", "SMILES"),
        ("id canonical_smiles y", "mol-1 CCO 1.5", "canonical_smiles"),
        ("smiles_id smiles y", "17 CCO 1.5", "smiles"),
    ],
)
def test_columns_separated_by_white_space_have_the_names_of_their_header(
    table_of, tmp_path, monkeypatch, name, header, row, column
):
    if "\t" in header and name != "t.smi":
        pytest.skip("a tab separates the columns alone")
    content = f"{header}\n{row}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    table = open_table("-") if name == "-" else table_of(content, name)
    assert (table.columns, table.smiles_column) == (header.split(), column)
    (only,) = table.rows
    assert only.cells == row.split(None, len(header.split()) - 1) and only.text == "CCO"


def test_a_name_of_two_words_and_a_name_of_a_molecule_are_no_header_of_several_columns(table_of):
    for header in ("Canonical SMILES", "SMILES string"):
        table = table_of(f"{header}\nCCO\nCC\n", "t.csv")
        assert table.columns == [header] and [row.text for row in table.rows] == ["CCO", "CC"]
    for first, second in ("C1CC smiles_1", "CCO smiles_2"), ("CCO smiles", "C smiles"):
        table = table_of(f"{first}\n{second}\n", "t.smi")
        assert table.columns == ["smiles", "name"] and cells(table) == [first.split(), second.split()]


MOL = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
CONTENTS = {
    "smiles": (b"CCO\nC1CC\n\nN\n\n", ".smi"),
    "names": (b"C C\r\n  CCO\tethyl alcohol, dry\r\n", ".smi"),
    "a header of a SMILES file": (b"SMILES name\nCCO ethanol\n", ".smi"),
    "one that cannot be read comes first": (b"C1CC\nCCO\n", ".smi"),
    "csv": ('\ufeffid,smiles,µ\r\n007,CCO,nan\r\n8,"C","1,5"\r\n'.encode(), ".csv"),
    "the usual column": (b"drug\nCCO\n", ".csv"),
    "no name": (b"id;structure\n1;CCO\n2;N\n", ".csv"),
    "sdf": (f"ethanol{MOL}> <y>\n1\n\n$$$$\n{MOL}".encode(), ".sdf"),
    "a damaged sdf": (b"lost\n> <y>\n3\n\n$$$$\n" + MOL.encode(), ".sdf"),
}


@pytest.mark.parametrize("content", CONTENTS)
@pytest.mark.parametrize("packed", [False, True])
def test_standard_input_is_what_the_same_file_would_be(tmp_path, monkeypatch, content, packed):
    content, ending = CONTENTS[content]
    path, plain = tmp_path / f"in{ending}", tmp_path / "in"  # a name without an ending says no more than "-"
    for place in (path, plain):
        place.write_bytes(gzip.compress(content) if packed else content)
    file = open_table(path, usual_column="drug")
    rows = list(file.rows)
    for source in ("-", plain):
        stdin = io.TextIOWrapper(Dribble(path.read_bytes()))
        monkeypatch.setattr("sys.stdin", stdin)
        table = open_table(source, usual_column="drug")
        assert (table.columns, table.smiles_column) == (file.columns, file.smiles_column)
        assert list(table.rows) == rows and rows
        assert not stdin.buffer.closed


class Dribble(io.BytesIO):
    """A pipe whose other end is slow: a few bytes at a time."""

    def readinto1(self, buffer):
        return super().readinto1(memoryview(buffer)[:5])


def test_parquet_from_standard_input(tmp_path, monkeypatch):
    with TableWriter(tmp_path / "t.parquet", ["id", "smiles"]) as out:
        out.write(["007", "CCO"])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((tmp_path / "t.parquet").read_bytes())))
    table = open_table("-")
    assert (table.columns, table.length) == (["id", "smiles"], 1)
    assert cells(table) == [["007", "CCO"]]


def test_standard_input_that_is_no_table(monkeypatch):
    for content in (b"", b"\x1f\x8b\x08 no gzip", b"PAR1 and no more"):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        with pytest.raises(InputError, match="cannot read standard input" if content else "nothing to read"):
            list(open_table("-").rows)


@pytest.mark.parametrize(
    "smiles", ["CCO", "C[C@H](O)CC |o1:1|", "*C |$_R1;$|", "C/C=C/C", "[Na+].[Cl-]", "CC.Cl", "C" * 500]
)
def test_a_bare_smiles(smiles):
    assert list(open_table(smiles).rows) == [Row(1, [smiles], smiles)]


def test_a_file_comes_before_a_smiles_and_a_folder_is_no_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("CCO").write_text("smiles\nC\nN\n")
    assert [row.text for row in open_table("CCO").rows] == ["C", "N"]
    with pytest.raises(InputError, match="is a folder; a table, which is one file, was expected"):
        open_table(tmp_path)


# Parquet


def test_parquet(tmp_path):
    import pyarrow as pa

    path = tmp_path / "t.parquet"
    columns = {
        "smiles": pa.array(["C", None, "C\0C"]),
        "y": pa.array([1.5, float("nan"), None]),
        "single": pa.array([0.1, 2.0, None], pa.float32()),
        "n": pa.array([7, None, 8]),
        "raw": pa.array([b"\xff", b"ab", None]),
        "words": pa.array([["a"], None, []]),
        "view": pa.array(["a", None, "b"], pa.string_view()),
        "coordinates": pa.array([[[0, 0, 1.5]], None, [[1, 2, 3], [4, 5, 6]]], pa.list_(pa.list_(pa.float32(), 3))),
    }
    pq.write_table(pa.table(columns), path)
    table = open_table(path)
    assert (table.columns, table.length) == (["smiles", "y", "single", "n", "raw", "words", "view"], 3)
    first, second, third = table.rows
    assert first.cells == ["C", "1.5", "0.1", "7", "ÿ", "['a']", "a"]
    assert second.cells == ["", "nan", "2", "", "ab", "", ""]
    assert np.array_equal(first.coordinates, np.float32([0, 0, 1.5]))
    assert second.coordinates is None
    assert np.array_equal(third.coordinates, np.arange(1, 7, dtype=np.float32))
    assert third.error == "holds a NUL byte"


def test_a_parquet_file_with_a_damaged_footer(tmp_path):
    for sound, damaged, message in (
        (b"\x02\x18\x06smiles", b"\x02\x18\x06smi\xffes", "cannot read .*codec"),  # a column's name
        (b"\0\0\0\x16\x06\x19", b"\0\0\0\x16\x08\x19", "says that it has 4 rows, and 3 came"),
    ):
        import pyarrow as pa

        path = tmp_path / "t.parquet"
        pq.write_table(pa.table({"smiles": ["CCO", "C", None]}), path, store_schema=False)
        assert path.read_bytes().count(sound) == 1
        path.write_bytes(path.read_bytes().replace(sound, damaged))
        with pytest.raises(InputError, match=message):
            list(open_table(path).rows)


# SDF


def test_sdf(tmp_path):
    blocks = [Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in ("CCO", "c1ccccc1", "C[C@H](N)O")]
    broken = blocks[1].replace(" C ", " Qq")
    records = [
        "ethanol" + blocks[0] + ">  <logP>  (1)\n-0.31\n\n> <note>\ntwo\nlines\n\n",
        broken + "> <logP>\n2.1\n\n",
        blocks[2],
        "lost\n> <logP>\n3\n\n",
    ]
    path = tmp_path / "t.sdf.gz"
    path.write_bytes(gzip.compress("$$$$\r\n".join(r.replace("\n", "\r\n") for r in records).encode()))
    table = open_table(path, "mol")
    assert (table.columns, table.smiles_column, table.length) == (["smiles", "name", "logP", "note"], "smiles", 4)
    rows = list(table.rows)
    assert [row.cells for row in rows] == [
        ["CCO", "ethanol", "-0.31", "two\nlines"],
        ["", "", "2.1", ""],
        ["C[C@H](N)O", "", "", ""],
        ["", "lost", "3", ""],
    ]
    assert [row.error for row in rows] == [None, None, None, 'mol block without "M  END"']
    assert rows[1].text == broken
    assert Chem.MolToSmiles(Chem.MolFromMolBlock(rows[0].text)) == "CCO"


def test_an_sdf_with_its_own_smiles_and_stray_bytes(table_of):
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CC")).encode()
    content = b"M\xfcller" + block + b"> <SMILES>\nC-C\n\n$$$$\n" + block + b"$$$$\n"
    table = table_of(content, "t.sdf")
    assert table.columns == ["name", "SMILES"]
    rows = list(table.rows)
    assert [row.cells for row in rows] == [["Müller", "C-C"], ["", ""]]
    assert [row.error for row in rows] == [None, None] and "read as Windows-1252" in rows[0].warnings[0]
    assert rows[0].text.isascii()
    twice = content.replace(b"$$$$", b"> <y>\n1\n\n> <y>\n2\n\n$$$$", 1)
    row = next(table_of(twice, "w.sdf").rows)
    assert row.cells[-1] == "2" and row.warnings[-1] == 'property "y" is there twice; the last is read'
    table = table_of(content.replace(b"C-C", b"1234"), "v.sdf")  # a number of a catalogue
    assert (table.columns, table.smiles_column) == (["smiles", "name", "SMILES"], "smiles")
    assert [row.cells[0] for row in table.rows] == ["CC", "CC"]
    with pytest.raises(InputError, match="is empty"):
        table_of("\n\n", "u.sdf")


# --- Sources.


@pytest.mark.parametrize("name", ["mols.csv", "a/b.smi.gz", "/no/where", "./x", "C.sdf", "my_molecules", Path("CCO")])
def test_what_can_only_be_a_file(name):
    with pytest.raises(InputError, match="no such file"):
        open_table(name)


def test_several_smiles_are_rows_and_the_name_of_a_file_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("CCN").touch()
    table = open_table(["CCO", "C1CC", "C/C=C/C"])
    assert (table.columns, table.length) == (["smiles"], 3)
    assert [(row.number, row.text) for row in table.rows] == [(1, "CCO"), (2, "C1CC"), (3, "C/C=C/C")]
    for name in ("CCN", "mols.csv", "-", "./C"):
        with pytest.raises(InputError, match=f"must be SMILES, and {name} is the name of a file: give one file alone"):
            open_table(["CCO", name])
    with pytest.raises(InputError, match="must be SMILES, and number 1, counted from 0, is nan"):
        open_table(["CCO", float("nan")])


SOLVATION = Path(__file__).parents[2] / "examples" / "solvation.csv"
NO_SET = "and no public data set of that name;"


def test_a_word_that_is_nothing_is_refused_with_a_near_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for file in ("solubility.csv", "sub/library.sdf"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    for name, message in (
        ("esoll", f"there is no file 'esoll' {NO_SET} did you mean 'esol'?"),
        ("solubilty", f"there is no file 'solubilty' {NO_SET} did you mean 'solubility.csv'?"),
        ("examples/solvation.csv", f"no such file: examples/solvation.csv; it comes with gtx, as {SOLVATION}"),
        ("sub/librry.sdf", "no such file: sub/librry.sdf; did you mean 'sub/library.sdf'?"),
        ("C1CC", f"there is no file 'C1CC' {NO_SET} as a SMILES it cannot be read: unclosed"),
        ("C\0", rf"there is no file 'C\\x00' {NO_SET} as a SMILES it "),
    ):
        with pytest.raises(InputError) as refusal:
            check_source(name, ["esol", "freesolv", "scaffold/esol", "scaffold/tox21"])
        assert str(refusal.value).startswith(message) and ("SMILES" in message) == ("SMILES" in str(refusal.value))


@pytest.mark.parametrize("name", ["-", "CCO", "C/C=C/C", __file__, Path(__file__), Path(__file__).parent])
def test_what_is_something_is_not(name):
    check_source(name, ["CC0"])
